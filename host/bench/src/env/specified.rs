//! A specification compared with its peers: its own export to Python, and tau-retail.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rlf_plugins::python_environment::Scenario;
use rlf_specification::{Format, check_text};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::Options;
use super::rounds::{AT_ONCE, Figures, OPERATIONS};
use super::sandboxed::MeasuredEnvironment;

/// A specification and what it is compared with.
pub(super) struct Specified {
    /// The specification. Its task names a whole state, because an exported file generates none.
    pub(super) given: Measurable,
    /// The specification, with a task that names a scenario. Its state is generated.
    pub(super) generated: Measurable,
    /// The export of the specification to Python, with the task of `given`.
    pub(super) export: Measurable,
}

/// An environment and the scenario that its sessions play.
pub(super) type Measurable = (MeasuredEnvironment, Arc<Scenario>);

impl Specified {
    /// Exports the specification into a folder. All three make the same calls from the same state.
    pub(super) fn new(
        options: &Options<'_>,
        folder: &Path,
        cache: &Path,
        runtime: &Runtime,
    ) -> anyhow::Result<Self> {
        let file = options.specification;
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let format = Format::from_path(file).unwrap_or(Format::Toml);
        let program = check_text(&text, format).program;
        let program = program.with_context(|| format!("{} has errors", file.display()))?;
        let name = &program.specification().name;
        let exported = folder.join(format!("{name}.py"));
        let exported_text = program.to_python()?;
        fs::write(&exported, exported_text)
            .with_context(|| format!("cannot write {}", exported.display()))?;
        let specified = |title: &str| {
            let mut specified = MeasuredEnvironment::specified(options, cache, file);
            specified.title = format!("{name}, {title}");
            specified
        };
        let mut export = MeasuredEnvironment::python(options, cache, &exported, name);
        export.title = format!("{name}, exported");
        let given = specified("specification");
        let scenario = runtime.block_on(given.scenario())?;
        let from_state = runtime.block_on(from_its_state(&given, &scenario))?;
        Ok(Self {
            given: (given, Arc::clone(&from_state)),
            generated: (specified("state generated"), scenario),
            export: (export, from_state),
        })
    }
}

/// Makes a scenario whose task is the state that it begins in.
async fn from_its_state(
    environment: &MeasuredEnvironment,
    scenario: &Scenario,
) -> anyhow::Result<Arc<Scenario>> {
    let environments = environment.environments(8)?;
    let opened = environments.open(&environment.name, "bench", &scenario.task, scenario.seed);
    let state = opened.await?.state().await.map_err(anyhow::Error::msg)?;
    let state: Value = serde_json::from_str(&state)?;
    Ok(Arc::new(Scenario {
        task: json!({ "servers": state }),
        ..scenario.clone()
    }))
}

/// Prints the operations per second of the specification, divided by those of each peer.
pub(super) fn compare(specified: &str, figures: &[(String, Figures)], peers: &[&str]) {
    let find = |title: &str| {
        let found = figures.iter().find(|(one, _)| one == title);
        found.map(|(_, figures)| figures)
    };
    let Some(own) = find(specified) else { return };
    println!("\n{specified}: operations a second, divided by those of its peers; 1 and 32 at once");
    for title in peers {
        let Some(peer) = find(title) else {
            println!("  {title}: not measured");
            continue;
        };
        let ratio = |what: &'static str, at_once| {
            let (own, peer) = (own.get(&(what, at_once))?, peer.get(&(what, at_once))?);
            Some(format!("{:.1}", own.per_s / peer.per_s))
        };
        let ratios = OPERATIONS.map(|what| {
            let both = AT_ONCE.map(|at_once| ratio(what, at_once).unwrap_or_else(|| "–".into()));
            format!("{what} {}", both.join(" / "))
        });
        println!("  {:<34}{}", format!("x {title}"), ratios.join(", "));
    }
}
