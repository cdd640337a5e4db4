//! `cargo xtask package`: everything that a release publishes. For each target it makes the Python wheel and the archive,
//! and for Linux a container image, all from one build; and one file with the checksums of all.
//!
//! On Linux the programs are linked with zig, so that they run on systems with glibc 2.28 or newer, and are built for
//! arm64 on x86-64.

mod archive;
mod image;
mod python;

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

pub use self::python::lay_out_built;
use crate::{
    folders::empty_folder,
    guests::Family,
    host,
    machine::{self, Need},
    plugins,
    project::Project,
    python::{Tier, pydantic},
    steps::{self, Steps, say},
    venv::{self, Venv},
};

/// The packages that this command runs.
const REQUIREMENTS: &str = "xtask/package/requirements.txt";
/// The results, in the target folder.
const RESULTS: &str = "target/packages";
/// The profile of what is published.
const PROFILE: &str = "dist";
/// The oldest glibc on which the Linux programs run.
const GLIBC: &str = "2.28";

/// The file with the licence texts of others' software.
const LICENCES: &str = "THIRD_PARTY_LICENSES";
/// The workspaces that the packages are built from.
const WORKSPACES: [&str; 3] = [
    "Cargo.toml",
    "plugins/Cargo.toml",
    "plugins/with-c/Cargo.toml",
];

/// A kind of machine that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Linux with glibc 2.28 or newer, x86-64
    #[value(name = "x86_64-linux")]
    X86Linux,
    /// Linux with glibc 2.28 or newer, arm64
    #[value(name = "aarch64-linux")]
    ArmLinux,
    /// macOS 11 or newer, arm64
    #[value(name = "aarch64-macos")]
    ArmMac,
}

impl Target {
    /// The targets that this machine can build for.
    fn here() -> Result<Vec<Self>> {
        match std::env::consts::OS {
            "linux" => Ok(vec![Self::X86Linux, Self::ArmLinux]),
            "macos" => Ok(vec![Self::ArmMac]),
            other => bail!("packages are built on Linux and macOS, and this is {other}"),
        }
    }

    /// The name that rustc knows it by.
    fn triple(self) -> &'static str {
        match self {
            Self::X86Linux => "x86_64-unknown-linux-gnu",
            Self::ArmLinux => "aarch64-unknown-linux-gnu",
            Self::ArmMac => "aarch64-apple-darwin",
        }
    }

    fn is_linux(self) -> bool {
        self != Self::ArmMac
    }

    /// The processor, as Linux calls it.
    fn processor(self) -> &'static str {
        match self {
            Self::X86Linux => "x86_64",
            Self::ArmLinux | Self::ArmMac => "aarch64",
        }
    }

    /// The processor, as container images call it.
    fn architecture(self) -> &'static str {
        match self {
            Self::X86Linux => "amd64",
            Self::ArmLinux | Self::ArmMac => "arm64",
        }
    }

    /// The file name of the library that cargo builds for it.
    fn library(self) -> &'static str {
        if self.is_linux() {
            "lib_native.so"
        } else {
            "lib_native.dylib"
        }
    }

    /// The platform tag of its wheel.
    fn platform(self) -> String {
        match self {
            Self::ArmMac => "macosx_11_0_arm64".to_owned(),
            _ => format!("manylinux_{}_{}", GLIBC.replace('.', "_"), self.processor()),
        }
    }
}

/// The built files that packages are made of.
#[derive(Debug)]
struct Files {
    /// `rlf-host`.
    program: PathBuf,
    /// The native part of the Python package.
    library: PathBuf,
    /// The folder of built plugins.
    plugins: PathBuf,
    /// The licence texts of others' software.
    licences: PathBuf,
}

/// The choice of packages.
#[derive(Debug, Default, clap::Args)]
pub struct Choice {
    /// Only for these targets [default: on Linux, x86-64 and arm64 Linux]
    #[arg(long, value_name = "TARGET")]
    target: Vec<Target>,
    /// Pack the portable build of the Python interpreter, which is several times slower
    #[arg(long)]
    portable: bool,
}

/// Builds, and makes the packages of all targets in `target/packages`.
pub fn run(project: &Project, choice: &Choice) -> Result<()> {
    let here = Target::here()?;
    let targets = match choice.target.as_slice() {
        [] => here,
        some => some.to_vec(),
    };
    let mut steps = Steps::new();
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    if Tier::chosen(project) == Tier::Portable && !choice.portable {
        bail!(
            "the packages would contain the portable build of the Python interpreter, which is several times slower; type \
             `cargo xtask python` with clang 19 installed, or give --portable"
        );
    }
    steps.take("build the plugins", || plugins::build(project))?;
    let tools = steps.take("programs from PyPI", || {
        Venv::with(project, "package", &project.root().join(REQUIREMENTS))
    })?;
    let results = project.root().join(RESULTS);
    empty_folder(&results)?;
    let version = version(project)?;
    for target in targets {
        let triple = target.triple();
        let built = build(project, &tools, target, &mut steps)?;
        let files = Files {
            program: built.join(host::BINARY),
            library: built.join(target.library()),
            plugins: Family::FirstParty.built(project),
            licences: project.root().join("target").join(LICENCES),
        };
        steps.take(&format!("licence texts for {triple}"), || {
            let mut write = pack(project, &tools, "licences");
            write
                .arg(&files.licences)
                .arg(triple)
                .args(WORKSPACES)
                .arg(pydantic::core_manifest(project)?);
            steps::output(&mut write).map(|_| ())
        })?;
        steps.take(&format!("wheel for {triple}"), || {
            python::wheel(project, &tools, target, &files, &results)
        })?;
        steps.take(&format!("archive for {triple}"), || {
            archive::make(project, &tools, triple, &version, &files, &results)
        })?;
        if target.is_linux() {
            steps.take(&format!("container image for {triple}"), || {
                image::make(project, &tools, target, &version, &files, &results)
            })?;
        }
    }
    steps.take("checksums", || {
        archive::checksums(project, &tools, &results)
    })?;
    say(&format!("\n{}", steps.summary()));
    Ok(())
}

/// Builds the program and the library of the Python package for a target; returns the folder with both.
fn build(project: &Project, tools: &Venv, target: Target, steps: &mut Steps) -> Result<PathBuf> {
    let triple = target.triple();
    let added = steps::status(project.command("rustup").args(["target", "add", triple]))?;
    if !added.success() {
        bail!("`rustup target add {triple}` failed; install the standard library of that target");
    }
    let (subcommand, wanted) = if target.is_linux() {
        ("zigbuild", format!("{triple}.{GLIBC}"))
    } else {
        ("build", triple.to_owned())
    };
    let mut command = project.cargo(subcommand);
    command
        .args(["--profile", PROFILE, "--locked", "--target", &wanted])
        .args(["--package", host::BINARY, "--package", host::PYTHON])
        .env("PATH", tools.path()?);
    steps.run(
        &format!("build for {triple}"),
        &mut command,
        "the compiler's first error above",
    )?;
    Ok(project.host_target().join(triple).join(PROFILE))
}

/// The version of the workspace, which is also the Python package's.
fn version(project: &Project) -> Result<String> {
    let read = |file: &str, table: &[&str]| -> Result<String> {
        let text = fs::read_to_string(project.root().join(file))
            .with_context(|| format!("{file} cannot be read"))?;
        let mut value: &toml::Value = &toml::from_str(&text)?;
        for key in table {
            value = value
                .get(key)
                .with_context(|| format!("{file} has no {key}"))?;
        }
        Ok(value.as_str().unwrap_or_default().to_owned())
    };
    let version = read("Cargo.toml", &["workspace", "package", "version"])?;
    let of_python = read("host/python/pyproject.toml", &["project", "version"])?;
    if version != of_python {
        bail!("Cargo.toml has version {version}, and host/python/pyproject.toml {of_python}");
    }
    Ok(version)
}

/// A command that runs `pack.py` to make one kind of package.
fn pack(project: &Project, tools: &Venv, kind: &str) -> Command {
    let mut command = venv::command(project, tools.program("python"));
    command.args(["xtask/package/pack.py", kind]);
    command
}
