//! The guests and the ways to build them. [`crate::discovery`] finds them.
//!
//! A guest is a crate with a `cdylib` in the guests' workspace, `plugins/Cargo.toml`. This workspace has its own lock
//! file, profile and target folder: it has another target and other dependencies, and its cargo never waits for the
//! host's lock. Crates with C inside are in a separate workspace, [`crate::with_c`]. Two guests are not crates: the
//! Python interpreters.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::project::Project;

/// The target that guests are compiled for.
pub const TARGET: &str = "wasm32-wasip2";

/// A group of guests that are kept in one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The shipped plugins: sources in `plugins/`, built into `target/plugins`.
    FirstParty,
    /// Guests that misbehave, for tests: sources in `tests/guests/`, built into `target/test-plugins`.
    Test,
    /// Shipped plugins that are built only if somebody asks for them: sources in `plugins/`, built into
    /// `target/science`. They are large, so whoever loads all plugins of a folder should not meet them unasked.
    OnRequest,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::FirstParty, Self::Test, Self::OnRequest];

    /// The folder of the sources; each guest has a folder in it.
    pub fn sources(self, project: &Project) -> PathBuf {
        project.root().join(match self {
            Self::FirstParty | Self::OnRequest => "plugins",
            Self::Test => "tests/guests",
        })
    }

    /// The folder of built plugins: `NAME/NAME.wasm`, `NAME/plugin.toml` and the manifest.
    pub fn built(self, project: &Project) -> PathBuf {
        project.root().join(match self {
            Self::FirstParty => "target/plugins",
            Self::Test => "target/test-plugins",
            Self::OnRequest => "target/science",
        })
    }
}

/// A guest and its sources.
#[derive(Debug)]
pub struct Guest {
    /// The plugin's name, which is its folder's name.
    pub name: String,
    /// The family of the guest.
    pub family: Family,
    /// The way to build its component.
    pub maker: Maker,
    /// The folder of the sources.
    pub source: PathBuf,
    /// All inputs of the component, relative to the repository.
    pub inputs: Vec<PathBuf>,
}

/// The way to build a guest's component.
#[derive(Debug)]
pub enum Maker {
    /// A crate.
    Cargo {
        /// The name of the cargo package.
        package: String,
        /// The file that cargo builds.
        artifact: String,
    },
    /// A crate with C inside, built as [`crate::with_c`] describes.
    WithC {
        /// The name of the cargo package.
        package: String,
        /// The file that cargo builds.
        artifact: String,
    },
    /// The interpreter of `plugins/python`, built by [`crate::python`].
    Python,
    /// The interpreter of `plugins/python-science`, built by [`crate::python`] only if somebody asks for it.
    Science,
}

/// The `Cargo.toml` of the guests' workspace.
pub fn workspace(project: &Project) -> PathBuf {
    project.root().join("plugins/Cargo.toml")
}

/// `cargo SUBCOMMAND` on all crates of a workspace of guests, for this machine instead of the sandbox. Such builds are
/// small and rarely run, so they use the development profile, not the one with LTO.
pub fn cargo_natively(project: &Project, subcommand: &str, workspace: &Path) -> Command {
    let mut command = project.cargo(subcommand);
    command
        .args(["--locked", "--workspace", "--manifest-path"])
        .arg(workspace)
        .arg("--target-dir")
        .arg(project.guests_target());
    command
}
