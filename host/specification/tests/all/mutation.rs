//! Mutants: good specifications with one change each, and how many of them verification finds.
//!
//! Verification is what `rlf-host forge env verify` does without a sandbox: the static checks, then random walks. A
//! mutant that it does not find is played against the original, to print a call that tells them apart. A mutant that no
//! call tells apart counts as missed, too: that does not prove that the two are equivalent.

use std::collections::{BTreeMap, BTreeSet};

use rlf_random::Key;
use rlf_specification::model::{
    Binding, Effect, Operation, OutcomeField, Size, Specification, Type,
};
use rlf_specification::play::{CALLS, Fault, Play, ROUNDS};
use rlf_specification::{Program, check, walk};

/// Rounds and calls of each walk that compares a mutant with the original.
const COMPARED: (u64, u64) = (50, 200);

const WRONG_REFERENCE: &str = "wrong reference";

/// A specification with one change.
pub(crate) struct Mutant {
    kind: &'static str,
    operation: usize,
    place: String,
    specification: Specification,
}

/// All mutants of a specification.
pub(crate) fn mutants(good: &Specification) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (index, operation) in good.operations.iter().enumerate() {
        let mut add = |kind: &'static str, detail: &str, change: &dyn Fn(&mut Operation)| {
            let mut specification = good.clone();
            change(&mut specification.operations[index]);
            if specification != *good {
                all.push(Mutant {
                    kind,
                    operation: index,
                    place: format!("{}-{}: {detail}", good.name, operation.name),
                    specification,
                });
            }
        };
        conditions(operation, &mut add);
        effects(operation, &mut add);
        results(operation, &mut add);
        references(good, operation, &mut add);
    }
    all
}

type Add<'a> = dyn FnMut(&'static str, &str, &dyn Fn(&mut Operation)) + 'a;

fn conditions(operation: &Operation, add: &mut Add<'_>) {
    for (at, condition) in operation.preconditions.iter().enumerate() {
        add("condition dropped", &condition.require, &|one| {
            drop(one.preconditions.remove(at));
        });
        add("condition turned", &condition.require, &|one| {
            one.preconditions[at].require = format!("!({})", condition.require);
        });
    }
}

fn effects(operation: &Operation, add: &mut Add<'_>) {
    for (at, effect) in operation.effects.iter().enumerate() {
        add("effect dropped", &format!("{effect:?}"), &|one| {
            drop(one.effects.remove(at));
        });
        let values = match effect {
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
            add("effect turned", &value, &|one| {
                let values = match &mut one.effects[at] {
                    Effect::Insert(effect) => &mut effect.values,
                    Effect::Set(effect) => &mut effect.values,
                    _ => return,
                };
                values.insert(field.clone(), turned.clone());
            });
        }
    }
}

/// A field of the result has the value of the next field of the same type, or they have each other's.
fn results(operation: &Operation, add: &mut Add<'_>) {
    let fields = &operation.result.fields;
    for (at, field) in fields.iter().enumerate() {
        let is_same = |other: &&OutcomeField| {
            other.kind == field.kind && other.optional == field.optional && other.name != field.name
        };
        let others = fields[at..].iter().chain(&fields[..at]);
        if let Some(other) = others.into_iter().find(is_same) {
            let detail = format!("{} and {}", field.name, other.name);
            add("result repeated", &detail, &|one| {
                one.result.fields[at].value.clone_from(&other.value);
            });
            add("results exchanged", &detail, &|one| {
                for each in &mut one.result.fields {
                    if each.name == field.name {
                        each.value.clone_from(&other.value);
                    } else if each.name == other.name {
                        each.value.clone_from(&field.value);
                    }
                }
            });
        }
    }
}

fn references(good: &Specification, operation: &Operation, add: &mut Add<'_>) {
    for entity in &good.entities {
        for at in 0..operation.bindings.len() {
            add(WRONG_REFERENCE, &entity.name, &|one| {
                if let Binding::Find(lookup) = &mut one.bindings[at] {
                    lookup.entity.clone_from(&entity.name);
                }
            });
        }
        for at in 0..operation.parameters.len() {
            add(WRONG_REFERENCE, &entity.name, &|one| {
                if let Type::Reference(of) = &mut one.parameters[at].kind {
                    of.clone_from(&entity.name);
                }
            });
        }
        for at in 0..operation.result.fields.len() {
            add(WRONG_REFERENCE, &entity.name, &|one| {
                if let Type::Reference(of) = &mut one.result.fields[at].kind {
                    of.clone_from(&entity.name);
                }
            });
        }
        for at in 0..operation.effects.len() {
            add(
                WRONG_REFERENCE,
                &entity.name,
                &|one| match &mut one.effects[at] {
                    Effect::Insert(effect) => effect.entity.clone_from(&entity.name),
                    Effect::Set(effect) => effect.entity.clone_from(&entity.name),
                    Effect::Delete(effect) => effect.entity.clone_from(&entity.name),
                    Effect::Assign(_) => {}
                },
            );
        }
    }
}

/// Counts of mutants.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Count {
    found: usize,
    missed: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.found += other.found;
        self.missed += other.missed;
    }

    fn share(&self) -> f64 {
        self.found as f64 / (self.found + self.missed) as f64
    }
}

/// Verifies mutants of a program. Adds to the counts of each kind, and prints every one that is missed.
pub(crate) fn count(
    program: &Program,
    mutants: impl IntoIterator<Item = Mutant>,
    counts: &mut BTreeMap<&'static str, Count>,
) {
    // Findings on the good specification say nothing about a mutant.
    let accepted = causes(program, None);
    for mutant in mutants {
        let checked = check(&mutant.specification);
        let count = counts.entry(mutant.kind).or_default();
        let (true, Some(changed)) = (checked.findings.is_empty(), checked.program) else {
            count.found += 1;
            continue;
        };
        if causes(&changed, Some(&accepted)).is_subset(&accepted) {
            count.missed += 1;
            let difference = difference(program, &changed, mutant.operation);
            let difference = difference.unwrap_or_else(|| "no call tells it apart".to_owned());
            println!("missed: {} in {}: {difference}", mutant.kind, mutant.place);
        } else {
            count.found += 1;
        }
    }
}

/// The causes of the faults that `play::verify` finds. Ends early with a fault that is not accepted.
fn causes(program: &Program, accepted: Option<&BTreeSet<String>>) -> BTreeSet<String> {
    let cause = |fault: &Fault| {
        let (place, kind) = fault.cause();
        format!("{place} {kind}")
    };
    let mut play = Play::new(program, Key::from_value(11));
    for round in 0..ROUNDS {
        play.round(round, CALLS);
        let so_far: BTreeSet<String> = play.faults().map(cause).collect();
        if accepted.is_some_and(|accepted| !so_far.is_subset(accepted)) {
            return so_far;
        }
    }
    play.into_faults().iter().map(cause).collect()
}

/// Plays the same calls on both, many of them to the changed operation. Returns the first one that ends in another way or in another state.
fn difference(original: &Program, mutant: &Program, changed: usize) -> Option<String> {
    let operations = &original.specification().operations;
    for round in 0..COMPARED.0 {
        for size in Size::ALL {
            let key = Key::from_value(12).named(size.name()).at(round);
            let (one, other) = (
                original.open(size, key.value()),
                mutant.open(size, key.value()),
            );
            let (mut one, mut other) = match (one, other) {
                (Ok(one), Ok(other)) => (one, other),
                (one, other) if one == other => continue,
                _ => return Some(format!("{} opens otherwise", size.name())),
            };
            for call in 0..COMPARED.1 {
                let key = key.at(call);
                let operation = match key.below(2, 3) {
                    0 => &operations[changed],
                    _ => &operations[key.below(0, operations.len() as u64) as usize],
                };
                let arguments = walk::arguments(original, &one, operation, key.at(1));
                let ended = original.call(&mut one, &operation.name, &arguments);
                let other_ended = mutant.call(&mut other, &operation.name, &arguments);
                if ended != other_ended || one != other {
                    let arguments = serde_json::Value::Object(arguments);
                    return Some(format!("{} {arguments}", operation.name));
                }
            }
        }
    }
    None
}

/// Prints the counts, and asserts that at least 95 % are found: of all, and of those that change how an operation
/// behaves. Those with a wrong reference are many, and the static checks find each of them.
pub(crate) fn assert_found(counts: &BTreeMap<&'static str, Count>, least: usize) {
    let (mut all, mut behaviour) = (Count::default(), Count::default());
    for (kind, count) in counts {
        println!("{kind}: {} found, {} missed", count.found, count.missed);
        all.add(*count);
        if *kind == WRONG_REFERENCE {
            assert_eq!(count.missed, 0, "{kind}");
        } else {
            behaviour.add(*count);
        }
    }
    for (name, count) in [("all", all), ("without references", behaviour)] {
        let share = 100.0 * count.share();
        println!(
            "{name}: {} found, {} missed ({share:.1} % found)",
            count.found, count.missed
        );
    }
    assert!(behaviour.found >= least, "{behaviour:?}");
    assert!(
        all.share() >= 0.95 && behaviour.share() >= 0.95,
        "{all:?}, {behaviour:?}"
    );
}
