//! `cargo xtask cuda`: builds the same host with `--features cuda`. The building machine needs neither GPU nor
//! driver.
//!
//! `docs/cuda.md` explains the steps and their reasons; `.cargo/cuda.toml` has the settings.

mod ptxas;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    host,
    machine::{self, Need},
    project::Project,
    steps::{self, Steps, say},
};

/// nvcc and the headers, as NVIDIA publishes them on PyPI: 105 MB to download, 270 MB on disk.
const TOOLKIT: (&str, &[&str]) = (
    "toolkit",
    &[
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-nvvm==13.0.88",
        "nvidia-cuda-cccl==13.0.85",
        "nvidia-cuda-runtime==13.0.96",
    ],
);

/// Libraries that the binary loads on a machine with a GPU, besides the driver.
const RUNTIME: (&str, &[&str]) = (
    "runtime",
    &["nvidia-cublas==13.0.2.14", "nvidia-curand==10.4.0.35"],
);

/// Libraries that cudarc's build script asks the linker for, but nothing uses.
const LINKED: [&str; 5] = ["cuda", "nvrtc", "curand", "cublas", "cublasLt"];

/// An empty `ar` archive.
const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";

/// The parts of the work to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Prepare the toolkit, build nothing.
    pub prepare_only: bool,
    /// Also fetch the libraries that are loaded on a machine with a GPU.
    pub runtime: bool,
}

/// The path of the CUDA binary, once built.
pub fn binary(project: &Project) -> PathBuf {
    target(project).join("x86_64-unknown-linux-gnu/release/rlf-host")
}

/// A separate target folder: other features and flags would overwrite the CPU build.
fn target(project: &Project) -> PathBuf {
    project.host_target().join("cuda")
}

/// The folder of the libraries of [`Options::runtime`], if they were fetched.
pub fn runtime_libraries(project: &Project) -> Option<PathBuf> {
    let folder = wheels(project, RUNTIME.0).join("nvidia/cu13/lib");
    folder.join("libcublas.so.13").is_file().then_some(folder)
}

/// The folder of a group of wheels. Each has its own, because pip replaces a folder that two installations share.
fn wheels(project: &Project, group: &str) -> PathBuf {
    project.root().join(".cuda").join(group)
}

/// Prepares and builds, and prints how to use the result.
pub fn run(project: &Project, options: Options) -> Result<()> {
    let mut steps = Steps::new();
    let outcome = build(project, options, None, &mut steps);
    say(&format!("\n{}", steps.summary()));
    outcome?;
    if !options.prepare_only {
        let binary = binary(project);
        println!(
            "\n{} runs on both devices. Without a driver it still starts, and reports that:\n\
             \x20 {0} doctor\n\
             On a machine with a GPU (driver 580 or newer):\n\
             \x20 cargo xtask gpu-check\n\
             docs/cuda.md says which libraries it loads and how to install them.",
            project.display(&binary)
        );
    }
    Ok(())
}

/// The steps of [`run`]; `capability` is the GPU's compute capability without the point, by default that of 9.0.
pub fn build(
    project: &Project,
    options: Options,
    capability: Option<&str>,
    steps: &mut Steps,
) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("the CUDA build is prepared for x86-64 Linux only");
    }
    let home = steps.take("CUDA toolkit", || toolkit(project))?;
    if options.runtime {
        steps.take("CUDA libraries", || install(project, RUNTIME).map(|_| ()))?;
    }
    if options.prepare_only {
        return Ok(());
    }
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Native])
    })?;
    let named = env::var("CUDA_COMPUTE_CAP").unwrap_or_else(|_| "90".to_owned());
    let capability = capability.unwrap_or(&named);
    let table = steps.take("registers of the kernels", || {
        let folder = target(project);
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        ptxas::report(project, &home, capability, &folder)
    })?;
    say(&table);
    let mut command = host::cargo(project, "build");
    command
        .args([
            "--features",
            "rlf-host/cuda,rlf-host/hub,rlf-bench/cuda",
            "--config",
            ".cargo/cuda.toml",
        ])
        .arg("--target-dir")
        .arg(target(project))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CUDA_COMPUTE_CAP", capability)
        .env("CUDA_HOME", &home);
    steps.run(
        "build the host with CUDA",
        &mut command,
        "the first error above; docs/cuda.md lists the known ones",
    )
}

/// The folder with `bin/nvcc`: an installed toolkit of the right version, or one assembled from wheels in `.cuda`.
fn toolkit(project: &Project) -> Result<PathBuf> {
    for home in installed() {
        if is_cuda_13(project, &home) {
            say(&format!("  installed: {}", home.display()));
            return Ok(home);
        }
    }
    let folder = install(project, TOOLKIT)?;
    let home = folder.join("nvidia/cu13");
    let lib = home.join("lib");
    // candle-kernels asks for `cudart`. The static library loads the driver's library by itself on first use.
    let linked = fs::copy(lib.join("libcudart_static.a"), lib.join("libcudart.a"));
    linked.context("the wheel of the CUDA runtime holds no libcudart_static.a")?;
    let stubs = lib.join("stubs");
    fs::create_dir_all(&stubs).with_context(|| format!("{} cannot be made", stubs.display()))?;
    for library in LINKED {
        let path = stubs.join(format!("lib{library}.a"));
        fs::write(&path, EMPTY_ARCHIVE)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    if !is_cuda_13(project, &home) {
        bail!(
            "{} does not run: remove the folder .cuda and try again",
            project.display(&home.join("bin/nvcc"))
        );
    }
    say(&format!("  from wheels: {}", project.display(&home)));
    Ok(home)
}

/// Folders where a toolkit may be installed.
fn installed() -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os);
    let mut homes: Vec<PathBuf> = named.map(PathBuf::from).collect();
    homes.push("/usr/local/cuda".into());
    homes
}

/// True if `home` has an nvcc of CUDA 13, the version of candle's bindings.
fn is_cuda_13(project: &Project, home: &Path) -> bool {
    steps::output(project.command(home.join("bin/nvcc")).arg("--version"))
        .is_ok_and(|text| text.contains("release 13."))
}

/// Unpacks the packages of a group into its folder, once.
fn install(project: &Project, (group, packages): (&str, &[&str])) -> Result<PathBuf> {
    let folder = wheels(project, group);
    // Written last, so that an interrupted installation is repeated.
    let done = folder.join("installed.txt");
    let wanted = packages.join("\n") + "\n";
    if fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        say(&format!(
            "  {group}: already in {}",
            project.display(&folder)
        ));
        return Ok(folder);
    }
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if steps::output(project.command(&python).args(["-m", "pip", "--version"])).is_err() {
        bail!(
            "CUDA 13 is not installed, and `{python} -m pip`, which would fetch it from PyPI, does not run: install \
             pip (`apt-get install python3-pip`), name a Python that has it in PYTHON, or install the CUDA 13 toolkit \
             and name its folder in CUDA_HOME"
        );
    }
    say(&format!("  {group}: {}", packages.join(", ")));
    let mut command = project.command(&python);
    command
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
        .args(["--only-binary", ":all:", "--root-user-action", "ignore"])
        .arg("--target")
        .arg(&folder)
        .args(packages);
    if !steps::status(&mut command)?.success() {
        bail!(
            "pip could not install the wheels above into {}",
            project.display(&folder)
        );
    }
    fs::write(&done, wanted).with_context(|| format!("{} cannot be written", done.display()))?;
    Ok(folder)
}
