//! The noun phrase of a mention.

use serde_json::Value;

use super::phrase::Phrase;
use super::words::{is_label, is_person, noun, spaced};
use crate::sampling::Draws;
use crate::tasks::request::{Description, Fact, Mention};

/// The noun phrase of a mention.
pub(super) fn phrase(mention: &Mention, draws: &mut Draws) -> Phrase {
    match mention {
        Mention::Value(value) => said(value, draws),
        Mention::Described(description) => described(description, draws),
        Mention::Same { entity, .. } => {
            let forms = ["the same", "that same", "that", "this"];
            Phrase::words(format!(
                "{} {}",
                forms[draws.index(forms.len())],
                noun(entity)
            ))
        }
        Mention::Produced { entity, .. } => {
            let noun = noun(entity);
            let forms = [
                format!("the new {noun}"),
                format!("the {noun} that this makes"),
                format!("the resulting {noun}"),
                format!("the {noun} from that step"),
            ];
            Phrase::words(forms[draws.index(forms.len())].clone())
        }
        Mention::FieldOf { field, .. } => {
            let field = spaced(field);
            let forms = [
                format!("as much as its {field}"),
                format!("exactly the {field} on record"),
                format!("the whole {field}"),
                format!("whatever the {field} is"),
            ];
            Phrase::words(forms[draws.index(forms.len())].clone())
        }
    }
}

/// A value; texts of several words are often in quotation marks.
fn said(value: &Value, draws: &mut Draws) -> Phrase {
    match value {
        Value::String(text) if text.contains(' ') && draws.chance(0.6) => {
            Phrase::words("\"").then(&Phrase::value(value)).and("\"")
        }
        _ => Phrase::value(value),
    }
}

fn described(description: &Description, draws: &mut Draws) -> Phrase {
    if let Some(through) = &description.through {
        let owner = Description {
            entity: through.entity.clone(),
            through: None,
            facts: description.facts.clone(),
        };
        let noun = spaced(through.field.strip_suffix("_id").unwrap_or(&through.field));
        let forms = [
            format!("the {noun} of "),
            format!("the {noun} that belongs to "),
            format!("the {noun} behind "),
        ];
        return Phrase::words(forms[draws.index(forms.len())].clone())
            .then(&described(&owner, draws));
    }
    let noun = noun(&description.entity);
    let facts = &description.facts;
    let named = facts.iter().position(
        |fact| matches!(fact, Fact::Is { field, value } if is_label(field) && value.is_string()),
    );
    let extreme = facts
        .iter()
        .find(|fact| matches!(fact, Fact::Extreme { .. }));
    let mut phrase = match (named.map(|place| &facts[place]), extreme) {
        (Some(Fact::Is { field, value }), _) => {
            called(&noun, field, value, facts.len() == 1, draws)
        }
        (_, Some(Fact::Extreme { field, highest })) => utmost(&noun, field, *highest, draws),
        _ if facts.contains(&Fact::Only) => Phrase::words(format!("the only {noun}")),
        _ => Phrase::words(format!("the {noun}")),
    };
    for fact in facts {
        if let Fact::Of { mention, .. } = fact {
            let forms = [" of ", " of ", " for ", " that belongs to "];
            phrase = phrase
                .and(forms[draws.index(forms.len())])
                .then(&self::phrase(mention, draws));
        }
    }
    let mut told = 0;
    for (place, fact) in facts.iter().enumerate() {
        if let Fact::Is { field, value } = fact
            && named != Some(place)
        {
            if value.is_boolean() {
                let said = Phrase::value(value);
                phrase = phrase
                    .and(format!(" ({}: ", spaced(field)))
                    .then(&said)
                    .and(")");
                continue;
            }
            phrase = phrase
                .and(with(&spaced(field), told, draws))
                .then(&said(value, draws));
            told += 1;
        }
    }
    for fact in facts {
        match fact {
            Fact::Among { parameter, value } => {
                let label = spaced(parameter);
                phrase = phrase
                    .and(format!(" ({label}: "))
                    .then(&Phrase::value(value))
                    .and(")");
            }
            Fact::Extreme { field, highest } if named.is_some() => {
                phrase = phrase.and(format!(
                    ", the one with the {} {}",
                    extreme_word(field, *highest),
                    spaced(field)
                ));
            }
            _ => {}
        }
    }
    phrase
}

/// Words before the value of a field.
fn with(field: &str, told: usize, draws: &mut Draws) -> String {
    if told > 0 {
        return format!(" and {field} ");
    }
    let forms = [
        format!(" with {field} "),
        format!(" whose {field} is "),
        format!(" that has {field} "),
        format!(", {field} "),
    ];
    forms[draws.index(forms.len())].clone()
}

/// An entity by its name.
fn called(noun: &str, field: &str, value: &Value, alone: bool, draws: &mut Draws) -> Phrase {
    let value = Phrase::value(value);
    if is_person(field) && alone && draws.chance(0.5) {
        return value;
    }
    let quoted = Phrase::words("\"").then(&value).and("\"");
    match draws.index(if is_person(field) { 3 } else { 6 }) {
        0 => Phrase::words(format!("the {noun} ")).then(&value),
        1 => Phrase::words(format!("{noun} ")).then(&value),
        2 => Phrase::words(format!("the {noun} named ")).then(&value),
        3 => Phrase::words(format!("the {noun} ")).then(&quoted),
        4 => Phrase::words(format!("the {noun} called ")).then(&quoted),
        _ => Phrase::words(format!("the {noun} with the {} ", spaced(field))).then(&quoted),
    }
}

/// An entity by the highest or lowest value of a field.
fn utmost(noun: &str, field: &str, highest: bool, draws: &mut Draws) -> Phrase {
    let word = extreme_word(field, highest);
    let field = spaced(field);
    let mut forms = vec![
        format!("the {noun} with the {word} {field}"),
        format!("the {noun} that has the {word} {field}"),
        format!("whichever {noun} has the {word} {field}"),
    ];
    if matches!(field.as_str(), "price" | "cost" | "fare" | "fee") {
        let word = if highest {
            "most expensive"
        } else {
            "cheapest"
        };
        forms.push(format!("the {word} {noun}"));
    }
    Phrase::words(forms[draws.index(forms.len())].clone())
}

fn extreme_word(field: &str, highest: bool) -> &'static str {
    let is_time = [
        "day", "due", "since", "sent", "opened", "expires", "ends", "date", "begins",
    ]
    .iter()
    .any(|word| spaced(field).split(' ').any(|one| one == *word));
    match (is_time, highest) {
        (true, true) => "latest",
        (true, false) => "earliest",
        (false, true) => "highest",
        (false, false) => "lowest",
    }
}
