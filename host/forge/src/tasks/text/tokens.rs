//! The words of a description, in which the words about arguments take the places of noun phrases.

use super::phrase::Phrase;
use super::words::{is_plural, label, singular};
use crate::graph::ValueType;

/// Words that begin a noun phrase.
pub(super) const DETERMINERS: [&str; 8] =
    ["a", "an", "the", "one", "another", "some", "any", "each"];

/// Words that end a noun phrase.
const FUNCTION_WORDS: [&str; 24] = [
    "of", "in", "to", "for", "by", "with", "from", "that", "which", "who", "whose", "and", "or",
    "on", "at", "within", "into", "out", "off", "is", "are", "than", "until", "so",
];

/// A word, or words that replaced some.
#[derive(Debug, Clone)]
pub(super) enum Token {
    Word(String),
    /// Words about an argument, and the mark behind them.
    Said(Phrase, String),
}

/// The words of a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    text.split_whitespace()
        .map(|word| Token::Word(word.to_owned()))
        .collect()
}

/// A word without the mark behind it.
pub(super) fn bare(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.trim_end_matches([',', ';', ':']).to_lowercase()),
        Token::Said(..) => None,
    }
}

fn is_word(tokens: &[Token], at: usize, word: &str) -> bool {
    tokens.get(at).and_then(bare).as_deref() == Some(word)
}

fn is_determiner(tokens: &[Token], at: usize) -> bool {
    let word = tokens.get(at).and_then(bare);
    word.is_some_and(|word| DETERMINERS.contains(&word.as_str()))
}

/// The place of the determiner of the noun at a place. An adjective may stand between: "an open order".
fn determiner(tokens: &[Token], noun: usize) -> Option<usize> {
    let mut starts = [noun.checked_sub(1), noun.checked_sub(2)]
        .into_iter()
        .flatten();
    starts.find(|&start| is_determiner(tokens, start))
}

/// Replaces the noun phrase of an entity. With `is_other`, it first looks for "another ..", as descriptions call a
/// second entity of the same kind.
pub(super) fn replaced(
    tokens: &mut Vec<Token>,
    entity: &str,
    is_other: bool,
    phrase: &Phrase,
) -> bool {
    let words: Vec<&str> = entity.split(' ').collect();
    let names_it = |tokens: &[Token], at: usize| {
        let mut places = words.iter().enumerate();
        places.all(|(place, word)| is_word(tokens, at + place, word))
    };
    if is_other && let Some(at) = (0..tokens.len()).find(|&at| is_word(tokens, at, "another")) {
        let end = if names_it(tokens, at + 1) {
            at + words.len()
        } else {
            at
        };
        put(tokens, at, end, phrase);
        return true;
    }
    let found: Vec<(usize, usize)> = (0..tokens.len())
        .filter(|&at| names_it(tokens, at))
        .filter_map(|at| Some((determiner(tokens, at)?, at + words.len() - 1)))
        .collect();
    let mut plain = found
        .iter()
        .filter(|(start, _)| !is_word(tokens, *start, "another"));
    match plain.next().or(found.first()) {
        Some(&(start, end)) => {
            put(tokens, start, end, phrase);
            true
        }
        None => false,
    }
}

/// Replaces an owner: "a member's fine" becomes "the fine of Ada Arnold".
pub(super) fn owned(tokens: &mut Vec<Token>, entity: &str, phrase: &Phrase) -> bool {
    let owner = format!("{entity}'s");
    let place = (0..tokens.len()).find(|&at| is_word(tokens, at, &owner));
    let Some((at, start)) = place.and_then(|at| Some((at, determiner(tokens, at)?))) else {
        return false;
    };
    let mut end = at + 1;
    while let Some(Token::Word(word)) = tokens.get(end) {
        if FUNCTION_WORDS.contains(&word.as_str()) {
            break;
        }
        end += 1;
        if word.ends_with([',', ';', ':']) {
            break;
        }
    }
    if end == at + 1 {
        return false;
    }
    let mut moved: Vec<Token> = vec![Token::Word("the".into())];
    moved.extend(tokens[at + 1..end].iter().cloned());
    let mark = match moved.last_mut() {
        Some(Token::Word(word)) => {
            let plain = word.trim_end_matches([',', ';', ':']).len();
            word.split_off(plain)
        }
        _ => String::new(),
    };
    moved.push(Token::Word("of".into()));
    moved.push(Token::Said(phrase.clone(), mark));
    tokens.splice(start..end, moved);
    true
}

/// Puts words in place of the tokens from `start` to `end`, both included.
fn put(tokens: &mut Vec<Token>, start: usize, end: usize, phrase: &Phrase) {
    let mark = match tokens.get(end) {
        Some(Token::Word(word)) => word
            .chars()
            .last()
            .filter(|last| [',', ';', ':'].contains(last))
            .map_or_else(String::new, String::from),
        _ => String::new(),
    };
    tokens.splice(start..=end, [Token::Said(phrase.clone(), mark)]);
}

/// Replaces "by a part of their name", "the text" and "of a day", which say where a value belongs.
pub(super) fn contained(
    tokens: &mut Vec<Token>,
    phrase: &Phrase,
    kind: Option<&ValueType>,
    parameter: &str,
) -> bool {
    let words: Vec<String> = tokens
        .iter()
        .map(|token| bare(token).unwrap_or_default())
        .collect();
    let find = |wanted: &[&str]| {
        let mut places = words.windows(wanted.len());
        places.position(|window| window.iter().eq(wanted.iter()))
    };
    match kind {
        Some(ValueType::Text) => {
            let by_part = find(&["by", "a", "part", "of"]);
            if let Some(at) = by_part.filter(|at| at + 5 < tokens.len()) {
                let ends = |at: &usize| match &tokens[*at] {
                    Token::Word(word) => word.ends_with([',', ';', ':']),
                    Token::Said(..) => true,
                };
                let end = (at + 5..tokens.len()).find(ends);
                let end = end.unwrap_or(tokens.len() - 1);
                let field = words[at + 5..=end].join(" ");
                let whose = Phrase::words(format!("whose {field} contains ")).then(phrase);
                put(tokens, at, end, &whose);
                return true;
            }
            let the_text = find(&["the", "text"]).or_else(|| find(&["a", "text"]));
            match the_text.filter(|_| parameter == "text") {
                Some(at) => {
                    put(tokens, at, at + 1, phrase);
                    true
                }
                None => false,
            }
        }
        Some(ValueType::Date) => {
            let day = find(&["a", "day"]).or_else(|| find(&["another", "day"]));
            if let Some(at) = day {
                put(tokens, at, at + 1, phrase);
            }
            day.is_some()
        }
        _ => false,
    }
}

/// Puts a number before what it counts: "put delivered pieces into stock" becomes "put 19 delivered pieces into stock".
pub(super) fn counted(tokens: &mut Vec<Token>, phrase: &Phrase, parameter: &str) -> bool {
    let label = label(parameter);
    let is_set = ["change", "set", "correct", "replace", "update"]
        .iter()
        .any(|verb| is_word(tokens, 0, verb));
    if is_set || !phrase.is_number() || !is_plural(&label) {
        return false;
    }
    let Some(at) = (1..tokens.len()).find(|&at| is_word(tokens, at, &label)) else {
        return false;
    };
    let is_function = |at: usize| {
        let word = tokens.get(at).and_then(bare);
        word.is_none_or(|word| FUNCTION_WORDS.contains(&word.as_str()))
    };
    if let Some(range) = allowed_range(tokens, at) {
        tokens.splice(range..at, [Token::Said(phrase.clone(), String::new())]);
        return true;
    }
    // Adjectives stand before the noun: "broken or lost pieces". The first word is the verb.
    let mut start = at;
    if at >= 2 && !is_function(at - 1) && !is_determiner(tokens, at - 1) {
        start = at - 1;
        if start >= 3 && is_word(tokens, start - 1, "or") {
            start -= 2;
        }
    }
    if phrase.text() == "1"
        && let Some(Token::Word(word)) = tokens.get_mut(at)
    {
        let plain = word.trim_end_matches([',', ';', ':']).len();
        let mark = word.split_off(plain);
        *word = singular(&label) + &mark;
    }
    let number = Token::Said(phrase.clone(), String::new());
    let from = if start > 1 && is_determiner(tokens, start - 1) {
        start - 1
    } else {
        start
    };
    tokens.splice(from..start, [number]);
    true
}

/// The beginning of the numbers before a noun that say how many are allowed: "1 to 9 passengers", "at most 4 guests".
fn allowed_range(tokens: &[Token], noun: usize) -> Option<usize> {
    let word = |at: usize| tokens.get(at).and_then(bare).unwrap_or_default();
    let is_number = |at: usize| word(at).parse::<f64>().is_ok();
    let mut start = noun.checked_sub(1).filter(|&at| is_number(at))?;
    if start >= 2 && ["to", "or"].contains(&word(start - 1).as_str()) && is_number(start - 2) {
        start -= 2;
    }
    if start >= 2 {
        let before = format!("{} {}", word(start - 2), word(start - 1));
        if ["at most", "up to", "at least"].contains(&before.as_str()) {
            start -= 2;
        }
    }
    Some(start)
}
