//! Which binary on which machine: results are the same bit for bit only on the same.

use serde::{Deserialize, Serialize};

/// The binary and the processor, on which exactness depends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Version of this software.
    pub version: String,
    /// Content hash of the executable, where it could be read.
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
    /// This machine; `binary` is the hash of the executable and `device` where tensors live.
    pub fn here(binary: String, device: String) -> Self {
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

    /// What must be the same for the same bits to come out.
    pub(crate) fn bits(&self) -> [&str; 4] {
        [&self.binary, &self.processor, &self.simd, &self.device]
    }
}
