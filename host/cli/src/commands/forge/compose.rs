//! `rlf-host forge env compose`: writes environments that are composed from a seed.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use console::style;
use rlf_files::{FolderLock, LOCK_FILE, LockError};
use rlf_forge::compose::figures::{Figures, Spread, figures};
use rlf_forge::compose::{Composed, Rejected, Vocabulary, compose_with};
use serde_json::{Value, json};

use crate::display::progress_bar;

/// The file of what was made and rejected, one JSON object a line.
const RECORD: &str = "composed.jsonl";

/// Composes environments and writes each to `OUTPUT/Name.toml` as soon as it is composed. Existing files with the same
/// contents are kept, so that an interrupted run continues.
pub(super) fn run(
    seed: u64,
    count: usize,
    vocabulary: Vocabulary,
    output: &Path,
    json: bool,
) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(output)
        .with_context(|| format!("cannot make the folder {}", output.display()))?;
    let _lock = lock(output)?;
    let mut record = Record::open(output.join(RECORD), seed, vocabulary)?;
    let bar = progress_bar(count);
    let mut kept = 0;
    let composition = compose_with(seed, count, vocabulary, |environment| {
        bar.inc(1);
        bar.set_message(environment.specification.name.clone());
        kept += usize::from(!write(environment, output, seed)?);
        record.add(composed_line(environment, seed, vocabulary))
    });
    bar.finish_and_clear();
    let composition = composition?;
    for candidate in &composition.rejected {
        record.add(rejected_line(candidate))?;
    }
    record.write()?;

    let figures = figures(&composition);
    let written = figures.environments - kept;
    if json {
        let report = json!({
            "seed": seed, "words": vocabulary, "output": output, "written": written, "kept": kept, "figures": figures,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show(&figures, output, written, kept);
    }
    if figures.environments < count {
        bail!(
            "only {} of {count} environments have structures of their own; ask for fewer",
            figures.environments
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the exclusive right to compose environments in a folder.
fn lock(folder: &Path) -> anyhow::Result<FolderLock> {
    FolderLock::take(folder).map_err(|error| match error {
        LockError::Held { .. } => anyhow!(
            "another process makes environments in {}; wait for its end, or name another folder with --output",
            folder.display()
        ),
        LockError::Io(error) => {
            let file = folder.join(LOCK_FILE);
            anyhow::Error::new(error).context(format!("cannot write {}", file.display()))
        }
    })
}

/// The record of a folder: a line for each environment that any run with this seed made there, and for each candidate
/// that it rejected.
struct Record {
    path: PathBuf,
    lines: Vec<Value>,
}

impl Record {
    /// Reads a record. Refuses one of another seed or of other words, because its environments would be mixed with
    /// those of this one. A line without words is of an earlier version, and fits any.
    fn open(path: PathBuf, seed: u64, vocabulary: Vocabulary) -> anyhow::Result<Self> {
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        // A run that was stopped leaves half a line, which cannot be read.
        let text = String::from_utf8_lossy(&bytes);
        let lines = text
            .lines()
            .filter_map(|line| rlf_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.collect();
        let other = lines.iter().find_map(|line| line["seed"].as_u64());
        if let Some(other) = other.filter(|other| *other != seed) {
            bail!(
                "{} is of --seed {other}; name another folder with --output for seed {seed}, or move this one away",
                path.display()
            );
        }
        let words = json!(vocabulary);
        let mut others = lines.iter().filter_map(|line| line.get("words"));
        if let Some(other) = others.find(|other| **other != words) {
            let (other, words) = (word(other), word(&words));
            bail!(
                "{} is of --words {other}; name another folder with --output for words {words}, or move this one away",
                path.display()
            );
        }
        let is_cut = !text.is_empty() && !text.ends_with('\n');
        let record = Self { path, lines };
        if is_cut {
            record.write()?;
        }
        Ok(record)
    }

    /// Adds a line in place of an earlier one on the same environment or candidate. A new line is in the file at once.
    fn add(&mut self, line: Value) -> anyhow::Result<()> {
        let is_same = |known: &&mut Value| {
            ["made", "rejected", "candidate"]
                .iter()
                .all(|key| known[*key] == line[*key])
        };
        if let Some(known) = self.lines.iter_mut().find(is_same) {
            *known = line;
            return Ok(());
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.lines.push(line);
        Ok(())
    }

    /// Writes all lines, environments first.
    fn write(&self) -> anyhow::Result<()> {
        let (made, rejected): (Vec<&Value>, Vec<&Value>) = self
            .lines
            .iter()
            .partition(|line| line.get("made").is_some());
        let mut text = String::new();
        for line in made.into_iter().chain(rejected) {
            let _ = writeln!(text, "{line}");
        }
        rlf_files::write(&self.path, text.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Writes an environment. Returns false if the same file is there already. A file with other contents is never
/// overwritten.
fn write(environment: &Composed, output: &Path, seed: u64) -> anyhow::Result<bool> {
    let name = &environment.specification.name;
    let file = output.join(format!("{name}.toml"));
    let text = toml::to_string(&environment.specification)
        .with_context(|| format!("{name} cannot be written as TOML"))?;
    match fs::read_to_string(&file) {
        Ok(there) if there == text => return Ok(false),
        Ok(_) => bail!(
            "{} is there and differs from what seed {seed} composes; name another folder with --output, or move it away",
            file.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
    rlf_files::write(&file, text.as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(true)
}

fn composed_line(environment: &Composed, seed: u64, vocabulary: Vocabulary) -> Value {
    let specification = &environment.specification;
    json!({
        "made": specification.name, "seed": seed, "words": vocabulary, "domain": environment.domain,
        "archetypes": environment.archetypes,
        "entities": specification.entities.len(), "tools": specification.operations.len(),
        "structure": environment.structure.hash, "description": specification.description,
    })
}

/// A word of a record, as the command line has it.
fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn rejected_line(candidate: &Rejected) -> Value {
    json!({
        "rejected": candidate.name, "candidate": candidate.candidate, "check": candidate.check,
        "reason": candidate.reason,
    })
}

fn show(figures: &Figures, output: &Path, written: usize, kept: usize) {
    let spread = |spread: Option<Spread>, decimals: usize| match spread {
        Some(spread) => format!(
            "{:.decimals$} / {:.decimals$} / {:.decimals$} / {:.decimals$} / {:.decimals$}",
            spread.least, spread.lower, spread.median, spread.upper, spread.most
        ),
        None => "none".to_owned(),
    };
    say!(
        "{} {} environments with {} tools in {} ({written} written, {kept} there already)",
        style("composed").bold(),
        figures.environments,
        figures.tools,
        output.display()
    );
    say!(
        "tools of an environment (least, quartiles, most): {}",
        spread(figures.tools_each, 0)
    );
    say!(
        "structures: {} different; distance to the nearest (least, quartiles, most): {}",
        figures.structures,
        spread(figures.nearest, 2)
    );
    let counts = |counts: Vec<String>| counts.join(", ");
    let domains = figures
        .domains
        .iter()
        .map(|(domain, count)| format!("{domain} {count}"));
    say!("domains: {}", counts(domains.collect()));
    let archetypes = figures
        .archetypes
        .iter()
        .map(|(archetype, count)| format!("{archetype} {count}"));
    say!("archetypes: {}", counts(archetypes.collect()));
    let rejected: Vec<String> = figures
        .rejected
        .iter()
        .map(|(check, count)| format!("{} {count}", check.as_str()))
        .collect();
    let total: usize = figures.rejected.values().sum();
    let reasons = if rejected.is_empty() {
        String::new()
    } else {
        format!(" ({})", counts(rejected))
    };
    say!("rejected candidates: {total}{reasons}; {RECORD} says why");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_the_lines_of_earlier_runs_even_after_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RECORD);
        let made = |name: &str| json!({"made": name, "seed": 3, "domain": "travel"});
        let rejected = |candidate: u64| json!({"rejected": "Ferry", "candidate": candidate});
        let open = |seed| Record::open(path.clone(), seed, Vocabulary::Real);
        let mut first = open(3).unwrap();
        for line in [made("Ferry"), rejected(0), made("Hotel")] {
            first.add(line).unwrap();
        }
        // It is stopped in the middle of a line, inside of a character.
        let cut = [&fs::read(&path).unwrap(), &b"{\"made\":\"Caf\xc3"[..]].concat();
        fs::write(&path, cut).unwrap();
        // A smaller run only makes the first environment, and rejects another candidate.
        let mut second = open(3).unwrap();
        for line in [made("Ferry"), rejected(1)] {
            second.add(line).unwrap();
        }
        second.write().unwrap();
        let expected = [made("Ferry"), made("Hotel"), rejected(0), rejected(1)];
        let expected = expected.map(|line| format!("{line}\n")).concat();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        let refused = open(4).err().expect("it has another seed");
        assert!(refused.to_string().contains("--seed 3"), "{refused}");
    }

    #[test]
    fn environments_of_other_words_are_not_mixed_with_those_of_a_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RECORD);
        let open = |vocabulary| Record::open(path.clone(), 3, vocabulary);
        // An earlier version kept no words.
        let old = json!({"made": "Ferry", "seed": 3});
        fs::write(&path, format!("{old}\n")).unwrap();
        let mut record = open(Vocabulary::Invented).unwrap();
        let new = json!({"made": "Hotel", "seed": 3, "words": Vocabulary::Invented});
        record.add(new).unwrap();
        assert!(open(Vocabulary::Invented).is_ok());
        let Err(refused) = open(Vocabulary::Real) else {
            panic!("a folder with two vocabularies");
        };
        assert!(
            refused.to_string().contains("--words invented"),
            "{refused}"
        );
    }

    #[test]
    fn a_folder_is_composed_into_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let Err(refused) = lock(folder.path()) else {
            panic!("two processes compose in one folder");
        };
        assert!(refused.to_string().contains("another process"), "{refused}");
        drop(held);
        assert!(lock(folder.path()).is_ok());
    }
}
