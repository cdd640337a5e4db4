//! Judges with Python if that is needed: runs the tests once more, with the candidates' values in the holes, in an
//! interpreter that runs no candidate's code.
//!
//! One program serves the whole group. A value can be made so that using it takes forever. Then its candidate has
//! failed, and another program continues with the others.

use std::collections::{BTreeMap, BTreeSet};

use rlf_plugin::execute::{self, Limits};
use rlf_plugin::serde_json::{self, Map, Value};

use crate::plan::{splitter, told};
use crate::row::Python;

/// The values that one candidate returned, by step.
pub(crate) type Values = BTreeMap<usize, Value>;

/// The assertions that hold, by candidate; at most `programs` are run. A candidate that is missing here could not be
/// judged within that number.
pub(crate) fn judge(
    row: &Python,
    asked: &BTreeMap<usize, Values>,
    limits: Limits,
    seed: u64,
    programs: usize,
) -> Result<BTreeMap<usize, BTreeSet<usize>>, String> {
    let mut verdicts = BTreeMap::new();
    let mut open: BTreeSet<usize> = asked.keys().copied().collect();
    for _ in 0..programs {
        if open.is_empty() {
            break;
        }
        let values: Map<String, Value> = open
            .iter()
            .map(|candidate| {
                let values = asked[candidate]
                    .iter()
                    .map(|(step, value)| (step.to_string(), value.clone()));
                (candidate.to_string(), Value::Object(values.collect()))
            })
            .collect();
        let program = splitter(row, seed)
            .arguments(["main.py", "judge"])
            .limits(limits)
            .file("values.json", Value::Object(values).to_string());
        let report = execute::run_one(program).map_err(|error| told(&error))?;
        let mut printed = report.stdout.head;
        if report.stdout.omitted == 0 {
            printed.extend(report.stdout.tail);
        }
        let before = verdicts.len();
        for line in printed.split(|byte| *byte == b'\n') {
            if let Ok((candidate, holding)) =
                serde_json::from_slice::<(usize, BTreeSet<usize>)>(line)
            {
                open.remove(&candidate);
                verdicts.insert(candidate, holding);
            }
        }
        // Verdicts come in order. A program that ends without a verdict was judging its first candidate, so that one
        // failed. If it gave verdicts, its time went to others, and the first remaining candidate starts the next
        // program.
        if verdicts.len() == before
            && let Some(stuck) = open.pop_first()
        {
            verdicts.insert(stuck, BTreeSet::new());
        }
    }
    Ok(verdicts)
}
