//! What a guest is, and what each is made from. [`crate::discovery`] finds them.
//!
//! A guest is a crate with a `cdylib` in the guests' workspace, `plugins/Cargo.toml`. That has a lock file, a profile
//! and a target folder of its own: another target, other dependencies, and a cargo that never waits for the host's lock.
//! Crates with C inside are a workspace beside it, [`crate::with_c`]. The one guest that is not a crate is the Python
//! interpreter.

use std::path::PathBuf;

use crate::project::Project;

/// What guests are compiled for.
pub const TARGET: &str = "wasm32-wasip2";

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
