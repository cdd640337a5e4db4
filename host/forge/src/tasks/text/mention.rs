//! The noun phrase of a mention.

use serde_json::Value;

use super::phrase::Phrase;
use super::words::{is_label, is_person, is_plural, label, noun, spaced, with_article};
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
                format!("that new {noun}"),
                format!("the resulting {noun}"),
                format!("the {noun} that comes of it"),
            ];
            Phrase::words(forms[draws.index(forms.len())].clone())
        }
        Mention::FieldOf { field, .. } => {
            let field = label(field);
            let forms = [
                format!("exactly its {field}"),
                format!("the {field} on record"),
                format!("the whole {field}"),
                format!("the full {field}"),
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
                    .and(format!(" ({}: ", label(field)))
                    .then(&said)
                    .and(")");
                continue;
            }
            phrase = phrase
                .and(if told == 0 { " " } else { " and " })
                .then(&property(field, value, draws));
            told += 1;
        }
    }
    for fact in facts {
        match fact {
            Fact::Among { parameter, value } => {
                phrase = phrase
                    .and(format!(" ({}: ", label(parameter)))
                    .then(&Phrase::value(value))
                    .and(")");
            }
            Fact::Extreme { field, highest } if named.is_some() => {
                phrase = phrase.and(format!(
                    ", the one with the {}",
                    superlative(field, *highest)
                ));
            }
            _ => {}
        }
    }
    phrase
}

/// A property: "with 12 seats", "with a price of 40", "whose status is open".
fn property(field: &str, value: &Value, draws: &mut Draws) -> Phrase {
    let label = label(field);
    if value.is_number() && is_plural(&label) {
        let verb = ["with ", "that has "][draws.index(2)];
        return Phrase::words(verb)
            .then(&Phrase::value(value))
            .and(format!(" {label}"));
    }
    let forms = if value.is_number() {
        let article = with_article(&label);
        [format!("with {article} of "), format!("whose {label} is ")]
    } else {
        [format!("with the {label} "), format!("whose {label} is ")]
    };
    Phrase::words(forms[draws.index(forms.len())].clone()).then(&said(value, draws))
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
        _ => Phrase::words(format!("the {noun} with the {} ", label(field))).then(&quoted),
    }
}

/// An entity by the highest or lowest value of a field.
fn utmost(noun: &str, field: &str, highest: bool, draws: &mut Draws) -> Phrase {
    let most = superlative(field, highest);
    let mut forms = vec![
        format!("the {noun} with the {most}"),
        format!("the {noun} that has the {most}"),
        format!("whichever {noun} has the {most}"),
    ];
    if matches!(field, "price" | "cost" | "fare" | "fee") {
        let word = if highest {
            "most expensive"
        } else {
            "cheapest"
        };
        forms.push(format!("the {word} {noun}"));
    }
    Phrase::words(forms[draws.index(forms.len())].clone())
}

/// The highest or lowest value of a field in words: "most seats", "latest due date", "largest capacity".
fn superlative(field: &str, highest: bool) -> String {
    let label = label(field);
    let is = |words: &[&str]| label.split(' ').any(|word| words.contains(&word));
    let (high, low) = if is(&[
        "day",
        "date",
        "due",
        "since",
        "hour",
        "departure",
        "time",
        "night",
    ]) {
        ("latest", "earliest")
    } else if is_plural(&label) {
        ("most", "fewest")
    } else if is(&[
        "amount", "quantity", "capacity", "size", "stock", "count", "total", "aperture", "number",
    ]) {
        ("largest", "smallest")
    } else {
        ("highest", "lowest")
    };
    format!("{} {label}", if highest { high } else { low })
}

#[cfg(test)]
mod tests {
    use super::superlative;

    #[test]
    fn extremes_are_said_as_people_say_them() {
        for (field, high, low) in [
            ("seats", "most seats", "fewest seats"),
            ("due", "latest due date", "earliest due date"),
            ("open", "largest open amount", "smallest open amount"),
            ("price", "highest price", "lowest price"),
            ("status", "highest status", "lowest status"),
        ] {
            assert_eq!(superlative(field, true), high);
            assert_eq!(superlative(field, false), low);
        }
    }
}
