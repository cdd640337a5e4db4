//! Names of tools, parameters and entities as ordinary words.

pub(super) use crate::english::with_article;
pub(in crate::tasks) use crate::english::{is_plural, singular};

/// The words of a name: `savings_account` and `SavingsAccount` are `savings account`.
pub fn spaced(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for letter in name.chars() {
        if letter == '_' || letter == '-' || letter == '.' {
            words.push(' ');
        } else {
            if letter.is_uppercase() && before.is_lowercase() {
                words.push(' ');
            }
            words.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}

/// The noun for a kind of entity: `Clinic.waiting_number` is a `waiting number`.
pub fn noun(entity: &str) -> String {
    spaced(entity.split_once('.').map_or(entity, |(_, name)| name))
}

/// True if people know an entity by this field.
pub(super) fn is_label(field: &str) -> bool {
    matches!(
        field,
        "name" | "title" | "full_name" | "label" | "subject" | "purpose" | "customer" | "recipient"
    )
}

/// True if a field has the name of a person.
pub(super) fn is_person(field: &str) -> bool {
    matches!(field, "full_name" | "customer" | "recipient")
}

/// Names of fields and parameters that are not nouns, and the nouns that people would say.
const NOUNS: [(&str, &str); 25] = [
    ("name_part", "name"),
    ("open", "open amount"),
    ("left", "amount left"),
    ("owed", "amount owed"),
    ("paid", "amount paid"),
    ("money", "amount"),
    ("extra", "extra amount"),
    ("least", "smallest amount"),
    ("worth", "value"),
    ("monthly", "monthly amount"),
    ("per_day", "daily amount"),
    ("free", "availability"),
    ("reserved", "reserved quantity"),
    ("max_loans", "loan limit"),
    ("new_day", "day"),
    ("new_hour", "hour"),
    ("due", "due date"),
    ("sent", "sending date"),
    ("opened", "opening date"),
    ("reported", "report date"),
    ("planned", "planned date"),
    ("expires", "expiry date"),
    ("begins", "start date"),
    ("ends", "end date"),
    ("late_minutes", "minutes"),
];

/// The words by which a user refers to a parameter or field.
pub(super) fn label(name: &str) -> String {
    if let Some((_, noun)) = NOUNS.iter().find(|(field, _)| *field == name) {
        return (*noun).to_owned();
    }
    let words = spaced(name);
    words.strip_suffix(" id").unwrap_or(&words).to_owned()
}

/// A text with a small first letter, unless it begins with an abbreviation.
pub(super) fn lowered(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), second) if !second.is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// A text with a large first letter.
pub(super) fn raised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_ordinary_words() {
        assert_eq!(
            spaced("SavingsAccount.first_name"),
            "savings account first name"
        );
        assert_eq!(noun("Clinic.waiting_number"), "waiting number");
        assert_eq!(label("member_id"), "member");
        assert_eq!(label("left"), "amount left");
    }
}
