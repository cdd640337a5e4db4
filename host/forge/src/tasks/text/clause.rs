//! The clause of a request: the description of its tool, with the words about its arguments in it.
//!
//! "Lend a free copy of a book to a member." becomes "lend a free copy of the book The Long Ferry to Ada Arnold": noun
//! phrases that name a parameter's kind of entity are replaced, numbers stand before what they count, and arguments
//! without such a place are added at the end.

use super::details::{Detail, add_entities, add_values};
use super::phrase::Phrase;
use super::tokens::{DETERMINERS, Token, bare, contained, counted, owned, replaced, tokens};
use super::words::{is_plural, label, lowered, noun, spaced};
use crate::graph::{Tool, ValueType};
use crate::sampling::Draws;

/// Parts of descriptions that explain instead of saying what is done.
const EXPLANATIONS: [&str; 16] = [
    ", which",
    ", who",
    ", so that",
    ", or for",
    ", or with",
    ", or those",
    ", or a part",
    ", or all",
    ", twice",
    ", once",
    ", from tomorrow",
    ", all or",
    ": its",
    ", in place of",
    "; ",
    ", then",
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

/// Writes the clause that asks for a tool, without a mark at its end. It begins with a verb in small letters.
pub(super) fn clause(tool: &Tool, said: &[Said], draws: &mut Draws) -> Phrase {
    let mut tokens = tokens(&asking(tool, &main(&tool.description)));
    let (mut entities, mut values): (Vec<&Phrase>, Vec<Detail<'_>>) = Default::default();
    for (parameter, phrase) in said {
        let input = tool.inputs.iter().find(|input| input.name == *parameter);
        let kind = input.map(|input| &input.kind);
        if let Some(ValueType::Key(entity)) = kind {
            let entity = noun(entity);
            let is_plain = label(parameter) == entity;
            if replaced(&mut tokens, &entity, !is_plain, phrase)
                || is_plain && owned(&mut tokens, &entity, phrase)
            {
                continue;
            }
            if is_plain {
                entities.push(phrase);
                continue;
            }
        } else if contained(&mut tokens, phrase, kind, parameter)
            || counted(&mut tokens, phrase, parameter)
        {
            continue;
        }
        values.push(Detail::new(parameter, kind, phrase));
    }
    let clause = joined(varied(tokens, draws));
    let clause = add_entities(clause, &entities, draws);
    add_values(clause, &values, draws)
}

/// The part of a description that says what is done.
fn main(description: &str) -> String {
    let paragraph = description.split("\n\n").next().unwrap_or(description);
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = line.split(". ").next().unwrap_or(&line);
    let mut main = first.trim_end_matches('.').to_owned();
    for explanation in EXPLANATIONS {
        if let Some(place) = main.find(explanation) {
            main.truncate(place);
        }
    }
    lowered(main.trim())
}

/// The description as something to ask for. Descriptions of lookups in Python often name what is found, without a verb:
/// "Members by a part of their name".
fn asking(tool: &Tool, main: &str) -> String {
    let verb = spaced(&tool.name);
    let verb = verb.split(' ').next().unwrap_or_default();
    let first = main.split(' ').next().unwrap_or_default();
    let names_what_is_found = is_plural(first)
        || DETERMINERS.contains(&first)
        || ["what", "how", "which", "who", "whether"].contains(&first);
    if !names_what_is_found || verb == first {
        return main.to_owned();
    }
    match verb {
        "find" | "search" | "list" | "show" | "get" => format!("{verb} {main}"),
        _ => format!("show {main}"),
    }
}

/// Another verb that says the same.
fn varied(mut tokens: Vec<Token>, draws: &mut Draws) -> Vec<Token> {
    if let Some((length, others)) = verbs(&tokens) {
        let other = others[draws.index(others.len())];
        tokens.splice(..length, [Token::Word(other.to_owned())]);
    }
    tokens
}

/// The verbs that say the same as the one at the beginning, and its number of words. None if no other verb does.
fn verbs(tokens: &[Token]) -> Option<(usize, &'static [&'static str])> {
    let first = tokens.first().and_then(bare).unwrap_or_default();
    let second = tokens.get(1).and_then(bare).unwrap_or_default();
    let both = format!("{first} {second}");
    let (verb, others) = VERBS
        .into_iter()
        .find(|(verb, _)| *verb == first || *verb == both)?;
    Some((verb.split(' ').count(), others))
}

/// The phrases that a clause for a tool can begin with: the verb of its description, or verbs that say the same.
pub(in crate::tasks) fn openings(tool: &Tool) -> Vec<String> {
    let words = tokens(&asking(tool, &main(&tool.description)));
    match verbs(&words) {
        Some((_, others)) => others.iter().map(|other| (*other).to_owned()).collect(),
        None => words.first().and_then(bare).into_iter().collect(),
    }
}

/// The tokens as one phrase.
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
    fn an_owner_follows_what_is_owned() {
        let pay = tool(
            "Pay a member's open fine, or a part of it.",
            &[("member_id", ValueType::Key("Shop.member".into()))],
        );
        assert_eq!(
            written(&pay, &[("member_id", "Ada Arnold")]),
            "pay the open fine of Ada Arnold"
        );
    }

    #[test]
    fn a_number_stands_before_what_it_counts() {
        let stock = |description: &str, pieces: &str| {
            let tool = tool(
                description,
                &[
                    ("item_id", ValueType::Key("Shop.item".into())),
                    ("pieces", ValueType::Integer),
                ],
            );
            written(&tool, &[("item_id", "the lamp"), ("pieces", pieces)])
        };
        assert_eq!(
            stock("Put delivered pieces of an item into stock.", "19"),
            "put 19 delivered pieces of the lamp into stock"
        );
        assert_eq!(
            stock("Take broken or lost pieces of an item out of stock.", "1"),
            "take 1 broken or lost piece of the lamp out of stock"
        );
        assert_eq!(
            stock("Sell some pieces of an item.", "3"),
            "sell 3 pieces of the lamp"
        );
        // A new number is not counted.
        let changed = stock("Change the pieces of an item.", "3");
        assert!(
            changed.ends_with(" the pieces of the lamp to 3"),
            "{changed}"
        );
    }

    #[test]
    fn a_number_takes_the_place_of_the_numbers_that_are_allowed() {
        let book = |description: &str| {
            let tool = tool(description, &[("passengers", ValueType::Integer)]);
            written(&tool, &[("passengers", "3")])
        };
        assert_eq!(
            book("Book a sailing for 1 to 9 passengers and at most one vehicle."),
            "book a sailing for 3 passengers and at most one vehicle"
        );
        assert_eq!(
            book("Hold seats for at most 4 passengers."),
            "hold seats for 3 passengers"
        );
        assert_eq!(
            book("Hold seats for 2 passengers."),
            "hold seats for 3 passengers"
        );
    }

    #[test]
    fn a_description_without_a_verb_gets_one() {
        let mut found = tool(
            "Members by a part of their name.\n\nArgs:\n    name: a part of it",
            &[("name", ValueType::Text)],
        );
        found.name = "seek_members".into();
        let text = written(&found, &[("name", "Ada")]);
        assert!(text.ends_with(" members whose name contains Ada"), "{text}");
        assert!(!text.starts_with("members"), "{text}");
    }

    #[test]
    fn every_clause_begins_with_an_opening_of_its_tool() {
        let openings = |description: &str| super::openings(&tool(description, &[]));
        assert_eq!(openings("Create a lesson."), ["create", "set up", "make"]);
        assert_eq!(
            openings("Look up a book."),
            ["look up", "find", "search for"]
        );
        assert_eq!(openings("Lend a book."), ["lend"]);
        assert_eq!(
            openings("Members by a part of their name."),
            ["show me", "tell me", "find out"]
        );
        let list = tool("List what a member has out.", &[]);
        for seed in 0..16 {
            let text = clause(&list, &[], &mut Draws::new(Key::from_value(seed))).text();
            let mut openings = super::openings(&list).into_iter();
            assert!(openings.any(|one| text.starts_with(&one)), "{text}");
        }
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
