//! Counts of a folder of tasks: what there is, and what was rejected.

mod page;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::pipeline::Made;
use super::record::{Implicit, TaskRecord};
use super::rejection::{Reason, Stage};
use super::suite::Suite;

/// Counts by name.
pub type Counts = BTreeMap<String, usize>;

/// Counts of tasks and of rejected candidates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Number of tasks.
    pub tasks: usize,
    /// Number of candidates that were tried for them.
    pub candidates: u64,
    /// Number of turns of all tasks.
    pub turns: usize,
    /// Number of gold calls of all tasks.
    pub calls: usize,
    /// Number of tasks by split.
    pub by_split: Counts,
    /// Number of tasks by what about them is unseen in training.
    pub by_unseen: Counts,
    /// Number of tasks by domain.
    pub by_domain: Counts,
    /// Number of tasks by the number of environments.
    pub by_servers: BTreeMap<usize, usize>,
    /// Number of tasks by the number of gold calls.
    pub by_calls: BTreeMap<usize, usize>,
    /// Number of tasks by the number of turns.
    pub by_turns: BTreeMap<usize, usize>,
    /// Number of turns by the number of gold calls.
    pub by_turn_calls: BTreeMap<usize, usize>,
    /// Number of tasks by the kinds of refinement. A task can have several, or none.
    pub by_implicit: Counts,
    /// Number of tasks by who wrote their words: the grammar, or a language model.
    pub by_author: Counts,
    /// Number of tasks by difficulty: the share of attempts of the solver that failed.
    pub by_difficulty: Counts,
    /// Number of environments that tasks use.
    pub environments_used: usize,
    /// Number of all environments.
    pub environments: usize,
    /// Number of tools that gold calls use.
    pub tools_used: usize,
    /// Number of tools of all environments.
    pub tools: usize,
    /// Names of the tools that no gold call uses.
    pub tools_unused: Vec<String>,
    /// Number of requests by the tool that they ask for.
    pub by_requested: Counts,
    /// Share of the tasks with the most frequent template of words.
    pub most_frequent_template: f64,
    /// Number of different templates.
    pub templates: usize,
    /// Number of rejected candidates by stage and reason.
    pub rejected: BTreeMap<Stage, BTreeMap<Reason, usize>>,
}

impl Statistics {
    /// Counts what was made.
    pub fn new(suite: &Suite, made: &Made) -> Self {
        let tasks = &made.tasks;
        let mut used = BTreeSet::new();
        let mut templates: BTreeMap<String, usize> = BTreeMap::new();
        for task in tasks {
            used.extend(
                task.turns
                    .iter()
                    .flat_map(|turn| &turn.calls)
                    .map(|call| &call.tool),
            );
            *templates.entry(template(task)).or_default() += 1;
        }
        let all: Vec<&String> = suite
            .environments()
            .iter()
            .flat_map(|environment| &environment.definitions)
            .map(|definition| &definition.name)
            .collect();
        let mut rejected: BTreeMap<Stage, BTreeMap<Reason, usize>> = BTreeMap::new();
        for one in &made.rejected {
            *rejected
                .entry(one.stage)
                .or_default()
                .entry(one.reason)
                .or_default() += 1;
        }
        let servers: BTreeSet<&String> =
            tasks.iter().flat_map(|task| task.servers.keys()).collect();
        let turns = tasks.iter().flat_map(|task| &task.turns);
        let calls = turns.clone().flat_map(|turn| &turn.calls);
        let requested = calls
            .filter(|call| call.requested)
            .map(|call| call.tool.clone());
        let most = templates.values().copied().max().unwrap_or_default();
        Self {
            tasks: tasks.len(),
            candidates: made.candidates,
            turns: turns.clone().count(),
            calls: tasks.iter().map(|task| task.measures.calls).sum(),
            by_split: counted(tasks.iter().map(|task| task.split.to_string())),
            by_unseen: counted(tasks.iter().map(|task| task.unseen.as_str().to_owned())),
            by_domain: counted(tasks.iter().map(|task| task.domain.clone())),
            by_servers: counted(tasks.iter().map(|task| task.servers.len())),
            by_calls: counted(tasks.iter().map(|task| task.measures.calls)),
            by_turns: counted(tasks.iter().map(|task| task.turns.len())),
            by_turn_calls: counted(turns.map(|turn| turn.calls.len())),
            by_implicit: counted(tasks.iter().flat_map(kinds)),
            by_author: counted(tasks.iter().map(|task| task.author.as_str().to_owned())),
            by_difficulty: counted(
                tasks
                    .iter()
                    .map(|task| format!("{:.2}", task.measures.difficulty)),
            ),
            environments_used: servers.len(),
            environments: suite.environments().len(),
            tools_used: used.len(),
            tools: all.len(),
            tools_unused: all
                .into_iter()
                .filter(|tool| !used.contains(tool))
                .cloned()
                .collect(),
            by_requested: counted(requested),
            most_frequent_template: most as f64 / tasks.len().max(1) as f64,
            templates: templates.len(),
            rejected,
        }
    }

    /// The tool that most requests ask for, and its share of all requests.
    pub fn most_requested(&self) -> Option<(&str, f64)> {
        let all: usize = self.by_requested.values().sum();
        let (tool, most) = self.by_requested.iter().max_by_key(|(_, count)| **count)?;
        Some((tool, *most as f64 / all as f64))
    }

    /// The counts as one HTML page that loads nothing.
    pub fn to_html(&self, title: &str) -> String {
        page::page(self, title)
    }
}

fn counted<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// The kinds of refinement of a task, or `plain`.
fn kinds(task: &TaskRecord) -> Vec<String> {
    let kinds: BTreeSet<Implicit> = task
        .turns
        .iter()
        .flat_map(|turn| turn.implicit.iter().copied())
        .collect();
    if kinds.is_empty() {
        return vec!["plain".to_owned()];
    }
    kinds
        .into_iter()
        .map(|kind| kind.as_str().to_owned())
        .collect()
}

fn template(task: &TaskRecord) -> String {
    let turns: Vec<&str> = task
        .turns
        .iter()
        .map(|turn| turn.template.as_str())
        .collect();
    turns.join("\n")
}
