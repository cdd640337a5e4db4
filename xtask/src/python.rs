//! The Python interpreter, `plugins/python`: which of its builds is made, and from what.
//!
//! Every build shares the driver, `plugins/python/driver`, and is a component of the same world, so nothing beyond this
//! module knows which one was made. Another build is another module beside [`componentize`]: what it is made from joins
//! [`INPUTS`], and [`build`] prefers it where the machine has what it needs.

mod componentize;

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    guests::{Family, Guest, Maker},
    project::Project,
};

/// The plugin's name, and its folder's.
const NAME: &str = "python";

/// What the component is made from, relative to the repository.
const INPUTS: [&str; 3] = ["plugins/python/component", "plugins/python/driver", "wit"];

/// The interpreter as a guest; none in a checkout without its sources.
pub fn guest(project: &Project) -> Option<Guest> {
    let source = Family::FirstParty.sources(project).join(NAME);
    source.join("plugin.toml").is_file().then(|| Guest {
        name: NAME.to_owned(),
        family: Family::FirstParty,
        maker: Maker::Python,
        source,
        inputs: INPUTS.map(PathBuf::from).to_vec(),
    })
}

/// Makes the component, by the best build that this machine can make; the file it lies in.
pub fn build(project: &Project) -> Result<PathBuf> {
    componentize::build(project)
}
