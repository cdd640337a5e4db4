//! A table of the kernels from the GPU's assembler, ptxas: the registers of a thread, and the bytes that did not fit them.

use std::{env, fmt::Write as _, path::Path};

use anyhow::{Result, ensure};

use crate::{project::Project, steps};

/// The kernels, in the host.
const SOURCE: &str = "host/policy/src/cuda/kernels.cu";

/// A kernel, as ptxas compiled it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kernel {
    name: String,
    /// Registers of a thread.
    registers: u32,
    /// Shared memory of a block, in bytes, without what a launch adds.
    shared: u32,
    /// Bytes that a thread writes to memory because no register was free.
    spilled: u32,
}

/// Compiles the kernels for one capability, and returns a table of them.
pub(super) fn report(
    project: &Project,
    home: &Path,
    capability: &str,
    folder: &Path,
) -> Result<String> {
    // As in the build script of the kernels.
    let compiler = env::var("NVCC_CCBIN").unwrap_or_else(|_| "g++".to_owned());
    let mut command = project.command(home.join("bin/nvcc"));
    command
        .args(["-cubin", "-O3", "-std=c++17", "-Xptxas=-v"])
        .arg(format!("-arch=sm_{capability}"))
        .arg(format!("--compiler-bindir={compiler}"))
        .arg("-o")
        .arg(folder.join("kernels.cubin"))
        .arg(SOURCE);
    let kernels = parse(&steps::errors(&mut command)?);
    ensure!(
        !kernels.is_empty(),
        "ptxas said nothing about the kernels; has its output another form?"
    );
    Ok(table(&kernels))
}

/// Reads the lines that ptxas writes with `-v`.
fn parse(text: &str) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Kernel {
                name,
                registers: 0,
                shared: 0,
                spilled: 0,
            });
        } else if let Some(kernel) = kernels.last_mut() {
            for (unit, field) in [
                (" bytes spill stores", &mut kernel.spilled),
                (" registers", &mut kernel.registers),
                (" bytes smem", &mut kernel.shared),
            ] {
                if let Some(number) = number_before(line, unit) {
                    *field = number;
                }
            }
        }
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    kernels
}

fn number_before(line: &str, unit: &str) -> Option<u32> {
    let (before, _) = line.split_once(unit)?;
    before.rsplit(' ').next()?.parse().ok()
}

fn table(kernels: &[Kernel]) -> String {
    let mut text = format!(
        "  {:<26} {:>9} {:>12} {:>13}\n",
        "kernel", "registers", "shared bytes", "spilled bytes"
    );
    for kernel in kernels {
        let Kernel {
            name,
            registers,
            shared,
            spilled,
        } = kernel;
        _ = writeln!(
            text,
            "  {name:<26} {registers:>9} {shared:>12} {spilled:>13}"
        );
    }
    let spilling = kernels.iter().filter(|kernel| kernel.spilled > 0).count();
    _ = write!(
        text,
        "  {} kernels, {spilling} of them spill",
        kernels.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'softmax_f32' for 'sm_90'
ptxas info    : Function properties for softmax_f32
    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 24 bytes cumulative stack size, 132 bytes smem
ptxas info    : Compiling entry function 'add' for 'sm_90'
ptxas info    : Function properties for add
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
";

    #[test]
    fn registers_shared_memory_and_spills_are_read() {
        let kernels = parse(SAID);
        let kernel = |name: &str, registers, shared, spilled| Kernel {
            name: name.to_owned(),
            registers,
            shared,
            spilled,
        };
        assert_eq!(
            kernels,
            [kernel("add", 10, 0, 0), kernel("softmax_f32", 32, 132, 16)]
        );
        let table = table(&kernels);
        assert!(table.ends_with("2 kernels, 1 of them spill"), "{table}");
    }

    #[test]
    fn other_output_has_no_kernels() {
        assert_eq!(parse("nvcc warning : something\n"), []);
    }
}
