//! Chains of facts, found backwards from their ends.

use std::collections::BTreeSet;

use rlf_random::Key;

use crate::rows::facts::{Fact, Facts};

/// A chain of `length` facts whose last one is `end`. Every fact is about the object of the one before. No entity is in
/// it twice, or in one of the other chains.
pub(super) fn backward<'a>(
    facts: &'a Facts,
    end: usize,
    length: usize,
    others: &[Vec<&Fact>],
    key: Key,
) -> Option<Vec<&'a Fact>> {
    let all = facts.facts();
    let mut met: BTreeSet<&str> = others
        .iter()
        .flatten()
        .flat_map(|fact| [fact.subject.as_str(), fact.object.as_str()])
        .collect();
    let last = all.get(end)?;
    if !met.insert(&last.object) || !met.insert(&last.subject) {
        return None;
    }
    let mut chain = vec![last];
    while chain.len() < length {
        let subject = chain[chain.len() - 1].subject.as_str();
        let mut before: Vec<usize> = facts.leading_to(subject).to_vec();
        key.at(chain.len() as u64).shuffle(&mut before);
        let next = before
            .into_iter()
            .map(|index| &all[index])
            .find(|fact| !met.contains(fact.subject.as_str()))?;
        met.insert(&next.subject);
        chain.push(next);
    }
    chain.reverse();
    Some(chain)
}
