//! `rlf-host forge env compose`: writes environments that are composed from a seed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_forge::compose::figures::{Figures, Spread, figures};
use rlf_forge::compose::{Composed, Composition, Vocabulary, compose_with};
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
    let record = output.join(RECORD);
    refuse_other_seed(&record, seed)?;
    let bar = progress_bar(count);
    let mut kept = 0;
    let composition = compose_with(seed, count, vocabulary, |environment| {
        bar.inc(1);
        bar.set_message(environment.specification.name.clone());
        kept += usize::from(!write(environment, output, seed)?);
        anyhow::Ok(())
    });
    bar.finish_and_clear();
    let composition = composition?;
    rlf_files::write(&record, lines(&composition, seed).as_bytes())
        .with_context(|| format!("cannot write {}", record.display()))?;

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

/// Refuses a folder whose record is of another seed, because the record would be replaced.
fn refuse_other_seed(record: &Path, seed: u64) -> anyhow::Result<()> {
    let text = match fs::read_to_string(record) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {}", record.display()))?,
    };
    let line: Option<Value> = text
        .lines()
        .next()
        .and_then(|line| rlf_json::from_str(line).ok());
    match line.and_then(|line| line["seed"].as_u64()) {
        Some(other) if other != seed => bail!(
            "{} is of --seed {other}; name another folder with --output for seed {seed}, or move this one away",
            record.display()
        ),
        _ => Ok(()),
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
    rlf_files::write(&file, text.as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(true)
}

/// The environments and the rejected candidates, as JSON lines.
fn lines(composition: &Composition, seed: u64) -> String {
    let composed = composition
        .environments
        .iter()
        .map(|environment| composed_line(environment, seed));
    let rejected = composition.rejected.iter().map(|candidate| {
        json!({
            "rejected": candidate.name, "candidate": candidate.candidate, "check": candidate.check,
            "reason": candidate.reason,
        })
    });
    let mut lines = String::new();
    for line in composed.chain(rejected) {
        let _ = writeln!(lines, "{line}");
    }
    lines
}

fn composed_line(environment: &Composed, seed: u64) -> Value {
    let specification = &environment.specification;
    json!({
        "made": specification.name, "seed": seed, "domain": environment.domain, "archetypes": environment.archetypes,
        "entities": specification.entities.len(), "tools": specification.operations.len(),
        "structure": environment.structure.hash, "description": specification.description,
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
