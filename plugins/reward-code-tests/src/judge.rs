//! Judging with Python where that is needed: the tests walked through once more, with the candidates' values
//! in the holes, in an interpreter that runs nothing of theirs.
//!
//! One program serves the whole group. A value can be made so that what is done with it takes for
//! ever; then the one who sent it has failed, and another program goes on with the others.

use std::collections::{BTreeMap, BTreeSet};

use rlf_plugin::execute::{self, Limits};
use rlf_plugin::serde_json::{self, Map, Value};

use crate::plan::{splitter, told};
use crate::row::Python;

/// The values that one candidate returned, by step.
pub(crate) type Values = BTreeMap<usize, Value>;

/// Which assertions hold, by candidate; at most `programs` are run. A candidate that is not in it could not be judged
/// with those.
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
        // They come in order, so that the first one was being judged when a program ended that says nothing of any. One that
        // did has spent its time on others: whoever is left begins the next.
        if verdicts.len() == before
            && let Some(stuck) = open.pop_first()
        {
            verdicts.insert(stuck, BTreeSet::new());
        }
    }
    Ok(verdicts)
}
