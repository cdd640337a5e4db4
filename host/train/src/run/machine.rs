//! The binary and the machine of a run: results are identical bit for bit only if both are the same.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::digests::file_digest;
use super::error::RunError;
use super::json_file::read_json;
use super::layout::machine_path;

/// BLAKE3 of the running executable; empty if it cannot be read.
pub fn binary_hash() -> String {
    let digest = std::env::current_exe().and_then(|program| file_digest(&program));
    digest.unwrap_or_default()
}

/// The binary and the machine, on which bit-identical results depend.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Version of this software.
    pub version: String,
    /// Content hash of the executable; empty if it could not be read.
    pub binary: String,
    /// Model name of the processor.
    pub processor: String,
    /// Instruction set of the matrix product and the fused operators.
    pub simd: String,
    /// Cores this process may use.
    pub cores: usize,
    /// `cpu`, `cuda:0`, ...
    pub device: String,
}

impl Machine {
    /// This machine. `binary` is [`binary_hash`], `device` the device of the tensors.
    pub fn current(binary: String, device: String) -> Self {
        let cpu = rlf_policy::cpu_facts();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            binary,
            processor: cpu.name,
            simd: cpu.simd.to_owned(),
            cores: cpu.threads,
            device,
        }
    }

    /// The parts that must be equal for bit-identical results.
    pub(super) fn bits(&self) -> [&str; 4] {
        [&self.binary, &self.processor, &self.simd, &self.device]
    }
}

/// The differences between the binary and machine with which the run in `run` began and `now`, one sentence each. They can
/// change the last bits of results.
pub fn machine_changes(run: &Path, now: &Machine) -> Result<Vec<String>, RunError> {
    let before: Machine = read_json(&machine_path(run))?;
    let names = ["binary", "processor", "instruction set", "device"];
    let parts = names.into_iter().zip(before.bits()).zip(now.bits());
    let changed = parts.filter(|((_, before), now)| before != now);
    let told = changed.map(|((name, before), now)| format!("{name}: was {before}, is {now}"));
    Ok(told.collect())
}
