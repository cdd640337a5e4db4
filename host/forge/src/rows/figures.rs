//! Figures of the rows that were made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::output::tools_text;
use super::rejection::Rejection;
use super::row::Row;

/// Minimum, median and maximum of several numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The minimum.
    pub least: usize,
    /// The median.
    pub median: usize,
    /// The mean.
    pub mean: f64,
    /// The maximum.
    pub most: usize,
}

impl Spread {
    fn new(counts: &BTreeMap<usize, usize>) -> Self {
        let total: usize = counts.values().sum();
        let sum: usize = counts.iter().map(|(value, count)| value * count).sum();
        let mut seen = 0;
        let median = counts.iter().find(|(_, count)| {
            seen += **count;
            2 * seen >= total
        });
        Self {
            least: counts.first_key_value().map_or(0, |(value, _)| *value),
            median: median.map_or(0, |(value, _)| *value),
            mean: sum as f64 / total.max(1) as f64,
            most: counts.last_key_value().map_or(0, |(value, _)| *value),
        }
    }
}

/// The figures of a run. They follow from the rows alone, not from the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Number of rows that were written.
    pub rows: usize,
    /// Number of rows that were asked for.
    pub wanted: usize,
    /// Number of candidates that were rejected.
    pub rejected: usize,
    /// Number of rejected candidates by stage and check, such as `verify: shortcut`.
    pub rejected_by: BTreeMap<String, usize>,
    /// Number of calls that verification made.
    pub calls: usize,
    /// Number of rows by scenario.
    pub scenarios: BTreeMap<String, usize>,
    /// Number of rows by split.
    pub splits: BTreeMap<String, usize>,
    /// Number of sub-answers per row.
    pub sub_answers: Spread,
    /// Number of tools per row.
    pub tools: Spread,
    /// Number of characters of the tools, per row.
    pub tool_characters: Spread,
    /// Number of lines per function.
    pub function_lines: Spread,
    /// Share of functions without an import.
    pub without_imports: f64,
    #[serde(skip)]
    counts: Counts,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Counts {
    sub_answers: BTreeMap<usize, usize>,
    tools: BTreeMap<usize, usize>,
    characters: BTreeMap<usize, usize>,
    lines: BTreeMap<usize, usize>,
    imports: usize,
}

impl Figures {
    /// Counts a row that is written.
    pub fn add(&mut self, row: &Row) {
        self.rows += 1;
        *self.scenarios.entry(row.scenario.to_string()).or_default() += 1;
        *self.splits.entry(row.split.to_string()).or_default() += 1;
        let counts = &mut self.counts;
        *counts.sub_answers.entry(row.calls.len()).or_default() += 1;
        *counts.tools.entry(row.tools.len()).or_default() += 1;
        let characters = tools_text(&row.tools).chars().count();
        *counts.characters.entry(characters).or_default() += 1;
        for tool in &row.tools {
            let lines = tool.source.trim().lines().count();
            *counts.lines.entry(lines).or_default() += 1;
            counts.imports += usize::from(tool.source.contains("import "));
        }
    }

    /// Counts a candidate that was rejected.
    pub fn reject(&mut self, rejection: &Rejection) {
        self.rejected += 1;
        let reason = format!("{}: {}", rejection.stage, rejection.check);
        *self.rejected_by.entry(reason).or_default() += 1;
    }

    /// Computes what follows from the counts.
    pub fn finish(&mut self, wanted: usize) {
        // Given questions are as many as they are.
        self.wanted = if wanted == usize::MAX {
            self.rows + self.rejected
        } else {
            wanted
        };
        let counts = &self.counts;
        self.sub_answers = Spread::new(&counts.sub_answers);
        self.tools = Spread::new(&counts.tools);
        self.tool_characters = Spread::new(&counts.characters);
        self.function_lines = Spread::new(&counts.lines);
        let functions: usize = counts.lines.values().sum();
        self.without_imports = 1.0 - counts.imports as f64 / functions.max(1) as f64;
    }
}
