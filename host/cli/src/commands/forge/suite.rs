//! Reading the environments that tasks are made in.

mod python;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rlf_forge::tasks::sandboxed::Observed;
use rlf_forge::tasks::{Folder, Suite};
use rlf_specification::Program;
use serde_json::Value;

use crate::arguments::GroupOptions;
use crate::commands::env::is_python;
use crate::commands::specification::{expanded, program};

/// The record that `forge env compose` leaves beside its files. It knows their domains.
const COMPOSED: &str = "composed.jsonl";

/// Environments and their files.
pub(super) struct Read {
    pub(super) suite: Suite,
    /// The file of each environment, by the environment's name.
    pub(super) files: BTreeMap<String, PathBuf>,
    /// The observed servers, if the environments are in Python.
    pub(super) observed: Vec<Observed>,
}

/// Reads specifications from files and folders, or the servers of one folder of Python files. `before` is a folder of
/// tasks that may know what is observed of these servers.
pub(super) fn read(
    forge: &GroupOptions,
    paths: &[PathBuf],
    before: Option<&Folder>,
) -> anyhow::Result<Read> {
    if paths.iter().any(|path| is_python(path)) {
        let [path] = paths else {
            bail!(
                "environments in Python are given as one folder or one file, and without specifications, because all rows of a \
                 run name the same environment plugin; put the files into one folder"
            );
        };
        return python::read(forge, path, before);
    }
    specifications(paths)
}

/// Reads specifications from files and folders.
fn specifications(paths: &[PathBuf]) -> anyhow::Result<Read> {
    let files = expanded(paths)?;
    let mut programs: Vec<(Program, String)> = Vec::with_capacity(files.len());
    let mut by_name = BTreeMap::new();
    let mut domains: BTreeMap<PathBuf, BTreeMap<String, String>> = BTreeMap::new();
    for file in files {
        let program = program(&file)?;
        let name = program.specification().name.clone();
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        if !domains.contains_key(&folder) {
            domains.insert(folder.clone(), composed_domains(&folder)?);
        }
        let domain = domains[&folder].get(&name);
        programs.push((
            program,
            domain.cloned().unwrap_or_else(|| "other".to_owned()),
        ));
        by_name.insert(name, file);
    }
    Ok(Read {
        suite: Suite::from_programs(programs)?,
        files: by_name,
        observed: Vec::new(),
    })
}

/// The environments of a folder of tasks.
pub(super) fn from_folder(folder: &Folder) -> anyhow::Result<Suite> {
    let path = folder.environments();
    if !path.is_dir() {
        let shown = folder.path().display();
        if !folder.path().exists() {
            bail!("there is no folder {shown}; name one that `rlf-host forge tasks` has made");
        }
        bail!(
            "{shown} was not made by `rlf-host forge tasks`: it has no folder `environments`; name the folder of its --output"
        );
    }
    let suite = if folder.observed().is_file() {
        Suite::from_records(observed(folder)?)?
    } else {
        specifications(&[path])?.suite
    };
    folder.check_environments(&suite)?;
    Ok(suite)
}

/// The observed servers of a folder of tasks.
fn observed(folder: &Folder) -> anyhow::Result<Vec<Observed>> {
    let record = folder.observed();
    let text = std::fs::read_to_string(&record)
        .with_context(|| format!("cannot read {}", record.display()))?;
    rlf_json::from_str(&text).with_context(|| {
        format!(
            "{} is not what `rlf-host forge tasks` writes",
            record.display()
        )
    })
}

/// The domains of composed environments, by name.
fn composed_domains(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let file = folder.join(COMPOSED);
    let text = match rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let mut domains = BTreeMap::new();
    for line in text.lines() {
        let line: Value = rlf_json::from_str(line).with_context(|| {
            format!("{} is not what `forge env compose` writes", file.display())
        })?;
        if let (Some(name), Some(domain)) = (line["made"].as_str(), line["domain"].as_str()) {
            domains.insert(name.to_owned(), domain.to_owned());
        }
    }
    Ok(domains)
}

/// Copies the environments and their domains into a folder of tasks, so that it can be used alone.
pub(super) fn keep(read: &Read, folder: &Folder) -> anyhow::Result<()> {
    let to = folder.environments();
    std::fs::create_dir_all(&to)
        .with_context(|| format!("cannot make the folder {}", to.display()))?;
    for (name, file) in &read.files {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let copy = to.join(format!("{name}.{}", extension.unwrap_or("toml")));
        let text =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        if std::fs::read(&copy).ok().as_deref() != Some(&text) {
            rlf_files::write(&copy, &text)
                .with_context(|| format!("cannot write {}", copy.display()))?;
        }
    }
    if !read.observed.is_empty() {
        let record = folder.observed();
        let text = serde_json::to_vec(&read.observed)?;
        return rlf_files::write(&record, &text)
            .with_context(|| format!("cannot write {}", record.display()));
    }
    let domains: Vec<String> = read
        .suite
        .environments()
        .iter()
        .map(|one| serde_json::json!({ "made": one.name, "domain": one.domain }).to_string())
        .collect();
    let record = to.join(COMPOSED);
    rlf_files::write(&record, (domains.join("\n") + "\n").as_bytes())
        .with_context(|| format!("cannot write {}", record.display()))
}
