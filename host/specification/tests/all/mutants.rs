//! Verification finds mutants of the examples.

use std::collections::BTreeMap;

use crate::examples::programs;
use crate::mutation::{assert_found, count, mutants};

#[test]
fn nearly_all_mutants_of_the_examples_are_found() {
    let mut counts = BTreeMap::new();
    for program in programs() {
        count(&program, mutants(program.specification()), &mut counts);
    }
    assert_found(&counts, 80);
}
