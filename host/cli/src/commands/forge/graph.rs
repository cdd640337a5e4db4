//! `rlf-host forge graph`: draws the tool graph of specifications.

mod embeddings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use rlf_forge::graph::{Counts, Lexical, Tool, ToolGraph, specified_tools};
use rlf_forge::sampling::{SamplingOptions, Strategy, sample};
use rlf_specification::{Format, Specification, check};
use serde::Serialize;

use super::counted::counted;
use crate::arguments::{ForgeGraph, GroupOptions};
use crate::commands::env::{is_python, is_specification};
use crate::commands::specification::expanded;
use crate::display::printable;
use crate::warning::warn;

/// The output with `--json`.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    counts: Counts,
    chains: Option<Chains>,
    graph: &'a ToolGraph,
}

/// Counts of sampled and of valid chains.
#[derive(Debug, Clone, Copy, Serialize)]
struct Chains {
    sampled: u64,
    valid_topology: u64,
    valid_random_walk: u64,
}

pub(super) fn run(options: &ForgeGraph, forge: &GroupOptions) -> anyhow::Result<ExitCode> {
    refuse_python(&options.files)?;
    let specifications = expanded(&options.files)?
        .iter()
        .map(|file| specification(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let tools: Vec<Tool> = specifications.iter().flat_map(specified_tools).collect();
    let graph = if options.embeddings {
        let Some(embeddings) = embeddings::fetch(options, forge, &tools)? else {
            return Ok(ExitCode::SUCCESS);
        };
        ToolGraph::new(tools, &embeddings)?
    } else {
        let threshold = options.threshold.unwrap_or(Lexical::THRESHOLD);
        ToolGraph::new(tools, &Lexical { threshold })?
    };
    if let Some(output) = &options.output {
        let names: Vec<&str> = specifications.iter().map(|one| one.name.as_str()).collect();
        let page = graph.to_html(&title(&names));
        rlf_files::write(output, page.as_bytes())
            .with_context(|| format!("cannot write {}", output.display()))?;
    }
    let chains = chains(&graph, options);
    if forge.json {
        let answer = Answer {
            counts: graph.counts(),
            chains,
            graph: &graph,
        };
        say!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        show(&graph, chains, options.output.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses environments in Python: only specifications declare entities and results.
fn refuse_python(paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        if !is_python(path) || is_specification(path) {
            continue;
        }
        let what = if path.is_dir() {
            "has no specifications, only environments in Python"
        } else {
            "is an environment in Python"
        };
        bail!(
            "{} {what}; `rlf-host forge graph` takes specifications only, which end in .toml or .json",
            path.display()
        );
    }
    Ok(())
}

/// Reads a specification. Errors of the checks are only counted, because a graph can be drawn anyway.
fn specification(file: &Path) -> anyhow::Result<Specification> {
    let Some(format) = Format::from_path(file) else {
        bail!("{}: specifications end in .toml or .json", file.display());
    };
    let text = rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let specification = match rlf_specification::read(&text, format) {
        Ok(specification) => specification,
        Err(finding) => bail!("{}: {}", file.display(), printable(&finding.to_string())),
    };
    let errors = check(&specification)
        .findings
        .iter()
        .filter(|finding| finding.is_error())
        .count();
    if errors > 0 {
        warn(&format!(
            "{} has {}; `rlf-host forge env verify {}` shows them",
            file.display(),
            counted(errors, "error"),
            file.display()
        ));
    }
    Ok(specification)
}

/// The names of a few environments, or the number of many.
fn title(names: &[&str]) -> String {
    match names {
        [name] => format!("Tools of {name}"),
        names if names.len() <= 4 => format!("Tools of {}", names.join(", ")),
        names => format!("Tools of {} environments", names.len()),
    }
}

/// Samples chains with both strategies. None if no chain is asked for, or there is no tool.
fn chains(graph: &ToolGraph, options: &ForgeGraph) -> Option<Chains> {
    if options.chains == 0 || graph.tools().is_empty() {
        return None;
    }
    let parameters = SamplingOptions::default();
    let valid = |strategy| {
        let all = (0..options.chains)
            .filter_map(|index| sample(graph, strategy, &parameters, options.seed, index));
        all.filter(rlf_forge::sampling::Chain::is_valid).count() as u64
    };
    Some(Chains {
        sampled: options.chains,
        valid_topology: valid(Strategy::Topology),
        valid_random_walk: valid(Strategy::RandomWalk),
    })
}

fn show(graph: &ToolGraph, chains: Option<Chains>, output: Option<&PathBuf>) {
    let counts = graph.counts();
    let (similarity, threshold) = graph.similarity();
    say!(
        "{} of {}, {}, {}",
        counted(counts.tools, "tool"),
        counted(counts.servers, "server"),
        counted(counts.inputs, "input"),
        counted(counts.outputs, "output")
    );
    let from_user = counts.from_user_declared + counts.from_user_by_rule;
    say!(
        "{} {} from the user: {} as declared, {} by rule",
        counted(from_user, "input"),
        if from_user == 1 { "comes" } else { "come" },
        counts.from_user_declared,
        counts.from_user_by_rule
    );
    say!(
        "{} from outputs to inputs: {} by key, {} by the same values, {} by {similarity} (at least {threshold}); {} between \
         tools",
        counted(counts.links(), "edge"),
        counts.by_key,
        counts.by_type,
        counts.by_similarity,
        counts.depends
    );
    let details = graph.similarity_details().iter();
    let details: Vec<String> = details
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if !details.is_empty() {
        say!("{similarity}: {}", printable(&details.join(", ")));
    }
    if let Some(chains) = chains {
        let percent = |count: u64| 100.0 * count as f64 / chains.sampled as f64;
        say!(
            "{} each: {:.1} % of the topology-aware ones are valid, {:.1} % of the random walks",
            counted(chains.sampled as usize, "chain"),
            percent(chains.valid_topology),
            percent(chains.valid_random_walk)
        );
    }
    for one in graph.unfillable() {
        let kind = if one.required { "required" } else { "optional" };
        say!("{} ({kind}): {}", printable(&one.name), one.why.text());
    }
    if let Some(output) = output {
        say!("{}", output.display());
    }
}
