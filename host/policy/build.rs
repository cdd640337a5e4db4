//! With the feature `cuda`: compiles the kernels to PTX, which the driver compiles for its GPU.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/cuda/kernels.cu";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-env-changed=CUDA_HOME");
    println!("cargo:rerun-if-env-changed=CUDA_COMPUTE_CAP");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    let variable =
        |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let nvcc = PathBuf::from(variable("CUDA_HOME", "/usr/local/cuda")).join("bin/nvcc");
    let capability = variable("CUDA_COMPUTE_CAP", "90");
    let out = PathBuf::from(variable("OUT_DIR", ".")).join("kernels.ptx");
    let status = Command::new(&nvcc)
        .args(["-ptx", "-O3", "-std=c++17"])
        .arg(format!("-arch=compute_{capability}"))
        .arg(format!(
            "--compiler-bindir={}",
            variable("NVCC_CCBIN", "g++")
        ))
        .arg("-o")
        .arg(out)
        .arg(SOURCE)
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{} could not compile {SOURCE}: build with `cargo xtask cuda`, which prepares it",
        nvcc.display()
    );
}
