//! Businesses whose words are invented, for policies that must learn to read names instead of knowing them.
//!
//! A small policy learns the names of 85 environments by heart, and can then do nothing in another one. If every
//! environment has its own nouns and names, the only way to act is to read them in the tools and to copy them.

use std::collections::{BTreeMap, BTreeSet};

use rlf_random::Key;

use super::archetype::archetypes;
use super::business::{Business, shared};
use super::words::capitalised;

const STARTS: [&str; 26] = [
    "b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br",
    "dr", "gr", "kl", "pl", "st", "tr", "fl",
];
const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];
const ENDS: [&str; 10] = ["", "", "l", "n", "r", "s", "m", "t", "k", "x"];
/// Lists whose words have a form of their own, such as digits of telephone numbers.
const KEPT: [&str; 1] = ["two_digits"];
/// Share of names with a second word.
const TWO_WORDS: f64 = 0.4;

/// The business with an invented name, invented nouns of all roles, and invented lists of words.
pub(super) fn invent(business: &Business, key: Key) -> Business {
    let mut inventor = Inventor::new(key);
    let mut invented = business.clone();
    invented.name = capitalised(&inventor.word(3));
    invented.about = format!("a place called {}", invented.name);
    let roles: BTreeSet<&String> = archetypes()
        .iter()
        .flat_map(|archetype| archetype.nouns.keys())
        .collect();
    invented.nouns = roles
        .into_iter()
        .map(|role| {
            let noun = inventor.word(2);
            (role.clone(), format!("{noun}|{noun}s"))
        })
        .collect();
    let lists: BTreeMap<&String, &Vec<String>> =
        shared().words.iter().chain(&business.words).collect();
    for (list, words) in lists {
        if !KEPT.contains(&list.as_str()) {
            let words = words.iter().map(|_| inventor.name()).collect();
            invented.words.insert(list.clone(), words);
        }
    }
    invented
}

/// Makes words of syllables, none twice.
pub(crate) struct Inventor {
    key: Key,
    next: u64,
    taken: BTreeSet<String>,
}

impl Inventor {
    pub(crate) fn new(key: Key) -> Self {
        Self {
            key,
            next: 0,
            taken: BTreeSet::new(),
        }
    }

    fn pick(&mut self, pieces: &[&'static str]) -> &'static str {
        self.next += 1;
        pieces[self.key.below(self.next, pieces.len() as u64) as usize]
    }

    /// A new word of at least this many syllables.
    pub(crate) fn word(&mut self, syllables: usize) -> String {
        let mut word = String::new();
        loop {
            for _ in 0..syllables {
                word.push_str(self.pick(&STARTS));
                word.push_str(self.pick(&VOWELS));
                word.push_str(self.pick(&ENDS));
            }
            // A taken word grows until it is new.
            if self.taken.insert(word.clone()) {
                return word;
            }
        }
    }

    /// Invents a name of one or two words.
    fn name(&mut self) -> String {
        let first = capitalised(&self.word(2));
        self.next += 1;
        if self.key.uniform(self.next) < TWO_WORDS {
            let second = self.word(1);
            format!("{first} {second}")
        } else {
            first
        }
    }
}
