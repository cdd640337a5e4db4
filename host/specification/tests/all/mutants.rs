//! Mutants of the examples: a condition or an effect is dropped or turned, a reference is wrong. How many are found, by
//! the static checks or by walking.

use std::collections::{BTreeMap, BTreeSet};

use rlf_random::Key;
use rlf_specification::model::{Binding, Effect, Specification, Type};
use rlf_specification::{Program, Refusal, Size, check, walk};

use crate::examples::programs;

/// A changed specification, and the kind of the change.
type Mutant = (&'static str, String, Specification);

fn mutants(good: &Specification) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (index, operation) in good.operations.iter().enumerate() {
        let mut add =
            |what: &'static str,
             change: &mut dyn FnMut(&mut rlf_specification::model::Operation)| {
                let mut mutant = good.clone();
                change(&mut mutant.operations[index]);
                if mutant != *good {
                    all.push((what, format!("{}-{}", good.name, operation.name), mutant));
                }
            };
        for at in 0..operation.preconditions.len() {
            add("condition dropped", &mut |one| {
                drop(one.preconditions.remove(at));
            });
            add("condition turned", &mut |one| {
                one.preconditions[at].require =
                    format!("!({})", operation.preconditions[at].require);
            });
        }
        for at in 0..operation.effects.len() {
            add("effect dropped", &mut |one| drop(one.effects.remove(at)));
            let values = match &operation.effects[at] {
                Effect::Insert(effect) => effect.values.clone(),
                Effect::Set(effect) => effect.values.clone(),
                _ => BTreeMap::new(),
            };
            for (field, value) in values {
                let turned = if value.contains(" + ") {
                    value.replace(" + ", " - ")
                } else {
                    value.replace(" - ", " + ")
                };
                add("effect turned", &mut |one| match &mut one.effects[at] {
                    Effect::Insert(effect) => {
                        drop(effect.values.insert(field.clone(), turned.clone()));
                    }
                    Effect::Set(effect) => {
                        drop(effect.values.insert(field.clone(), turned.clone()));
                    }
                    _ => {}
                });
            }
        }
        for entity in &good.entities {
            for at in 0..operation.bindings.len() {
                add("wrong reference", &mut |one| {
                    if let Binding::Find(lookup) = &mut one.bindings[at] {
                        lookup.entity.clone_from(&entity.name);
                    }
                });
            }
            for at in 0..operation.parameters.len() {
                add("wrong reference", &mut |one| {
                    if let Type::Reference(of) = &mut one.parameters[at].kind {
                        of.clone_from(&entity.name);
                    }
                });
            }
            for at in 0..operation.result.fields.len() {
                add("wrong reference", &mut |one| {
                    if let Type::Reference(of) = &mut one.result.fields[at].kind {
                        of.clone_from(&entity.name);
                    }
                });
            }
            for at in 0..operation.effects.len() {
                add("wrong reference", &mut |one| match &mut one.effects[at] {
                    Effect::Insert(effect) => effect.entity.clone_from(&entity.name),
                    Effect::Set(effect) => effect.entity.clone_from(&entity.name),
                    Effect::Delete(effect) => effect.entity.clone_from(&entity.name),
                    Effect::Assign(_) => {}
                });
            }
        }
    }
    all
}

/// What walking complains about: a state that does not load, an operation that is undone, that never succeeds or is
/// never refused.
fn complaints(program: &Program) -> BTreeSet<String> {
    let operations = &program.specification().operations;
    let mut ended = vec![(0, 0); operations.len()];
    let mut found = BTreeSet::new();
    for size in Size::ALL {
        for seed in 0..6 {
            let Ok(mut state) = program.open(size, seed) else {
                found.insert(format!("{} does not load", size.name()));
                continue;
            };
            for number in 0..60u64 {
                let key = Key::from_value(seed).named(size.name()).at(number);
                let index = key.below(0, operations.len() as u64) as usize;
                let arguments = walk::arguments(program, &state, &operations[index], key.at(1));
                match program.call(&mut state, &operations[index].name, &arguments) {
                    Ok(_) => ended[index].0 += 1,
                    Err(Refusal::Undone(_)) => {
                        found.insert(format!("{} is undone", operations[index].name));
                    }
                    Err(_) => ended[index].1 += 1,
                }
            }
        }
    }
    for (operation, (succeeded, refused)) in operations.iter().zip(ended) {
        if succeeded == 0 {
            found.insert(format!("{} never succeeds", operation.name));
        }
        if refused == 0 {
            found.insert(format!("{} is never refused", operation.name));
        }
    }
    found
}

#[test]
fn most_mutants_are_found_and_all_wrong_references() {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for program in programs() {
        // Some operations have no conditions, so nothing refuses them. What the good one has does not count.
        let accepted = complaints(&program);
        for (what, place, mutant) in mutants(program.specification()) {
            let checked = check(&mutant);
            let walked = |program| !complaints(&program).is_subset(&accepted);
            let found = !checked.findings.is_empty() || checked.program.is_none_or(walked);
            let count = counts.entry(what).or_default();
            count.0 += usize::from(found);
            count.1 += 1;
            if !found {
                println!("missed: {what} in {place}");
            }
        }
    }
    let (found, all) = counts
        .values()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    for (what, (found, all)) in &counts {
        println!("{what}: {found} of {all}");
    }
    println!(
        "mutants found: {found} of {all} ({:.1} %)",
        100.0 * found as f64 / all as f64
    );
    assert_eq!(counts["wrong reference"].0, counts["wrong reference"].1);
    assert!(found * 100 >= all * 80, "{found} of {all}");
}
