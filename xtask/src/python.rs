//! The Python interpreter, `plugins/python`: which of its builds is made, and from what.
//!
//! Every build shares the driver, `plugins/python/driver`, and is a component of the same world, so nothing beyond this
//! module knows which one was made. `cargo xtask python` takes the fast one where this machine can make it, or the one
//! that it is told; `cargo xtask plugins` and whatever else builds plugins stays with that choice, and where there was
//! none takes the portable one, which costs seconds.

mod componentize;
mod native;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    guests::{Family, Guest, Maker},
    project::Project,
    steps::say,
};

/// The plugin's name, and its folder's.
const NAME: &str = "python";

/// Holds the tier that `cargo xtask python` made last.
const CHOICE: &str = "target/interpreters/python.tier";

/// A build of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tier {
    /// CPython 3.14 by componentize-py: made in seconds with what PyPI has
    Portable,
    /// CPython 3.13 from C as one module: needs clang 19, and runs programs many times faster
    Fast,
}

impl Tier {
    /// Where its component is made, relative to the repository. The other tier's stays where it is, for comparison.
    fn component(self) -> PathBuf {
        Path::new("target/interpreters").join(format!("python-{self}/python.wasm"))
    }

    /// What it is made from, relative to the repository.
    fn inputs(self) -> [&'static str; 4] {
        let own = match self {
            Self::Portable => "plugins/python/component",
            Self::Fast => "plugins/python/native",
        };
        [
            own,
            "plugins/python/driver",
            "plugins/python/environments",
            "wit",
        ]
    }

    /// The one that was chosen last, if any.
    fn chosen(project: &Project) -> Self {
        match fs::read_to_string(project.root().join(CHOICE)) {
            Ok(text) if text == Self::Fast.to_string() => Self::Fast,
            _ => Self::Portable,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Fast => "fast",
        })
    }
}

/// The interpreter as a guest; none in a checkout without its sources.
pub fn guest(project: &Project) -> Option<Guest> {
    let source = Family::FirstParty.sources(project).join(NAME);
    source.join("plugin.toml").is_file().then(|| Guest {
        name: NAME.to_owned(),
        family: Family::FirstParty,
        maker: Maker::Python,
        source,
        inputs: Tier::chosen(project).inputs().map(PathBuf::from).to_vec(),
    })
}

/// Decides which build is made from now on: the one asked for, or the best that this machine can make.
pub fn choose(project: &Project, asked: Option<Tier>) -> Result<()> {
    let tier = asked.unwrap_or_else(|| {
        let missing = native::missing(project);
        if missing.is_empty() {
            return Tier::Fast;
        }
        say(&format!(
            "  python: the portable build; for the fast one, on Debian or Ubuntu `apt-get install {}`",
            missing.join(" ")
        ));
        Tier::Portable
    });
    let path = project.root().join(CHOICE);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    fs::write(&path, tier.to_string())
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Makes the component of the chosen build; the file it lies in.
pub fn build(project: &Project) -> Result<PathBuf> {
    match Tier::chosen(project) {
        Tier::Portable => componentize::build(project),
        Tier::Fast => native::build(project),
    }
}
