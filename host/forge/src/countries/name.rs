//! Made-up names, for the model to learn copying: it cannot know them by heart.

use std::collections::{BTreeSet, HashMap};

use super::draws::Draws;
use super::split::words;

const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
const VOWELS: &[u8; 5] = b"aeiou";
const CONSONANTS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";

/// Share of names with two words, about as many as among real countries and capitals.
const TWO_WORDS: f64 = 0.2;
/// Share of words drawn like the real ones.
const LIFELIKE: f64 = 0.4;
/// Share of words made of pieces of the tasks' own words. The remaining words are nearly free of structure.
const PATCHED: f64 = 0.25;
/// Words of questions, calls and continents. A tokenizer has pieces of them, and `argentina` must not be the first
/// name that begins like `arguments`.
const VOCABULARY: [&str; 34] = [
    "what",
    "names",
    "not",
    "nor",
    "the",
    "of",
    "and",
    "plus",
    "minus",
    "times",
    "over",
    "rounded",
    "down",
    "larger",
    "smaller",
    "area",
    "population",
    "capital",
    "continent",
    "neighbour",
    "name",
    "arguments",
    "get",
    "lookup",
    "calculate",
    "expression",
    "africa",
    "asia",
    "europe",
    "oceania",
    "north",
    "south",
    "america",
    "is",
];

/// Makes names of three sorts. Some look like the training names: each letter is drawn after the two before it. Some
/// are made of pieces that the tokenizer has anyway. Some are close to random, so that a copy cannot be a guess.
pub(crate) struct Namer {
    next: HashMap<[u8; 2], Vec<u8>>,
    taken: BTreeSet<String>,
}

const EDGE: u8 = b' ';

impl Namer {
    /// `seen` are the names to imitate. The namer never makes a word of `real` or of the tasks' own vocabulary.
    pub(crate) fn new<'a>(
        seen: impl Iterator<Item = &'a str>,
        real: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut next: HashMap<[u8; 2], Vec<u8>> = HashMap::new();
        for word in seen.flat_map(words) {
            let letters = [&[EDGE, EDGE], word.as_bytes(), &[EDGE]].concat();
            for window in letters.windows(3) {
                next.entry([window[0], window[1]])
                    .or_default()
                    .push(window[2]);
            }
        }
        Self {
            next,
            taken: real
                .chain(VOCABULARY)
                .flat_map(words)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Makes a new name, never the same one twice.
    pub(crate) fn make(&mut self, draws: &mut Draws) -> String {
        // Outside the loop: names of two words are refused twice as often.
        let count = if draws.chance(TWO_WORDS) { 2 } else { 1 };
        loop {
            let made: Vec<String> = (0..count).map(|_| self.word(draws, count)).collect();
            let name = made.join(" ");
            let is_new = !made.iter().any(|word| self.taken.contains(word))
                && self.taken.insert(name.clone());
            if is_new {
                return name;
            }
        }
    }

    fn word(&self, draws: &mut Draws, count: usize) -> String {
        let sort = draws.unit();
        if sort < LIFELIKE {
            if let Some(word) = self.lifelike(draws) {
                return word;
            }
        } else if sort < LIFELIKE + PATCHED {
            return patched(draws);
        }
        let length = draws.between(
            if count == 1 { 4 } else { 3 },
            if count == 1 { 11 } else { 8 },
        );
        let letter = |place: u64| {
            let choices: &[u8] = if draws.chance(0.4) {
                LETTERS
            } else if place.is_multiple_of(2) {
                CONSONANTS
            } else {
                VOWELS
            };
            *draws.pick(choices) as char
        };
        (0..length).map(letter).collect()
    }

    fn lifelike(&self, draws: &mut Draws) -> Option<String> {
        let mut letters = vec![EDGE, EDGE];
        while letters.len() < 14 {
            let followers = self
                .next
                .get(&[letters[letters.len() - 2], letters[letters.len() - 1]])?;
            match *draws.pick(followers) {
                EDGE => break,
                letter => letters.push(letter),
            }
        }
        let word = String::from_utf8(letters.split_off(2)).ok()?;
        (word.len() > 3).then_some(word)
    }
}

/// One or two pieces of the tasks' own words, among random letters.
fn patched(draws: &mut Draws) -> String {
    let mut word = String::new();
    for _ in 0..draws.between(1, 2) {
        for _ in 0..draws.below(3) {
            word.push(*draws.pick(LETTERS) as char);
        }
        let source = *draws.pick(&VOCABULARY);
        // A tokenizer keeps more starts of words than other pieces.
        let start = if draws.chance(0.5) {
            0
        } else {
            draws.index(source.len())
        };
        let length = draws.between(2, 5) as usize;
        word.extend(source.chars().skip(start).take(length));
    }
    while word.len() < 4 {
        word.push(*draws.pick(LETTERS) as char);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_new_and_distinct() {
        let seen = ["france", "burkina faso", "paris", "ouagadougou", "bolivia"];
        let mut namer = Namer::new(seen.into_iter(), seen.into_iter());
        let mut draws = Draws::new(0, "names", 0);
        let made: BTreeSet<String> = (0..3_000).map(|_| namer.make(&mut draws)).collect();
        assert_eq!(made.len(), 3_000);
        for name in &made {
            assert!(
                words(name).all(|word| !seen.iter().any(|seen| words(seen).any(|s| s == word))),
                "{name}"
            );
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b' '),
                "{name}"
            );
            assert!((4..=30).contains(&name.len()), "{name}");
        }
        let two = made.iter().filter(|name| name.contains(' ')).count();
        assert!((450..750).contains(&two), "{two} of 3,000 have two words");
        let every_letter =
            (b'a'..=b'z').all(|letter| made.iter().any(|name| name.as_bytes().contains(&letter)));
        assert!(every_letter);
    }
}
