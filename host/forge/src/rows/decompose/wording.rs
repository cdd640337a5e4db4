//! The words of questions.

use rlf_random::Key;

use crate::rows::draw::pick;
use crate::rows::facts::{Relation, with_article};
use crate::rows::question::Operation;

/// The end of a chain in words.
pub(super) struct Phrase {
    /// The subject of the last fact: a name, or the thing that the chain before it leads to.
    pub(super) subject: String,
    /// The object of the last fact: `the mayor of the city where Ada Lind was born`.
    pub(super) noun: String,
    /// The step that finds it.
    pub(super) step: usize,
}

/// Fills a subject into a pattern.
pub(super) fn filled(pattern: &str, subject: &str) -> String {
    pattern.replacen("{}", subject, 1)
}

/// A phrase without its subject: `the mayor of a city`.
pub(crate) fn without_subject(noun: &str, kind: &str) -> String {
    filled(noun, &with_article(kind))
}

/// A question for the object of a relation.
pub(super) fn asked(relation: &Relation, subject: &str, key: Key) -> String {
    filled(pick(key, &relation.ask).map_or("", String::as_str), subject)
}

/// A question that asks to compute with several things.
pub(super) fn calculation(operation: Operation, nouns: &[String], key: Key) -> String {
    let all = joined(nouns, "and");
    let patterns: &[&str] = match operation {
        Operation::Sum => &[
            "What is the sum of {}?",
            "What do you get if you add up {}?",
            "What is the total of {}?",
        ],
        Operation::Difference => &[
            "What is the difference between {}?",
            "How large is the difference between {}?",
            "By how much do these two numbers differ: {}?",
        ],
        Operation::Product => &["What is the product of {}?"],
    };
    filled(pick(key, patterns).copied().unwrap_or("{}"), &all)
}

/// A question for the largest or smallest of several things.
pub(super) fn comparison(measure: &str, is_most: bool, nouns: &[String], key: Key) -> String {
    let all = joined(nouns, "or");
    let is_time = measure == "date" || measure == "year";
    let two = nouns.len() == 2;
    let word = match (is_time, is_most, two) {
        (true, true, true) => "later",
        (true, true, false) => "latest",
        (true, false, true) => "earlier",
        (true, false, false) => "earliest",
        (false, true, true) => "larger",
        (false, true, false) => "largest",
        (false, false, true) => "smaller",
        (false, false, false) => "smallest",
    };
    let thing = match measure {
        "date" => "date",
        "year" => "year",
        _ => "number",
    };
    let patterns = [
        format!("Which {thing} is the {word} one: {{}}?"),
        format!("What is the {word} {thing}: {{}}?"),
        format!("Give the {word} {thing}: is it {{}}?"),
    ];
    filled(pick(key, &patterns).map_or("", String::as_str), &all)
}

/// `a, b and c`.
fn joined(items: &[String], word: &str) -> String {
    match items.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{}, {word} {last}", rest.join(", ")),
        None => String::new(),
    }
}
