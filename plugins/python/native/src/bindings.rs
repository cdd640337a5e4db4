//! The C that carries values across the module's edge, made from WIT.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use wit_bindgen_core::Files;
use wit_parser::Resolve;

/// Writes `interpreter_plugin.h`, `interpreter_plugin.c` and the object with the component's type into `folder`.
pub(crate) fn generate(wit: &Path, folder: &Path) -> Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve
        .select_world(&[package], Some("interpreter-plugin"))
        .with_context(|| format!("looking for the world in {}", wit.display()))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default()
        .build()
        .generate(&mut resolve, world, &mut files)?;
    for (name, data) in files.iter() {
        fs::write(folder.join(name), data)?;
    }
    Ok(())
}
