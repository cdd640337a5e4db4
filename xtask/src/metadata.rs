//! The parts of `cargo metadata` that this crate uses.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{project::Project, steps};

/// A workspace and all packages that it is built from, for every platform.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Workspace members, path dependencies and packages from a registry.
    pub packages: Vec<Package>,
    /// Ids of the workspace's own packages.
    pub workspace_members: Vec<String>,
}

/// A package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Opaque, as in [`Metadata::workspace_members`].
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The package's origin; none for a path.
    pub source: Option<String>,
    /// The path of its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Its declared dependencies.
    pub dependencies: Vec<Dependency>,
    /// Its build targets.
    pub targets: Vec<Target>,
    /// What it says about itself for this program.
    pub metadata: Option<OwnMetadata>,
}

/// `[package.metadata]`.
#[derive(Debug, Default, Deserialize)]
pub struct OwnMetadata {
    /// Paths in the repository, outside the package's folder, of files that it includes.
    #[serde(default)]
    pub inputs: Vec<PathBuf>,
}

/// A dependency as declared.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The folder of a path dependency.
    pub path: Option<PathBuf>,
}

/// A build target.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// Its name, from which the file's name is made.
    pub name: String,
    /// `lib`, `bin`, `test`, ..
    pub kind: Vec<String>,
    /// `cdylib`, `lib`, `bin`, ..
    pub crate_types: Vec<String>,
    /// Its root file.
    pub src_path: PathBuf,
}

impl Metadata {
    /// Reads the workspace of `manifest`, the path of a `Cargo.toml`.
    pub fn read(project: &Project, manifest: &Path) -> Result<Self> {
        let mut command = project.cargo("metadata");
        command
            .args(["--locked", "--format-version", "1", "--manifest-path"])
            .arg(manifest);
        let text = steps::output(&mut command).with_context(|| {
            format!(
                "the dependencies of {} cannot be read; if its lock file is out of date, \
                 `cargo update --workspace --manifest-path {0}` corrects it",
                project.display(manifest)
            )
        })?;
        serde_json::from_str(&text).context("`cargo metadata` printed something unexpected")
    }

    /// The packages of the workspace itself.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }
}

impl Package {
    /// The folder of its `Cargo.toml`.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}
