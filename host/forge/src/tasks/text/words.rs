//! Names of tools, parameters and entities as ordinary words.

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

/// What one of a kind of entity is called: `Clinic.waiting_number` is a `waiting number`.
pub fn noun(entity: &str) -> String {
    spaced(entity.split_once('.').map_or(entity, |(_, name)| name))
}

/// Whether a field has the name by which people know its entity.
pub(super) fn is_label(field: &str) -> bool {
    matches!(
        field,
        "name" | "title" | "full_name" | "label" | "subject" | "purpose" | "customer"
    )
}

/// Whether a field has the name of a person.
pub(super) fn is_person(field: &str) -> bool {
    matches!(field, "full_name" | "customer")
}

/// The words by which a user refers to a parameter or field.
pub(super) fn label(name: &str) -> String {
    let words = spaced(if name == "name_part" { "name" } else { name });
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
