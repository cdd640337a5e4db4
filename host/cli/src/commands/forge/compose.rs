//! `rlf-host forge env compose`: writes environments that are composed from a seed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_forge::compose::figures::{Figures, Spread, figures};
use rlf_forge::compose::{Composed, Composition, compose};
use serde_json::{Value, json};

/// The file of what was made and rejected, one JSON object a line.
const RECORD: &str = "composed.jsonl";

/// Composes environments and writes each to `OUTPUT/Name.toml`. Files that are there and the same are kept.
pub(super) fn run(seed: u64, count: usize, output: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let composition = compose(seed, count);
    let mut files = Vec::new();
    for environment in &composition.environments {
        let file = output.join(format!("{}.toml", environment.specification.name));
        let text = toml::to_string(&environment.specification).with_context(|| {
            format!(
                "{} cannot be written as TOML",
                environment.specification.name
            )
        })?;
        let there = match fs::read_to_string(&file) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", file.display()));
            }
        };
        if there.as_ref().is_some_and(|there| *there != text) {
            bail!(
                "{} is there and differs from what seed {seed} composes; name another folder with --output, or move it away",
                file.display()
            );
        }
        files.push((file, text, there.is_some()));
    }
    // Nothing is written until it is known that nothing is lost.
    fs::create_dir_all(output)
        .with_context(|| format!("cannot make the folder {}", output.display()))?;
    for (file, text, _) in files.iter().filter(|(_, _, is_there)| !is_there) {
        rlf_files::write(file, text.as_bytes())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let record = output.join(RECORD);
    rlf_files::write(&record, lines(&composition, seed).as_bytes())
        .with_context(|| format!("cannot write {}", record.display()))?;

    let kept = files.iter().filter(|(_, _, is_there)| *is_there).count();
    let figures = figures(&composition);
    if json {
        let report = json!({
            "seed": seed, "output": output, "written": files.len() - kept, "kept": kept, "figures": figures,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show(&figures, output, files.len() - kept, kept);
    }
    if figures.environments < count {
        bail!(
            "only {} of {count} environments have structures of their own; ask for fewer",
            figures.environments
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What was made and rejected, as JSON lines.
fn lines(composition: &Composition, seed: u64) -> String {
    let made = composition
        .environments
        .iter()
        .map(|environment| made(environment, seed));
    let rejected = composition.rejected.iter().map(|candidate| {
        json!({
            "rejected": candidate.name, "candidate": candidate.candidate, "check": candidate.check,
            "reason": candidate.reason,
        })
    });
    let mut lines = String::new();
    for line in made.chain(rejected) {
        let _ = writeln!(lines, "{line}");
    }
    lines
}

fn made(environment: &Composed, seed: u64) -> Value {
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
        .map(|(check, count)| format!("{check} {count}"))
        .collect();
    let total: usize = figures.rejected.values().sum();
    let reasons = if rejected.is_empty() {
        String::new()
    } else {
        format!(" ({})", counts(rejected))
    };
    say!("rejected candidates: {total}{reasons}; {RECORD} says why");
}
