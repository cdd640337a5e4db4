//! Which guests there are, and what each is made from.
//!
//! A guest is a crate with a `cdylib` in the guests' workspace, `plugins/Cargo.toml`. That has a lock file, a profile
//! and a target folder of its own: another target, other dependencies, and a cargo that never waits for the host's lock.
//! Crates with C inside are a workspace beside it, [`with_c`]. The one guest that is no crate is the Python interpreter.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use crate::{
    metadata::{Metadata, Package, Target},
    project::Project,
    python, with_c,
};

/// What guests are compiled for.
pub const TARGET: &str = "wasm32-wasip2";

/// Inputs of every component besides its crate and what that depends on by path.
const SHARED_INPUTS: [&str; 4] = [
    "plugins/Cargo.lock",
    "plugins/Cargo.toml",
    "rust-toolchain.toml",
    "wit",
];

/// Guests that are kept together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// What ships: sources in `plugins/`, built into `target/plugins`.
    FirstParty,
    /// Guests that misbehave, for tests: sources in `tests/guests/`, built into `target/test-plugins`.
    Test,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::FirstParty, Self::Test];

    /// Where the sources lie, a folder each.
    pub fn sources(self, project: &Project) -> PathBuf {
        project.root().join(match self {
            Self::FirstParty => "plugins",
            Self::Test => "tests/guests",
        })
    }

    /// Where built plugins lie: `NAME/NAME.wasm`, `NAME/plugin.toml` and the manifest.
    pub fn built(self, project: &Project) -> PathBuf {
        project.root().join(match self {
            Self::FirstParty => "target/plugins",
            Self::Test => "target/test-plugins",
        })
    }
}

/// A guest's sources.
#[derive(Debug)]
pub struct Guest {
    /// The plugin's name: its folder's.
    pub name: String,
    /// Where it belongs.
    pub family: Family,
    /// What makes a component of it.
    pub maker: Maker,
    /// The folder of the sources.
    pub source: PathBuf,
    /// Everything that goes in, relative to the repository.
    pub inputs: Vec<PathBuf>,
}

/// What makes a component of a guest.
#[derive(Debug)]
pub enum Maker {
    /// A crate.
    Cargo {
        /// The cargo package.
        package: String,
        /// The file that cargo makes.
        artifact: String,
    },
    /// A crate with C inside: see [`crate::with_c`].
    WithC {
        /// The cargo package.
        package: String,
        /// The file that cargo makes.
        artifact: String,
    },
    /// The interpreter of `plugins/python`: see [`crate::python`].
    Python,
}

/// The `Cargo.toml` of the guests' workspace.
pub fn workspace(project: &Project) -> PathBuf {
    project.root().join("plugins/Cargo.toml")
}

/// All guests, sorted by name.
pub fn discover(project: &Project) -> Result<Vec<Guest>> {
    let mut guests = crates(project, &workspace(project), false)?;
    let with_c = with_c::workspace(project);
    if with_c.is_file() {
        guests.extend(crates(project, &with_c, true)?);
    }
    guests.extend(python::guest(project));
    guests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(guests)
}

/// The guests of one workspace.
fn crates(project: &Project, manifest: &Path, with_c: bool) -> Result<Vec<Guest>> {
    let metadata = Metadata::read(project, manifest)?;
    let mut guests = Vec::new();
    for package in metadata.members() {
        let is_guest = |target: &&Target| target.crate_types.iter().any(|kind| kind == "cdylib");
        let Some(target) = package.targets.iter().find(is_guest) else {
            continue;
        };
        let folder = package.folder();
        let lies_in = |family: &Family| folder.parent() == Some(&*family.sources(project));
        let Some(family) = Family::ALL.into_iter().find(lies_in) else {
            bail!(
                "the guest {} lies in {}: move it to plugins/ or, where it is for tests, to tests/guests/",
                package.name,
                project.shown(folder)
            );
        };
        let name = folder.file_name().unwrap_or_default();
        let artifact = format!("{}.wasm", target.name.replace('-', "_"));
        let package_name = package.name.clone();
        let mut inputs = inputs(project.root(), package, &metadata.packages);
        if with_c {
            inputs.push(with_c::FOLDER.into());
        }
        guests.push(Guest {
            name: name.to_string_lossy().into_owned(),
            family,
            maker: if with_c {
                Maker::WithC {
                    package: package_name,
                    artifact,
                }
            } else {
                Maker::Cargo {
                    package: package_name,
                    artifact,
                }
            },
            source: folder.to_owned(),
            inputs,
        });
    }
    Ok(guests)
}

/// The crate, whatever it depends on by path, however far, and what all guests share.
fn inputs(root: &Path, package: &Package, packages: &[Package]) -> Vec<PathBuf> {
    let mut found = BTreeSet::from([package.folder()]);
    let mut open = vec![package];
    while let Some(package) = open.pop() {
        let dependencies = package.dependencies.iter();
        for path in dependencies.filter_map(|dependency| dependency.path.as_deref()) {
            if found.insert(path) {
                open.extend(packages.iter().find(|package| package.folder() == path));
            }
        }
    }
    let mut inputs: Vec<PathBuf> = found
        .into_iter()
        .map(|path| path.strip_prefix(root).unwrap_or(path).to_owned())
        .chain(SHARED_INPUTS.map(PathBuf::from))
        .collect();
    inputs.sort();
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(folder: &str, depends_on: &[&str]) -> Package {
        Package {
            id: folder.to_owned(),
            name: folder.to_owned(),
            version: "0.1.0".to_owned(),
            source: None,
            manifest_path: format!("/rlf/{folder}/Cargo.toml").into(),
            dependencies: depends_on
                .iter()
                .map(|folder| Dependency {
                    path: Some(format!("/rlf/{folder}").into()),
                })
                .collect(),
            targets: Vec::new(),
        }
    }

    #[test]
    fn the_sdk_and_its_macros_are_inputs_of_a_plugin() {
        let packages = [
            package("plugins/adder", &["sdk/rust"]),
            package("sdk/rust", &["sdk/rust/macros"]),
            package("sdk/rust/macros", &[]),
            package("plugins/other", &[]),
        ];
        let inputs = inputs(Path::new("/rlf"), &packages[0], &packages);
        let has = |path: &str| inputs.contains(&path.into());
        assert!(has("plugins/adder") && has("sdk/rust") && has("sdk/rust/macros"));
        assert!(has("wit") && has("plugins/Cargo.lock") && has("rust-toolchain.toml"));
        assert!(!has("plugins/other"));
    }
}
