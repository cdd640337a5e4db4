//! The clause of a request: the description of its tool, with the words about its arguments in it.
//!
//! "Lend a free copy of a book to a member." becomes "lend a free copy of the book The Long Ferry to Ada Arnold": noun
//! phrases that name a parameter's kind of entity are replaced, and arguments without such a phrase are added at the end.

use super::phrase::Phrase;
use super::words::{label, lowered, noun};
use crate::graph::{Tool, ValueType};
use crate::sampling::Draws;

/// Words that begin a noun phrase.
const DETERMINERS: [&str; 8] = ["a", "an", "the", "one", "another", "some", "any", "each"];

/// Parts of descriptions that explain instead of saying what is done.
const EXPLANATIONS: [&str; 12] = [
    ", which",
    ", who",
    ", so that",
    ", or for",
    ", or with",
    ", or those",
    ", twice",
    ", once",
    ", from tomorrow",
    ", all or",
    ": its",
    ", in place of",
];

/// Verbs that say the same at the beginning of a description.
const VERBS: [(&str, &[&str]); 16] = [
    ("list", &["list", "show me", "give me", "tell me about"]),
    ("get", &["get", "show me", "give me", "bring up"]),
    ("show", &["show me", "tell me", "find out"]),
    ("view", &["view", "show me", "open up"]),
    ("find", &["find", "look for", "search for"]),
    ("search for", &["search for", "look for", "find"]),
    ("look up", &["look up", "find", "search for"]),
    ("add", &["add", "put in", "enter"]),
    ("enter", &["enter", "put in", "add"]),
    ("create", &["create", "set up", "make"]),
    ("cancel", &["cancel", "call off"]),
    ("change", &["change", "update", "correct"]),
    ("record", &["record", "note down", "write down"]),
    ("delete", &["delete", "remove"]),
    ("register", &["register", "sign up"]),
    ("move", &["move", "shift"]),
];

/// The words about an argument, with its parameter.
pub(super) type Said = (String, Phrase);

/// The clause that asks for a tool, without a mark at its end. It begins with a verb in small letters.
pub(super) fn clause(tool: &Tool, said: &[Said], draws: &mut Draws) -> Phrase {
    let mut tokens = tokens(&main(&tool.description));
    // Entities that the description names in other words, and values.
    let (mut about, mut values): (Vec<&Phrase>, Vec<(String, &Phrase)>) = Default::default();
    for (parameter, phrase) in said {
        let input = tool.inputs.iter().find(|input| input.name == *parameter);
        let kind = input.map(|input| &input.kind);
        if let Some(ValueType::Key(entity)) = kind {
            let entity = noun(entity);
            let is_plain = label(parameter) == entity;
            if replaced(&mut tokens, &entity, !is_plain, phrase) {
                continue;
            }
            if is_plain {
                about.push(phrase);
                continue;
            }
        } else if contained(&mut tokens, phrase, kind) {
            continue;
        }
        values.push((label(parameter), phrase));
    }
    let mut clause = joined(varied(tokens, draws));
    for phrase in about {
        let forms = [
            " for ",
            " - it is about ",
            ", namely for ",
            ": ",
            " concerning ",
        ];
        clause = clause.and(forms[draws.index(forms.len())]).then(phrase);
    }
    details(clause, &values, draws)
}

/// The part of a description that says what is done.
fn main(description: &str) -> String {
    let first = description.split(". ").next().unwrap_or(description);
    let mut main = first.trim_end_matches('.').to_owned();
    for explanation in EXPLANATIONS {
        if let Some(place) = main.find(explanation) {
            main.truncate(place);
        }
    }
    lowered(main.trim())
}

/// A word, or words that replaced some.
#[derive(Debug, Clone)]
enum Token {
    Word(String),
    Said(Phrase, String),
}

fn tokens(text: &str) -> Vec<Token> {
    text.split_whitespace()
        .map(|word| Token::Word(word.to_owned()))
        .collect()
}

fn bare(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.trim_end_matches([',', ';', ':']).to_lowercase()),
        Token::Said(..) => None,
    }
}

/// Replaces the noun phrase of an entity. `is_other` looks for "another .." first, which a second parameter means.
fn replaced(tokens: &mut Vec<Token>, entity: &str, is_other: bool, phrase: &Phrase) -> bool {
    let words: Vec<&str> = entity.split(' ').collect();
    let is = |tokens: &[Token], at: usize, word: &str| {
        tokens.get(at).and_then(bare).as_deref() == Some(word)
    };
    if is_other && let Some(at) = (0..tokens.len()).find(|&at| is(tokens, at, "another")) {
        let named = words
            .iter()
            .enumerate()
            .all(|(place, word)| is(tokens, at + 1 + place, word));
        let end = at + if named { words.len() } else { 0 };
        put(tokens, at, end, phrase);
        return true;
    }
    let determined = |at: usize| {
        let word = tokens.get(at).and_then(bare);
        word.is_some_and(|word| DETERMINERS.contains(&word.as_str()))
    };
    let here = |at: usize| {
        let mut places = words.iter().enumerate();
        places.all(|(place, word)| is(tokens, at + place, word))
    };
    let found: Vec<(usize, usize)> = (0..tokens.len())
        .filter(|&at| here(at))
        .filter_map(|at| {
            // An adjective may stand between: "an open order".
            let mut starts = [at.checked_sub(1), at.checked_sub(2)].into_iter().flatten();
            let start = starts.find(|&start| determined(start))?;
            Some((start, at + words.len() - 1))
        })
        .collect();
    let mut plain = found
        .iter()
        .filter(|(start, _)| !is(tokens, *start, "another"));
    match plain.next().or(found.first()) {
        Some(&(start, end)) => {
            put(tokens, start, end, phrase);
            true
        }
        None => false,
    }
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

/// Replaces "by a part of their name" and "of a day", which say where a value belongs.
fn contained(tokens: &mut Vec<Token>, phrase: &Phrase, kind: Option<&ValueType>) -> bool {
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
            let by_part = find(&["by", "a", "part", "of", "their"]);
            let Some(at) = by_part.filter(|at| at + 5 < tokens.len()) else {
                return false;
            };
            let field = words[at + 5].clone();
            let whose = Phrase::words(format!("whose {field} contains ")).then(phrase);
            put(tokens, at, at + 5, &whose);
            true
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

/// Another verb that says the same.
fn varied(mut tokens: Vec<Token>, draws: &mut Draws) -> Vec<Token> {
    let first = tokens.first().and_then(bare).unwrap_or_default();
    let second = tokens.get(1).and_then(bare).unwrap_or_default();
    let both = format!("{first} {second}");
    for (verb, others) in VERBS {
        let length = verb.split(' ').count();
        if verb == first || verb == both {
            let other = others[draws.index(others.len())];
            tokens.splice(..length, [Token::Word(other.to_owned())]);
            break;
        }
    }
    tokens
}

fn joined(tokens: Vec<Token>) -> Phrase {
    let mut phrase = Phrase::default();
    for (place, token) in tokens.into_iter().enumerate() {
        if place > 0 {
            phrase = phrase.and(" ");
        }
        phrase = match token {
            Token::Word(word) => phrase.and(word),
            Token::Said(said, mark) => phrase.then(&said).and(mark),
        };
    }
    phrase
}

/// Adds values with their labels.
fn details(mut clause: Phrase, values: &[(String, &Phrase)], draws: &mut Draws) -> Phrase {
    if values.is_empty() {
        return clause;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    if draws.chance(0.5) {
        order.reverse();
    }
    let style = draws.index(6);
    for (told, &place) in order.iter().enumerate() {
        let (label, phrase) = &values[place];
        let last = told + 1 == values.len();
        clause = match (style, told) {
            (0, _) => clause.and(format!(", {label}: ")).then(phrase),
            (1, 0) => clause.and(format!(" with {label} ")).then(phrase),
            (1, _) if last => clause.and(format!(" and {label} ")).then(phrase),
            (2, 0) => clause.and(format!(" ({label}: ")).then(phrase),
            (2, _) => clause.and(format!("; {label}: ")).then(phrase),
            (3, 0) => clause.and(format!(" - {label} ")).then(phrase),
            (1 | 3, _) => clause.and(format!(", {label} ")).then(phrase),
            (4, 0) => clause
                .and(" using ")
                .then(phrase)
                .and(format!(" as {label}")),
            (4, _) => clause.and(" and ").then(phrase).and(format!(" as {label}")),
            (_, 0) => clause.and(format!("; the {label} is ")).then(phrase),
            (_, _) => clause.and(format!(", the {label} is ")).then(phrase),
        };
    }
    if style == 2 { clause.and(")") } else { clause }
}

#[cfg(test)]
mod tests {
    use rlf_random::Key;

    use super::*;
    use crate::graph::Input;

    fn tool(description: &str, inputs: &[(&str, ValueType)]) -> Tool {
        let input = |(name, kind): &(&str, ValueType)| Input {
            name: (*name).to_owned(),
            kind: kind.clone(),
            description: String::new(),
            required: true,
            from_user: None,
        };
        Tool {
            server: "Shop".into(),
            name: "tool".into(),
            description: description.to_owned(),
            inputs: inputs.iter().map(input).collect(),
            outputs: Vec::new(),
        }
    }

    fn written(tool: &Tool, said: &[(&str, &str)]) -> String {
        let said: Vec<Said> = said
            .iter()
            .map(|(name, words)| ((*name).to_owned(), Phrase::words(*words)))
            .collect();
        clause(tool, &said, &mut Draws::new(Key::from_value(1))).text()
    }

    #[test]
    fn what_is_said_replaces_the_noun_phrases_of_the_description() {
        let key = |name: &str| ValueType::Key(format!("Shop.{name}"));
        let lend = tool(
            "Lend a free copy of a book to a member.",
            &[("book_id", key("book")), ("member_id", key("member"))],
        );
        assert_eq!(
            written(&lend, &[("book_id", "that book"), ("member_id", "Ada")]),
            "lend a free copy of that book to Ada"
        );
        let join = tool(
            "Put an open savings account, which is new, on hold.",
            &[("savings_account_id", key("savings_account"))],
        );
        assert_eq!(written(&join, &[("savings_account_id", "it")]), "put it");
        let give = tool(
            "Hand a voucher over to another person.",
            &[("voucher_id", key("voucher")), ("person_id", key("person"))],
        );
        assert_eq!(
            written(&give, &[("voucher_id", "the voucher"), ("person_id", "Bo")]),
            "hand the voucher over to Bo"
        );
        let transfer = tool(
            "Transfer money from one account to another.",
            &[
                ("account_id", key("account")),
                ("to_account_id", key("account")),
            ],
        );
        assert_eq!(
            written(
                &transfer,
                &[("account_id", "mine"), ("to_account_id", "yours")]
            ),
            "transfer money from mine to yours"
        );
    }

    #[test]
    fn what_the_description_does_not_name_is_added() {
        let pay = tool(
            "Settle what is late.",
            &[
                ("bill_id", ValueType::Key("Shop.bill".into())),
                ("amount", ValueType::Integer),
            ],
        );
        let text = written(&pay, &[("bill_id", "the oldest bill"), ("amount", "15")]);
        assert!(text.starts_with("settle what is late"), "{text}");
        assert!(
            text.contains("the oldest bill") && text.contains("amount") && text.contains("15"),
            "{text}"
        );
    }

    #[test]
    fn searches_and_days_are_part_of_the_clause() {
        let find = tool(
            "Seek members by a part of their name.",
            &[("text", ValueType::Text)],
        );
        assert_eq!(
            written(&find, &[("text", "Ada")]),
            "seek members whose name contains Ada"
        );
        let day = tool("Seek the events of a day.", &[("day", ValueType::Date)]);
        assert_eq!(
            written(&day, &[("day", "2024-03-01")]),
            "seek the events of 2024-03-01"
        );
    }
}
