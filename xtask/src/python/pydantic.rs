//! pydantic, which loaded files import, and the time zone database. Both are what PyPI has, except for pydantic's compiled part:
//! pydantic-core is built here from its sources, for WebAssembly.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    folders::{copy_folder, empty_folder},
    manifest,
    metadata::Metadata,
    project::Project,
    steps::{self, say},
    venv::{self, Venv},
};

/// The packages, with their versions and hashes.
const REQUIREMENTS: &str = "plugins/python/pydantic/requirements.txt";
/// The folder of a build backend that builds nothing.
const BACKEND: &str = "plugins/python/pydantic/backend";
/// The patch that gives pyo3 hashes with 64 bits.
const HASH_PATCH: &str = "plugins/python/pydantic/pyo3-hash.patch";
/// The crates of pyo3 that it changes.
const HASH_CRATES: [&str; 2] = ["pyo3", "pyo3-ffi"];
/// Everything that is downloaded and compiled.
const TARGET: &str = "target/pydantic";
/// The module of the compiled part, in the folder with the packages. It is named for the portable build's CPython.
const MODULE: &str = "pydantic_core/_pydantic_core.cpython-314-wasm32-wasi.so";

/// The CPython that the compiled part is linked to.
struct Python {
    version: &'static str,
    /// The target of Rust.
    target: &'static str,
    /// Whether its hashes have 64 bits, as `HASH_PATCH` has them.
    wide_hashes: bool,
}

/// The one of componentize-py, which links shared libraries. The target's own code can be part of one.
const PORTABLE: Python = Python {
    version: "3.14",
    target: "wasm32-wasip2",
    wide_hashes: false,
};

const FAST: Python = Python {
    version: "3.13",
    target: "wasm32-wasip1",
    wide_hashes: true,
};

/// A venv with pydantic for this machine, in which files that import it run natively.
pub(crate) fn venv(project: &Project) -> Result<Venv> {
    Venv::with(project, "pydantic", &project.root().join(REQUIREMENTS))
}

/// The manifest of pydantic-core.
pub(crate) fn core_manifest(project: &Project) -> Result<PathBuf> {
    manifest_in(&get(project)?)
}

/// The folder with the packages, in which the compiled part is a shared library.
pub(super) fn shared(project: &Project) -> Result<PathBuf> {
    let (packages, library) = linkable(project, &PORTABLE)?;
    let mut rustc = project.command("rustc");
    let libraries = steps::output(rustc.args(["--print", "target-libdir"]))?;
    let mut link = project.command(Path::new(libraries.trim()).join("../bin/rust-lld"));
    link.args(["-flavor", "wasm", "-shared", "--experimental-pic"])
        .args(["--no-entry", "--import-memory", "--allow-undefined"])
        .args(["--gc-sections", "--strip-debug"])
        .arg("--export=PyInit__pydantic_core")
        .arg(library)
        .arg("-o")
        .arg(packages.join(MODULE));
    if !steps::status(&mut link)?.success() {
        bail!("pydantic-core was not linked: see the error above");
    }
    Ok(packages)
}

/// The folder with the packages, and the compiled part as a static library for the fast build.
pub(super) fn linked(project: &Project) -> Result<(PathBuf, PathBuf)> {
    linkable(project, &FAST)
}

fn linkable(project: &Project, python: &Python) -> Result<(PathBuf, PathBuf)> {
    let folder = get(project)?;
    let library = compile(project, &folder, python)?;
    Ok((folder.join("packages"), library))
}

/// The folder with the packages.
pub(super) fn packages(project: &Project) -> Result<PathBuf> {
    Ok(get(project)?.join("packages"))
}

/// The folder with everything that is downloaded.
fn get(project: &Project) -> Result<PathBuf> {
    let requirements = project.root().join(REQUIREMENTS);
    let wanted = fs::read(&requirements)
        .with_context(|| format!("{} cannot be read", requirements.display()))?;
    let folder = (project.root().join(TARGET)).join(&manifest::hash(&wanted)[..12]);
    let mark = folder.join("complete");
    if !mark.is_file() {
        say("  python: pydantic and tzdata from PyPI");
        download(project, &requirements, &folder)?;
        fs::write(&mark, "").with_context(|| format!("{} cannot be written", mark.display()))?;
    }
    Ok(folder)
}

/// Gets the packages, without their compiled part, and the sources of that.
fn download(project: &Project, requirements: &Path, folder: &Path) -> Result<()> {
    empty_folder(folder)?;
    let python = venv(project)?.program("python");
    let pip = |arguments: &[&str], output: &Path| {
        let mut pip = venv::command(project, &python);
        pip.args(["-m", "pip", "--disable-pip-version-check", "--quiet"])
            .args(arguments)
            .arg(output)
            .args(["--no-deps", "--require-hashes", "--requirement"])
            .arg(requirements)
            .env("PYTHONPATH", project.root().join(BACKEND));
        if steps::status(&mut pip)?.success() {
            return Ok(());
        }
        bail!("pip did not get what {REQUIREMENTS} lists: the error above is pip's own")
    };
    let (packages, downloads) = (folder.join("packages"), folder.join("downloads"));
    pip(
        &["install", "--only-binary", ":all:", "--target"],
        &packages,
    )?;
    pip(
        &[
            "download",
            "--no-build-isolation",
            "--no-binary",
            "pydantic-core",
            "--dest",
        ],
        &downloads,
    )?;
    for file in entries(&packages.join("pydantic_core"))? {
        if file
            .extension()
            .is_some_and(|extension| extension == "so" || extension == "pyd")
        {
            fs::remove_file(file)?;
        }
    }
    let sources = entries(&downloads)?.into_iter();
    let mut archives = sources.filter(|file| file.extension().is_some_and(|found| found == "gz"));
    let archive = archives
        .next()
        .context("pip downloaded no sources of pydantic-core")?;
    let mut unpack = venv::command(project, &python);
    unpack
        .args(["-m", "tarfile", "--extract"])
        .arg(archive)
        .arg(folder.join("sources"));
    if !steps::status(&mut unpack)?.success() {
        bail!("the sources of pydantic-core cannot be unpacked");
    }
    Ok(())
}

/// Compiles the sources to a static library. Nothing of the C library is in it.
fn compile(project: &Project, folder: &Path, python: &Python) -> Result<PathBuf> {
    let manifest = manifest_in(folder)?;
    let Python {
        version,
        target,
        wide_hashes,
    } = python;
    let config = folder.join(format!("{target}.txt"));
    let told = format!(
        "implementation=CPython\nversion={version}\nshared=true\nabi3=false\npointer_width=32\n\
         suppress_build_script_link_lines=true\n"
    );
    fs::write(&config, told)?;
    say("  python: pydantic-core from Rust; the first time takes four minutes of processor time");
    let mut cargo = project.cargo("rustc");
    cargo
        .args(["--quiet", "--release", "--locked", "--lib"])
        .args(["--crate-type", "staticlib", "--target", target])
        .arg("--manifest-path")
        .arg(&manifest)
        .arg("--target-dir")
        .arg(folder.join("build"))
        .env("PYO3_CONFIG_FILE", config)
        .env("RUSTFLAGS", "-Ctarget-feature=-crt-static")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // Every load compiles its code, so little code counts.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s");
    if *wide_hashes {
        // Unlike `[patch]`, it leaves the lock file as it is.
        let paths = serde_json::to_string(&with_wide_hashes(project, folder, &manifest)?)?;
        cargo.args(["--config", &format!("paths={paths}")]);
    }
    if !steps::status(&mut cargo)?.success() {
        bail!(
            "pydantic-core was not built: see the error above. If the target is missing, `rustup target add {target}`"
        );
    }
    let built = folder.join("build").join(target).join("release");
    Ok(built.join("lib_pydantic_core.a"))
}

/// Copies of `HASH_CRATES` with `HASH_PATCH`.
fn with_wide_hashes(project: &Project, folder: &Path, manifest: &Path) -> Result<Vec<PathBuf>> {
    let patch = project.root().join(HASH_PATCH);
    let read = fs::read(&patch).with_context(|| format!("{} cannot be read", patch.display()))?;
    let copies = folder.join("pyo3-copies");
    let (mark, wanted) = (copies.join("patch"), manifest::hash(&read));
    if fs::read_to_string(&mark).ok().as_ref() != Some(&wanted) {
        empty_folder(&copies)?;
        let packages = Metadata::read(project, manifest)?.packages;
        for name in HASH_CRATES {
            let original = packages.iter().find(|package| package.name == name);
            let original =
                original.with_context(|| format!("pydantic-core does not depend on {name}"))?;
            copy_folder(original.folder(), &copies.join(name))?;
        }
        let mut apply = project.command("patch");
        apply
            .args(["--strip=1", "--silent", "--directory"])
            .arg(&copies);
        if !steps::status(apply.arg("--input").arg(&patch))?.success() {
            bail!("{HASH_PATCH} does not fit pyo3: see the error above");
        }
        fs::write(&mark, &wanted)
            .with_context(|| format!("{} cannot be written", mark.display()))?;
    }
    Ok(HASH_CRATES.map(|name| copies.join(name)).into())
}

/// The manifest of the sources.
fn manifest_in(folder: &Path) -> Result<PathBuf> {
    let sources = entries(&folder.join("sources"))?;
    let first = sources
        .first()
        .context("there are no sources of pydantic-core")?;
    Ok(first.join("Cargo.toml"))
}

/// The entries of a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    read.map(|entry| Ok(entry?.path())).collect()
}
