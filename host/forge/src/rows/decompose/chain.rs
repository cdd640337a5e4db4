//! Chains of facts, found backwards from their ends.

use std::collections::BTreeSet;

use rlf_random::Key;

use crate::rows::facts::{Fact, Facts};

/// Maximum number of facts that are tried for one chain.
const MAX_TRIED: usize = 400;

/// A chain of `length` facts whose last one is `end`. Every fact is about the object of the one before. No entity is in
/// it twice, or in one of the other chains.
pub(super) fn backward<'a>(
    facts: &'a Facts,
    end: usize,
    length: usize,
    others: &[Vec<&'a Fact>],
    key: Key,
) -> Option<Vec<&'a Fact>> {
    let last = facts.facts().get(end)?;
    let mut met: BTreeSet<&str> = others
        .iter()
        .flatten()
        .flat_map(|fact| [fact.subject.as_str(), fact.object.as_str()])
        .collect();
    if !met.insert(&last.object) || !met.insert(&last.subject) {
        return None;
    }
    let mut search = Search {
        facts,
        length,
        key,
        met,
        tried: 0,
    };
    let mut chain = vec![last];
    search.extend(&mut chain).then(|| {
        chain.reverse();
        chain
    })
}

/// A depth-first search that goes back if it is stuck.
struct Search<'a> {
    facts: &'a Facts,
    length: usize,
    key: Key,
    /// The entities and values of the chain so far.
    met: BTreeSet<&'a str>,
    tried: usize,
}

impl<'a> Search<'a> {
    /// Adds facts before the chain's first fact until the chain is long enough. The list is in reverse order: its last
    /// item is the first fact.
    fn extend(&mut self, chain: &mut Vec<&'a Fact>) -> bool {
        let Some(first) = chain.last().filter(|_| chain.len() < self.length) else {
            return true;
        };
        let mut before: Vec<usize> = self.facts.leading_to(&first.subject).to_vec();
        self.key
            .at(chain.len() as u64)
            .named(&first.subject)
            .shuffle(&mut before);
        for index in before {
            let fact = &self.facts.facts()[index];
            self.tried += 1;
            if self.tried > MAX_TRIED {
                return false;
            }
            if !self.met.insert(&fact.subject) {
                continue;
            }
            chain.push(fact);
            if self.extend(chain) {
                return true;
            }
            chain.pop();
            self.met.remove(fact.subject.as_str());
        }
        false
    }
}
