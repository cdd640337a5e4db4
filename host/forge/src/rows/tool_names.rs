//! Names of tools. Each name belongs to one split, so that names of held-out rows are unseen in training.

use std::collections::BTreeSet;

use rlf_dialogue::split::Split;
use rlf_random::{Key, Purpose};
use rlf_specification::is_python_word;

use super::draw::pick;
use super::options::split_of_tenth;

const LOOKUP: [&str; 16] = [
    "finder",
    "retriever",
    "locator",
    "analyzer",
    "identifier",
    "tracker",
    "lookup",
    "explorer",
    "search",
    "query",
    "checker",
    "register",
    "directory",
    "info_tool",
    "index",
    "reader",
];

const CALCULATION: [&str; 16] = [
    "calculator",
    "computer",
    "evaluator",
    "solver",
    "processor",
    "engine",
    "aggregator",
    "adder",
    "operator",
    "tool",
    "combiner",
    "machine",
    "helper",
    "service",
    "abacus",
    "unit",
];

/// Prefixes for the names of tools that compute.
const CALCULATORS: [&str; 5] = [
    "arithmetic",
    "number",
    "numeric_value",
    "figure",
    "quantity",
];

/// Maximum length of the part of a name before its ending.
const MAX_STEM: usize = 40;

/// A name for a look-up tool, made of one of the prefixes.
pub(crate) fn lookup_name(
    stems: &[String],
    split: Split,
    key: Key,
    taken: &BTreeSet<String>,
) -> String {
    name(stems, &LOOKUP, split, key, taken)
}

/// A name for a tool that computes.
pub(crate) fn calculator_name(split: Split, key: Key, taken: &BTreeSet<String>) -> String {
    name(
        &CALCULATORS.map(str::to_owned),
        &CALCULATION,
        split,
        key,
        taken,
    )
}

fn name(
    stems: &[String],
    endings: &[&str],
    split: Split,
    key: Key,
    taken: &BTreeSet<String>,
) -> String {
    let mut names: Vec<String> = stems
        .iter()
        .map(|stem| identifier(stem))
        .flat_map(|stem| {
            let offset = Key::new(0, Purpose::Order).named(&stem).below(0, 10);
            let of_split = move |ending: u64| split_of_tenth((offset + ending) % 10) == split;
            let fitting = (0..)
                .zip(endings)
                .filter(move |(index, _)| of_split(*index));
            fitting.map(move |(_, ending)| format!("{stem}_{ending}"))
        })
        .collect();
    names.retain(|name| !taken.contains(name));
    if let Some(name) = pick(key, &names) {
        return name.clone();
    }
    // All are taken in this row: the version makes a further one.
    let first = stems.first().map_or("fact", String::as_str);
    let mut version = 2;
    loop {
        let name = format!("{}_{}_v{version}", identifier(first), split.as_str());
        if !taken.contains(&name) {
            return name;
        }
        version += 1;
    }
}

/// Text as a Python identifier: lower case, digits and underscores, without a digit in front.
pub(crate) fn identifier(text: &str) -> String {
    let mut made = String::new();
    for one in text.chars().flat_map(char::to_lowercase) {
        if one.is_ascii_alphanumeric() {
            made.push(one);
        } else if !made.is_empty() && !made.ends_with('_') {
            made.push('_');
        }
        if made.len() >= MAX_STEM {
            break;
        }
    }
    let made = made.trim_end_matches('_');
    if made.is_empty() || made.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("the_{made}").trim_end_matches('_').to_owned();
    }
    made.to_owned()
}

/// Text as the name of a parameter.
pub(crate) fn parameter_name(text: &str) -> String {
    let name = identifier(text);
    if is_reserved(&name) {
        return format!("the_{name}");
    }
    name
}

/// Names that the bodies of functions use, besides Python's own words.
const BODY_NAMES: [&str; 11] = [
    "date",
    "field",
    "found",
    "isinstance",
    "match",
    "none",
    "number",
    "one",
    "records",
    "subjects",
    "typeerror",
];

/// True if a function cannot have a parameter of this name.
fn is_reserved(name: &str) -> bool {
    is_python_word(name) || BODY_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_in_two_splits() {
        let stems = ["mayor", "city_mayor", "x"].map(str::to_owned);
        let mut owner = std::collections::BTreeMap::new();
        for split in Split::ALL {
            for number in 0..400 {
                let key = Key::from_value(number);
                let name = lookup_name(&stems, split, key, &BTreeSet::new());
                assert_eq!(*owner.entry(name).or_insert(split), split);
            }
        }
        assert!(owner.len() > 40, "{}", owner.len());
    }

    #[test]
    fn any_text_becomes_an_identifier() {
        for (text, expected) in [
            ("Birth Date", "birth_date"),
            ("3 rivers", "the_3_rivers"),
            ("!?", "the"),
            ("Zürich-West", "z_rich_west"),
        ] {
            assert_eq!(identifier(text), expected);
        }
        assert_eq!(parameter_name("Class"), "the_class");
    }
}
