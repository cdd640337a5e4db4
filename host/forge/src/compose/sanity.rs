//! Random walks: every operation succeeds in some state and is refused in some state, and no rule breaks.

use std::collections::BTreeSet;

use rlf_random::Key;
use rlf_specification::model::{Operation, Size};
use rlf_specification::{Program, Refusal, walk as draw};

/// Seeds of each scenario.
const SEEDS: u64 = 10;
/// Calls of one walk.
const CALLS: u64 = 100;
/// Seeds with which each scenario is only opened.
const OPENED: u64 = 4;

/// Walks from every scenario until everything was seen. The error is what did not happen, or what must not have.
pub(super) fn walk(program: &Program, key: Key) -> Result<(), String> {
    let operations = &program.specification().operations;
    for size in Size::ALL {
        for seed in 0..OPENED {
            program.open(size, seed)?;
        }
    }
    let mut succeeded: BTreeSet<&str> = BTreeSet::new();
    let mut refused: BTreeSet<&str> = BTreeSet::new();
    for seed in 0..SEEDS {
        for size in Size::ALL {
            let key = key.named(size.name()).at(seed);
            let mut state = program.open(size, key.value())?;
            for call in 0..CALLS {
                let key = key.at(call);
                let operation = next(operations, &succeeded, &refused, key);
                let arguments = draw::arguments(program, &state, operation, key.named("arguments"));
                match program.call(&mut state, &operation.name, &arguments) {
                    Ok(_) => {
                        succeeded.insert(&operation.name);
                    }
                    Err(Refusal::Refused(_)) => {
                        refused.insert(&operation.name);
                    }
                    Err(Refusal::Arguments(_)) => {}
                    Err(fault) => return Err(format!("`{}`: {fault}", operation.name)),
                }
            }
        }
        let all = |operation: &&Operation| {
            succeeded.contains(operation.name.as_str())
                && (refused.contains(operation.name.as_str()) || !is_refusable(operation))
        };
        // Two rounds at least, for faults that are rare.
        if seed >= 1 && operations.iter().all(|operation| all(&operation)) {
            return Ok(());
        }
    }
    for operation in operations {
        if !succeeded.contains(operation.name.as_str()) {
            return Err(format!("`{}` never succeeds", operation.name));
        }
        if is_refusable(operation) && !refused.contains(operation.name.as_str()) {
            return Err(format!("`{}` is never refused", operation.name));
        }
    }
    Ok(())
}

/// Whether anything can refuse an operation: one without a lookup and without a condition is always carried out.
pub(super) fn is_refusable(operation: &Operation) -> bool {
    !operation.preconditions.is_empty() || !operation.bindings.is_empty()
}

/// Any operation, more often one that has not been seen in both ways.
fn next<'a>(
    operations: &'a [Operation],
    succeeded: &BTreeSet<&str>,
    refused: &BTreeSet<&str>,
    key: Key,
) -> &'a Operation {
    let open: Vec<&Operation> = operations
        .iter()
        .filter(|operation| {
            let name = operation.name.as_str();
            !succeeded.contains(name) || is_refusable(operation) && !refused.contains(name)
        })
        .collect();
    if open.is_empty() || key.below(0, 2) == 0 {
        &operations[key.below(1, operations.len() as u64) as usize]
    } else {
        open[key.below(2, open.len() as u64) as usize]
    }
}
