//! Verification finds mutants of composed environments.

#[path = "../../specification/tests/all/mutation.rs"]
mod mutation;

use std::collections::{BTreeMap, BTreeSet};

use mutation::{assert_found, count, mutants};
use rlf_forge::compose::{archetypes, compose};
use rlf_specification::check;

/// Number of environments that are composed.
const ENVIRONMENTS: usize = 85;
/// One in so many mutants is verified, because there are 20,000.
const EVERY: usize = 12;

#[test]
fn nearly_all_mutants_of_composed_environments_are_found() {
    let composition = compose(7, ENVIRONMENTS);
    let mut counts = BTreeMap::new();
    let mut used = BTreeSet::new();
    for (number, environment) in composition.environments.iter().enumerate() {
        used.extend(environment.archetypes.iter().cloned());
        let program = check(&environment.specification).program.unwrap();
        let all = mutants(&environment.specification).into_iter();
        let some = all.skip(number % EVERY).step_by(EVERY);
        count(&program, some, &mut counts);
    }
    assert_eq!(used.len(), archetypes().len());
    assert_found(&counts, 250);
}
