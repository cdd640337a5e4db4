//! Entities and values that a clause does not say yet. They are added at its end.

use super::phrase::Phrase;
use super::words::{is_plural, label, singular, with_article};
use crate::graph::ValueType;
use crate::sampling::Draws;

/// A value that is added to a clause.
pub(super) struct Detail<'a> {
    /// Words for its parameter.
    label: String,
    kind: Option<&'a ValueType>,
    said: &'a Phrase,
}

impl<'a> Detail<'a> {
    pub(super) fn new(parameter: &str, kind: Option<&'a ValueType>, said: &'a Phrase) -> Self {
        Self {
            label: label(parameter),
            kind,
            said,
        }
    }

    /// Words for the parameter where a number of things is meant: `number of seats`.
    fn full_label(&self) -> String {
        if self.said.is_number() && is_plural(&self.label) {
            format!("number of {}", self.label)
        } else {
            self.label.clone()
        }
    }

    /// The value as a part of the sentence: "on 2024-03-01", "with a deposit of 40".
    fn inline(&self, draws: &mut Draws) -> Phrase {
        let (label, said) = (self.label.as_str(), self.said);
        let lead = |words: &str| Phrase::words(words).then(said);
        let last = label.rsplit(' ').next().unwrap_or(label);
        let is_text = matches!(self.kind, Some(ValueType::Text));
        if let Some(direction) = label.strip_prefix("to ") {
            return lead(&format!("to the {direction} "));
        }
        match last {
            "since" | "after" => return lead("since "),
            "hour" => return lead("at ").and(" o'clock"),
            "percent" => return said.clone().and(" percent"),
            _ => {}
        }
        if matches!(self.kind, Some(ValueType::Date)) {
            return lead(["on ", "for "][draws.index(2)]);
        }
        if said.is_number() && is_plural(label) {
            let counted = if said.text() == "1" {
                singular(label)
            } else {
                label.to_owned()
            };
            let is_time = ["day", "night", "hour", "minute", "month", "year"]
                .contains(&singular(last).as_str());
            let before = if is_time { "for " } else { "with " };
            return lead(before).and(format!(" {counted}"));
        }
        if said.is_number() {
            let article = with_article(label);
            return match draws.index(3) {
                0 => lead(&format!("with the {label} ")),
                _ => lead(&format!("with {article} of ")),
            };
        }
        if is_text && ["title", "name", "full name"].contains(&label) && draws.chance(0.5) {
            return lead("under the name ");
        }
        match draws.index(2) {
            0 => lead(&format!("with the {label} ")),
            _ => lead("with ").and(format!(" as the {label}")),
        }
    }
}

/// Adds entities that a description names in other words.
pub(super) fn add_entities(mut clause: Phrase, entities: &[&Phrase], draws: &mut Draws) -> Phrase {
    let Some((first, others)) = entities.split_first() else {
        return clause;
    };
    // A second "for" would be read as a part of the first one.
    let has_for = clause.text().contains(" for ");
    let (open, close) = match draws.index(4) {
        0 => (": ", ""),
        1 => (" (", ")"),
        _ if has_for => (", namely ", ""),
        _ => (" for ", ""),
    };
    clause = clause.and(open).then(first);
    for (place, other) in others.iter().enumerate() {
        let joint = if place + 1 == others.len() {
            " and "
        } else {
            ", "
        };
        clause = clause.and(joint).then(other);
    }
    clause.and(close)
}

/// Adds values.
pub(super) fn add_values(mut clause: Phrase, values: &[Detail<'_>], draws: &mut Draws) -> Phrase {
    if values.is_empty() {
        return clause;
    }
    let mut order: Vec<&Detail<'_>> = values.iter().collect();
    if draws.chance(0.5) {
        order.reverse();
    }
    if let [one] = order[..]
        && is_set(&clause.text())
    {
        return clause.and(" to ").then(one.said);
    }
    match draws.index(6) {
        0 => {
            for (place, value) in order.iter().enumerate() {
                let open = if place == 0 { " (" } else { "; " };
                clause = clause
                    .and(format!("{open}{}: ", value.full_label()))
                    .then(value.said);
            }
            clause.and(")")
        }
        1 => {
            for (place, value) in order.iter().enumerate() {
                let joint = match place {
                    0 => "; ",
                    last if last + 1 == order.len() => " and ",
                    _ => ", ",
                };
                clause = clause
                    .and(format!("{joint}the {} is ", value.full_label()))
                    .then(value.said);
            }
            clause
        }
        _ => {
            for (place, value) in order.iter().enumerate() {
                let joint = match place {
                    0 => " ",
                    last if last + 1 == order.len() => " and ",
                    _ => ", ",
                };
                clause = clause.and(joint).then(&value.inline(draws));
            }
            clause
        }
    }
}

/// True if a clause asks to change something, so that the new value follows as "to 40": "change the price of the bicycle".
fn is_set(clause: &str) -> bool {
    let mut words = clause.split(' ');
    let (first, second) = (words.next(), words.next());
    let changes = match first {
        Some("change" | "update" | "correct") => true,
        Some("set") => matches!(second, Some("the" | "how" | "what" | "a" | "an")),
        _ => false,
    };
    changes && !clause.contains(" to ")
}

#[cfg(test)]
mod tests {
    use rlf_random::Key;
    use serde_json::{Value, json};

    use super::*;

    fn added(clause: &str, values: &[(&str, ValueType, Value)], seed: u64) -> String {
        let phrases: Vec<Phrase> = values
            .iter()
            .map(|(_, _, value)| Phrase::value(value))
            .collect();
        let details: Vec<Detail<'_>> = values
            .iter()
            .zip(&phrases)
            .map(|((name, kind, _), phrase)| Detail::new(name, Some(kind), phrase))
            .collect();
        let mut draws = Draws::new(Key::from_value(seed));
        add_values(Phrase::words(clause), &details, &mut draws).text()
    }

    #[test]
    fn a_new_value_follows_as_to() {
        let price = [("price", ValueType::Integer, json!(40))];
        for seed in 0..8 {
            assert_eq!(
                added("change the price of the bicycle", &price, seed),
                "change the price of the bicycle to 40"
            );
        }
    }

    #[test]
    fn values_are_said_as_a_person_would_say_them() {
        let all = [
            ("pieces", ValueType::Integer, json!(1)),
            ("new_day", ValueType::Date, json!("2024-03-01")),
            ("hour", ValueType::Integer, json!(10)),
            ("attendance", ValueType::Integer, json!(2)),
            ("title", ValueType::Text, json!("Exam")),
        ];
        let said: Vec<String> = (0..200)
            .map(|seed| added("enter a lesson", &all, seed))
            .collect();
        for wanted in [
            "with 1 piece",
            "on 2024-03-01",
            "at 10 o'clock",
            "with an attendance of 2",
            "under the name Exam",
            "(number of pieces: 1; day: 2024-03-01",
            "and the number of pieces is 1",
        ] {
            assert!(said.iter().any(|text| text.contains(wanted)), "{wanted}");
        }
        for text in &said {
            assert!(!text.contains("pieces 1") && !text.contains("  "), "{text}");
        }
    }
}
