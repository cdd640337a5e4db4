//! `cargo xtask plugins`: builds guests to components, in folders that `rlf-host --plugins` reads.
//!
//! One call of cargo builds all guests that are crates, including those for tests. Building only some of them could
//! give them other features, and so other bytes and plugin hashes for the same sources. [`crate::features`] checks
//! that the plugins which the quickstart builds alone have the same features. The Python interpreter is built when it
//! is stale itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    component, discovery,
    guests::{self, Family, Guest, Maker},
    manifest::{self, Manifest, Record, Stale},
    project::Project,
    python, reproducible,
    steps::{self, say},
    with_c,
};

/// The folder of built plugins, for a test that runs them. It is an error if any plugin is missing or older than its
/// sources. This function starts no compiler.
pub fn ready(project: &Project, family: Family) -> Result<PathBuf> {
    let folder = family.built(project);
    let record = Manifest::read(&folder);
    let sources = family.sources(project);
    let mut names: BTreeSet<String> = record.components.keys().cloned().collect();
    let with_sources = folders(&sources)?.into_iter();
    names.extend(
        with_sources
            .filter(|(_, path)| path.join("Cargo.toml").is_file())
            // A library that guests share is none.
            .filter(|(_, path)| path.join("plugin.toml").is_file())
            // Guests with C inside may have been left out.
            .filter(|(_, path)| !with_c::is_member(path))
            .map(|(name, _)| name),
    );
    for name in &names {
        if let Some(stale) = record.stale(project.root(), &folder, name, &sources.join(name))? {
            bail!("plugin {name}: {stale}; type `cargo xtask plugins`");
        }
    }
    if names.is_empty() {
        bail!("{} contains no guest", project.display(&sources));
    }
    Ok(folder)
}

/// Prints which plugins are stale; an error if any is.
pub fn check(project: &Project) -> Result<()> {
    let guests = discovery::guests(project)?;
    let folders = BuiltFolder::all(project);
    let mut stale = 0;
    for guest in &guests {
        let built = BuiltFolder::for_family(&folders, guest.family);
        match built.stale(project, guest)? {
            None => say(&format!("  {:24} fresh", guest.name)),
            Some(Stale::New) if matches!(guest.maker, Maker::WithC { .. } | Maker::Science) => {
                say(&format!("  {:24} left out", guest.name));
            }
            Some(reason) => {
                stale += 1;
                say(&format!("  {:24} stale: {reason}", guest.name));
            }
        }
    }
    for built in &folders {
        for name in built.foreign(&guests)? {
            stale += 1;
            say(&format!("  {name:24} stale: it has no sources"));
        }
    }
    if stale > 0 {
        bail!("{stale} plugins are stale: type `cargo xtask plugins`");
    }
    Ok(())
}

/// Builds stale plugins, puts everything in its folder and removes plugins that have no sources. The interpreter with numpy
/// is only built if it was built before.
pub fn build(project: &Project) -> Result<()> {
    let built = Manifest::read(&Family::OnRequest.built(project)).components;
    build_some(project, |guest| {
        guest.family != Family::OnRequest || built.contains_key(&guest.name)
    })
}

/// Builds only the first-party plugins with these names, if any of them is stale.
pub fn build_named(project: &Project, names: &BTreeSet<String>) -> Result<()> {
    let is_named =
        |guest: &Guest| guest.family == Family::FirstParty && names.contains(&guest.name);
    build_some(project, is_named)
}

/// Builds only the Python interpreter, if it is stale.
pub fn build_python(project: &Project) -> Result<()> {
    build_some(project, |guest| matches!(guest.maker, Maker::Python))
}

/// Builds only the interpreter with numpy and similar packages, if it is stale.
pub fn build_science(project: &Project) -> Result<()> {
    build_some(project, |guest| matches!(guest.maker, Maker::Science))
}

/// Builds only the guests with C inside, if any of them is stale.
pub fn build_with_c(project: &Project) -> Result<()> {
    build_some(project, |guest| matches!(guest.maker, Maker::WithC { .. }))
}

fn build_some(project: &Project, wanted: impl Fn(&Guest) -> bool) -> Result<()> {
    let guests = discovery::guests(project)?;
    let rustc = steps::output(project.command("rustc").arg("-vV"))?;
    let mut folders = BuiltFolder::all(project);
    for built in &mut folders {
        built.clear(project, &guests, &rustc)?;
    }
    let mut stale = Vec::new();
    for guest in guests.iter().filter(|guest| wanted(guest)) {
        if let Some(reason) =
            BuiltFolder::for_family(&folders, guest.family).stale(project, guest)?
        {
            say(&format!("  {}: {reason}", guest.name));
            stale.push(guest);
        }
    }
    if stale.is_empty() {
        let wanted = guests.iter().filter(|guest| wanted(guest)).count();
        let plugins = if wanted == 1 {
            "plugin is"
        } else {
            "plugins are"
        };
        say(&format!("  {wanted} {plugins} up to date"));
        return Ok(());
    }
    let is_crate = |guest: &&Guest| matches!(guest.maker, Maker::Cargo { .. });
    let has_c = |guest: &&Guest| matches!(guest.maker, Maker::WithC { .. });
    // A batch is all wanted crates of a workspace; each guest that is not a crate is a batch of one.
    let mut batches: Vec<Vec<&Guest>> = Vec::new();
    let is_wanted = |guest: &&Guest| wanted(guest);
    if stale.iter().any(is_crate) {
        batches.push(guests.iter().filter(is_crate).filter(is_wanted).collect());
    }
    if stale.iter().any(has_c) {
        let batch: Vec<&Guest> = guests.iter().filter(has_c).collect();
        match with_c::compiler(project) {
            Ok(_) => batches.push(batch),
            Err(reason) => leave_out(project, &mut folders, &batch, &reason)?,
        }
    }
    stale.retain(|guest| !is_crate(guest) && !has_c(guest));
    batches.extend(stale.into_iter().map(|guest| vec![guest]));
    for batch in batches {
        make(project, &mut folders, &batch)?;
        let filled = |built: &&BuiltFolder| batch.iter().any(|guest| guest.family == built.family);
        for built in folders.iter().filter(filled) {
            // The record is written now, so that a later failure does not lose it.
            built.record.write(&built.folder)?;
            say(&format!("  in {}", project.display(&built.folder)));
        }
    }
    Ok(())
}

/// Prints why `guests` are not built, and removes older builds of them.
fn leave_out(
    project: &Project,
    folders: &mut [BuiltFolder; 3],
    guests: &[&Guest],
    reason: &anyhow::Error,
) -> Result<()> {
    let names: Vec<&str> = guests.iter().map(|guest| &*guest.name).collect();
    say(&format!("  not built: {}: {reason:#}", names.join(" and ")));
    for guest in guests {
        for built in folders
            .iter_mut()
            .filter(|built| built.family == guest.family)
        {
            built.record.components.remove(&guest.name);
            let folder = built.folder.join(&guest.name);
            if folder.is_dir() {
                fs::remove_dir_all(&folder)
                    .with_context(|| format!("{} cannot be removed", project.display(&folder)))?;
            }
        }
    }
    Ok(())
}

/// Builds `guests`, one batch, and puts them into their folders and records.
fn make(project: &Project, folders: &mut [BuiltFolder; 3], guests: &[&Guest]) -> Result<()> {
    // The sources are hashed before they are compiled, so that an edit made meanwhile counts as a change next time.
    let sources = guests
        .iter()
        .map(|guest| manifest::hash_inputs(project.root(), &guest.inputs))
        .collect::<Result<Vec<_>>>()?;
    let components = compile(project, guests)?;
    for ((guest, source), component) in guests.iter().zip(sources).zip(components) {
        let built = folders
            .iter_mut()
            .find(|built| built.family == guest.family);
        let built = built.context("every family has a folder")?;
        let component = built
            .install(guest, &component)
            .with_context(|| format!("guest {}", guest.name))?;
        let inputs = guest.inputs.clone();
        let record = Record {
            inputs,
            source,
            component,
        };
        built.record.components.insert(guest.name.clone(), record);
    }
    Ok(())
}

/// The components of `guests`, in their order. One cargo builds the crates, other makers build the rest.
fn compile(project: &Project, guests: &[&Guest]) -> Result<Vec<PathBuf>> {
    let release = project.guests_target().join(guests::TARGET).join("release");
    let mut components = Vec::new();
    let (mut packages, mut workspace, mut c) = (Vec::new(), None, None);
    for guest in guests {
        components.push(match &guest.maker {
            Maker::Cargo { package, artifact } => {
                packages.push(package);
                workspace = Some(guests::workspace(project));
                release.join(artifact)
            }
            Maker::WithC { package, artifact } => {
                packages.push(package);
                workspace = Some(with_c::workspace(project));
                c = Some(with_c::compiler(project)?);
                release.join(artifact)
            }
            Maker::Python => python::build(project)?,
            Maker::Science => python::build_science(project)?,
        });
    }
    let Some(workspace) = workspace else {
        return Ok(components);
    };
    let mut command = project.cargo("build");
    command
        .args(["--locked", "--release", "--target", guests::TARGET])
        .arg("--manifest-path")
        .arg(workspace)
        .arg("--target-dir")
        .arg(project.guests_target());
    for package in packages {
        command.args(["--package", package]);
    }
    // The host may be compiled at the same time: one bar of progress is enough.
    command.env("CARGO_TERM_PROGRESS_WHEN", "never");
    reproducible::apply(project, &mut command)?;
    if let Some(c) = c {
        with_c::apply(project, &c, &mut command)?;
    }
    if !steps::status(&mut command)?.success() {
        bail!("the guests do not compile: see the first error above");
    }
    Ok(components)
}

/// A folder of built plugins and its record.
struct BuiltFolder {
    family: Family,
    folder: PathBuf,
    record: Manifest,
}

impl BuiltFolder {
    fn all(project: &Project) -> [Self; 3] {
        Family::ALL.map(|family| {
            let folder = family.built(project);
            let record = Manifest::read(&folder);
            Self {
                family,
                folder,
                record,
            }
        })
    }

    fn for_family(folders: &[Self; 3], family: Family) -> &Self {
        let [first_party, test, on_request] = folders;
        match family {
            Family::FirstParty => first_party,
            Family::Test => test,
            Family::OnRequest => on_request,
        }
    }

    fn stale(&self, project: &Project, guest: &Guest) -> Result<Option<manifest::Stale>> {
        // It was made from other inputs: the other build of an interpreter.
        let record = self.record.components.get(&guest.name);
        if matches!(guest.maker, Maker::Python)
            && record.is_some_and(|record| record.inputs != guest.inputs)
        {
            return Ok(Some(manifest::Stale::Sources));
        }
        self.record
            .stale(project.root(), &self.folder, &guest.name, &guest.source)
    }

    /// Folders that belong to none of `guests`.
    fn foreign(&self, guests: &[Guest]) -> Result<Vec<String>> {
        let known = |name: &String| {
            guests
                .iter()
                .any(|guest| guest.family == self.family && guest.name == *name)
        };
        let mut names: Vec<String> = folders(&self.folder)?.into_keys().collect();
        names.retain(|name| !known(name));
        Ok(names)
    }

    /// Removes plugins without sources, and forgets components that another compiler built.
    fn clear(&mut self, project: &Project, guests: &[Guest], rustc: &str) -> Result<()> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("{} cannot be made", self.folder.display()))?;
        for name in self.foreign(guests)? {
            let path = self.folder.join(&name);
            say(&format!(
                "  removing {}: it has no sources",
                project.display(&path)
            ));
            fs::remove_dir_all(&path)
                .with_context(|| format!("{} cannot be removed", path.display()))?;
            self.record.components.remove(&name);
        }
        if self.record.rustc != rustc {
            self.record = Manifest {
                rustc: rustc.to_owned(),
                components: BTreeMap::new(),
            };
        }
        self.record.write(&self.folder)
    }

    /// Puts the built component and its `plugin.toml` in place; returns the component's hash.
    fn install(&self, guest: &Guest, built: &Path) -> Result<String> {
        let bytes = fs::read(built).with_context(|| format!("{} is missing", built.display()))?;
        component::check(&bytes).with_context(|| built.display().to_string())?;
        let folder = self.folder.join(&guest.name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let in_place = folder.join(&guest.name).with_extension("wasm");
        if fs::read(&in_place).ok().as_deref() != Some(&*bytes) {
            manifest::replace(&in_place, &bytes)?;
        }
        let toml = folder.join("plugin.toml");
        match fs::read(guest.source.join("plugin.toml")) {
            Ok(text) => manifest::replace(&toml, &text)?,
            // A guest without a manifest tests the defaults.
            Err(_) if toml.exists() => fs::remove_file(&toml)
                .with_context(|| format!("{} cannot be removed", toml.display()))?,
            Err(_) => {}
        }
        Ok(manifest::hash(&bytes))
    }
}

/// The folders in `folder`, by name; none if it does not exist.
fn folders(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let path = entry.context("a folder's entry cannot be read")?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default();
            found.insert(name.to_string_lossy().into_owned(), path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_told_to_build_a_plugin_that_is_not_built() {
        let root = tempfile::tempdir().unwrap();
        let project = Project::at(root.path());
        let source = root.path().join("plugins/adder");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("Cargo.toml"), "").unwrap();
        // A library that plugins share has no manifest.
        let library = ready(&project, Family::FirstParty).unwrap_err().to_string();
        assert!(library.contains("contains no guest"), "{library}");
        fs::write(source.join("plugin.toml"), "").unwrap();
        let error = ready(&project, Family::FirstParty).unwrap_err().to_string();
        assert_eq!(
            error,
            "plugin adder: not built yet; type `cargo xtask plugins`"
        );
    }

    #[test]
    fn a_folder_without_sources_is_removed_and_a_guest_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let project = Project::at(root.path());
        let built = root.path().join("target/plugins");
        for name in ["adder", "gone"] {
            fs::create_dir_all(built.join(name)).unwrap();
        }
        let adder = Guest {
            name: "adder".to_owned(),
            family: Family::FirstParty,
            maker: Maker::Python,
            source: root.path().join("plugins/adder"),
            inputs: Vec::new(),
        };
        let [mut folder, ..] = BuiltFolder::all(&project);
        folder.clear(&project, &[adder], "rustc").unwrap();
        assert!(built.join("adder").exists());
        assert!(!built.join("gone").exists());
    }
}
