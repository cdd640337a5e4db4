//! Scenarios: there, and possible to generate.

use crate::date;
use crate::finding::{Finding, Kind};
use crate::model::{Field, Generator, Specification, Type};
use crate::names::suggestion;

pub(super) fn check(specification: &Specification, findings: &mut Vec<Finding>) {
    let mut bad = |place: String, message: String, mend: String| {
        findings.push(Finding::new(Kind::BadScenario, place, message, mend));
    };
    if specification.scenarios.is_empty() {
        bad(
            "/scenarios".into(),
            "there is no scenario".into(),
            "write one for each size".into(),
        );
    }
    let entities = || specification.entities.iter();
    for (index, scenario) in specification.scenarios.iter().enumerate() {
        let at = format!("/scenarios/{index}");
        if specification.scenarios[..index]
            .iter()
            .any(|other| other.size == scenario.size)
        {
            let message = format!("there are two scenarios `{}`", scenario.size.name());
            bad(format!("{at}/size"), message, "leave one out".into());
        }
        for (name, count) in &scenario.counts {
            let place = format!("{at}/counts/{name}");
            if entities().all(|entity| entity.name != *name) {
                let known = entities().map(|entity| entity.name.as_str());
                bad(
                    place,
                    format!("there is no entity `{name}`"),
                    suggestion(name, known),
                );
            } else if count.range().0 > count.range().1 {
                bad(
                    place,
                    "the least is above the most".into(),
                    "exchange them".into(),
                );
            }
        }
        for (name, generator) in &scenario.generate {
            let place = format!("{at}/generate/{}", name.replace('/', "~1"));
            let field = match name.split_once('.') {
                Some((entity, field)) => entities()
                    .filter(|one| one.name == entity)
                    .flat_map(|one| &one.fields)
                    .find(|one| one.name == field),
                None => specification
                    .values
                    .iter()
                    .find(|value| value.name == *name),
            };
            match field {
                None => bad(
                    place,
                    format!("there is no field `{name}`"),
                    "write `entity.field`, or the name of a single value".into(),
                ),
                Some(field) => {
                    let is_value = !name.contains('.');
                    if let Some((message, mend)) =
                        problem(specification, field, Some(generator), is_value)
                    {
                        bad(place, message, mend);
                    }
                }
            }
        }
    }
    for (index, value) in specification.values.iter().enumerate() {
        if let Some((message, mend)) = problem(specification, value, value.generate.as_ref(), true)
        {
            bad(format!("/values/{index}"), message, mend);
        }
    }
    for (index, entity) in specification.entities.iter().enumerate() {
        for (number, field) in entity.fields.iter().enumerate() {
            if let Some((message, mend)) =
                problem(specification, field, field.generate.as_ref(), false)
            {
                bad(format!("/entities/{index}/fields/{number}"), message, mend);
            }
        }
    }
}

/// Finds the reason why a generator cannot fill a field, and what to do.
fn problem(
    specification: &Specification,
    field: &Field,
    generator: Option<&Generator>,
    is_value: bool,
) -> Option<(String, String)> {
    let name = &field.name;
    let vocabulary = |word: &str| {
        let words = specification.vocabularies.get(word);
        if words.is_some_and(|words| !words.is_empty()) {
            return None;
        }
        let known = specification.vocabularies.keys().map(String::as_str);
        Some((
            format!("there is no vocabulary `{word}` with words"),
            suggestion(word, known),
        ))
    };
    let of_kind = |fits: bool, what: &str| {
        let message = format!("`{name}` is {}, and {what} does not fit", field.kind);
        (!fits).then(|| (message, "use another generator".to_owned()))
    };
    match generator {
        None => {
            let has_limits = field.minimum.is_some() && field.maximum.is_some();
            let drawn = field.optional
                || match field.kind {
                    Type::Text | Type::Date => false,
                    Type::Integer | Type::Number => has_limits,
                    _ => true,
                };
            (!drawn).then(|| {
                (
                    format!("no generated state can fill `{name}`"),
                    "give it `generate`, or a minimum and a maximum".to_owned(),
                )
            })
        }
        Some(Generator::Constant(_)) => None,
        Some(Generator::Choice(values)) => of_kind(!values.is_empty(), "a choice of nothing"),
        Some(Generator::Word(word)) => {
            vocabulary(word).or_else(|| of_kind(field.kind == Type::Text, "a word"))
        }
        Some(Generator::Template(template)) => template
            .split('{')
            .skip(1)
            .find_map(|part| match part.split_once('}') {
                Some((word, _)) => vocabulary(word),
                None => Some(("a brace is open".to_owned(), "close it".to_owned())),
            })
            .or_else(|| of_kind(field.kind == Type::Text, "a template")),
        Some(Generator::Range { minimum, maximum }) => {
            let fits = matches!(field.kind, Type::Integer | Type::Number);
            let order = minimum.as_f64() <= maximum.as_f64();
            let whole = field.kind != Type::Integer || minimum.is_i64() && maximum.is_i64();
            of_kind(fits && order && whole, "this range")
        }
        Some(Generator::Dates { from, to }) => {
            let days = date::parse(from).zip(date::parse(to));
            let fits = field.kind == Type::Date && days.is_some_and(|(from, to)| from <= to);
            of_kind(fits, "this range of dates")
        }
        Some(Generator::Expression(_)) => of_kind(!is_value, "an expression of a single value"),
    }
}
