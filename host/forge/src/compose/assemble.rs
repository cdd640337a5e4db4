//! From a plan to a specification.

use std::collections::{BTreeMap, BTreeSet};

use rlf_random::Key;
use rlf_specification::date;
use rlf_specification::model::{
    Entity, Field, Generator, Invariant, Key as EntityKey, Scenario, Size, Specification, Type,
};

use super::archetype::Archetype;
use super::business::{Business, shared};
use super::draft::{Draft, DraftEntity};
use super::error::TemplateError;
use super::operation;
use super::plan::Plan;
use super::postconditions;
use super::words::{Noun, Words, capitalised, enumerated};

/// Maximum number of words of a list in one environment.
const MAX_WORDS: usize = 16;
/// Descriptions of the four scenarios.
const SCENARIOS: [(Size, &str); 4] = [
    (Size::Simple, "A few of everything"),
    (Size::Medium, "Enough for several steps"),
    (Size::Complex, "Many things with many relations"),
    (
        Size::Boundary,
        "Limits: little is left, and much is reached",
    ),
];

/// Puts an environment together. The error says what templates or words lack.
pub(super) fn assemble(
    business: &Business,
    name: &str,
    plan: &Plan,
    key: Key,
) -> Result<Specification, TemplateError> {
    let unknown = &shared().unknown;
    let mut draft = Draft {
        plan,
        words: words(business, plan, key.named("words")),
        entities: Vec::new(),
        labels: key.below(0, 2) == 1,
        unknown: &unknown[key.below(1, unknown.len() as u64) as usize],
    };
    entities(&mut draft, business, key)?;
    let mut operations = Vec::new();
    let mut invariants = Vec::new();
    let mut has_today = false;
    for archetype in &plan.archetypes {
        let holds = |condition: &str| plan.flags.hold(&archetype.name, condition);
        draft.words.expressions.clear();
        for (name, alternatives) in &archetype.expressions {
            let found = alternatives
                .iter()
                .find(|alternative| holds(&alternative.condition));
            if let Some(found) = found {
                draft
                    .words
                    .expressions
                    .insert(name.clone(), found.value.clone());
            }
        }
        limits(&mut draft.words, archetype, business, key);
        has_today |= archetype.today || archetype.today_if.as_deref().is_some_and(holds);
        for invariant in archetype
            .invariants
            .iter()
            .filter(|invariant| holds(&invariant.condition))
        {
            invariants.push(Invariant {
                name: draft.words.expression(&invariant.name)?,
                description: String::new(),
                require: draft.words.expression(&invariant.require)?,
            });
        }
        for operation in archetype
            .operations
            .iter()
            .filter(|operation| holds(&operation.condition))
        {
            operations.push(operation::make(&draft, archetype, operation)?);
        }
    }
    operation::name_operations(&draft, &mut operations);
    let things: Vec<String> = draft
        .entities
        .iter()
        .filter_map(|drafted| draft.words.nouns.get(&drafted.role))
        .map(|noun| noun.many.clone())
        .collect();
    let mut specification = Specification {
        name: name.to_owned(),
        description: format!("{}: {}.", capitalised(&business.about), enumerated(&things)),
        instructions: None,
        vocabularies: BTreeMap::new(),
        values: if has_today {
            vec![today(&draft.words)]
        } else {
            Vec::new()
        },
        scenarios: scenarios(&draft),
        entities: draft
            .entities
            .into_iter()
            .map(|drafted| drafted.entity)
            .collect(),
        operations,
        invariants,
    };
    postconditions::add(&mut specification);
    vocabularies(&mut specification, business, key.named("vocabularies"))?;
    Ok(specification)
}

/// Draws verbs, limits and the date, and looks nouns up.
fn words(business: &Business, plan: &Plan, key: Key) -> Words {
    let mut words = Words::default();
    for archetype in &plan.archetypes {
        for (role, nouns) in &archetype.nouns {
            let nouns = business.nouns.get(role).unwrap_or(nouns);
            words
                .nouns
                .extend(Noun::parse(nouns).map(|noun| (role.clone(), noun)));
        }
    }
    for (meaning, verbs) in &shared().verbs {
        let verb = &verbs[key.named(meaning).below(0, verbs.len() as u64) as usize];
        let (name, sentence) = verb.split_once('|').unwrap_or((verb, verb));
        words
            .verbs
            .insert(meaning.clone(), (name.to_owned(), sentence.to_owned()));
    }
    let currency = business
        .currency
        .clone()
        .unwrap_or_else(|| "euros".to_owned());
    words.texts.insert("currency".to_owned(), currency);
    words
        .texts
        .insert("about".to_owned(), business.about.clone());
    words
        .lists
        .insert("categories".to_owned(), business.categories.clone());
    words
        .lists
        .insert("units".to_owned(), business.units.clone());
    // A day of 2024 or 2025.
    words.day = date::parse("2024-01-15").unwrap_or_default() + key.below(1, 700) as i64;
    words
}

/// Draws the limits of an archetype.
fn limits(words: &mut Words, archetype: &Archetype, business: &Business, key: Key) {
    words.limits.clear();
    let key = key.named("limits").named(&archetype.name);
    for (limit, values) in &archetype.limits {
        let value = values[key.named(limit).below(0, values.len() as u64) as usize];
        words.limits.insert(limit.clone(), value);
    }
    let (least, most) = business.prices.unwrap_or((5, 90));
    words.limits.insert("price_least".to_owned(), least);
    words.limits.insert("price_most".to_owned(), most);
}

fn entities(draft: &mut Draft<'_>, business: &Business, key: Key) -> Result<(), TemplateError> {
    let plan = draft.plan;
    let with_hyphen = key.below(2, 2) == 1;
    let mut prefixes = BTreeSet::new();
    for archetype in &plan.archetypes {
        limits(&mut draft.words, archetype, business, key);
        for template in &archetype.entities {
            if !plan.flags.hold(&archetype.name, &template.condition) {
                continue;
            }
            let noun = draft.words.noun(&template.role)?.clone();
            let prefix = prefix(&noun.one, with_hyphen, &mut prefixes);
            let mut drafted = DraftEntity {
                role: template.role.clone(),
                entity: Entity {
                    name: noun.identifier(),
                    collection: noun.collection(),
                    description: draft.words.sentence(&template.description)?,
                    key: EntityKey {
                        name: noun.key(),
                        description: format!("Number of the {}", noun.one),
                        prefix,
                        random_start: false,
                    },
                    fields: Vec::new(),
                },
                label: template.label.clone(),
                initial: BTreeMap::new(),
                counts: template.counts,
                boundary: BTreeMap::new(),
            };
            draft.add_fields(archetype, &template.fields, &mut drafted)?;
            for attribute in business
                .attributes
                .get(&template.role)
                .into_iter()
                .flatten()
            {
                // Not every environment of a business knows everything.
                if key.named(&template.role).named(attribute).uniform(0) < 0.75 {
                    drafted.entity.fields.push(attribute_field(attribute)?);
                }
            }
            draft.add_boundary(&template.boundary, &mut drafted)?;
            draft.entities.push(drafted);
        }
        for extension in &archetype.extend {
            let found = draft
                .entities
                .iter()
                .position(|drafted| drafted.role == extension.role);
            let position = found.ok_or_else(|| TemplateError::NoRole(extension.role.clone()))?;
            let mut drafted = draft.entities.remove(position);
            draft.add_fields(archetype, &extension.fields, &mut drafted)?;
            draft.add_boundary(&extension.boundary, &mut drafted)?;
            draft.entities.insert(position, drafted);
        }
    }
    Ok(())
}

/// Reads `gears: integer 1 27 Number of gears`, `fuel: petrol|diesel What it burns`, `heated: boolean Whether ..`.
fn attribute_field(text: &str) -> Result<Field, TemplateError> {
    let wrong = || TemplateError::NotAnAttribute(text.to_owned());
    let (name, rest) = text.split_once(": ").ok_or_else(wrong)?;
    let (kind, mut rest) = rest.split_once(' ').ok_or_else(wrong)?;
    let mut number = || {
        let (number, after) = rest.split_once(' ')?;
        rest = after;
        number.parse::<i64>().ok()
    };
    let (kind, limits) = match kind {
        "integer" => (
            Type::Integer,
            Some((number().ok_or_else(wrong)?, number().ok_or_else(wrong)?)),
        ),
        "boolean" => (Type::Boolean, None),
        values if values.contains('|') => (
            Type::Enumeration(values.split('|').map(str::to_owned).collect()),
            None,
        ),
        _ => return Err(wrong()),
    };
    Ok(Field {
        name: name.to_owned(),
        kind,
        description: rest.to_owned(),
        optional: false,
        unique: false,
        minimum: limits.map(|(least, _)| least.into()),
        maximum: limits.map(|(_, most)| most.into()),
        generate: None,
    })
}

/// The beginning of keys: the first letter and consonants after it.
fn prefix(noun: &str, with_hyphen: bool, taken: &mut BTreeSet<String>) -> String {
    let noun = noun.to_uppercase().replace([' ', '-'], "");
    let consonants: String = noun
        .chars()
        .skip(1)
        .filter(|one| !"AEIOUY".contains(*one))
        .collect();
    let first = noun.chars().next().unwrap_or('X');
    let mut candidates =
        (1..=consonants.len()).map(|length| format!("{first}{}", &consonants[..length]));
    let found = candidates
        .find(|candidate| !taken.contains(candidate))
        .unwrap_or(noun);
    taken.insert(found.clone());
    if with_hyphen { found + "-" } else { found }
}

fn today(words: &Words) -> Field {
    let day = |after: i64| date::format(words.day + after).unwrap_or_default();
    Field {
        name: "today".to_owned(),
        kind: Type::Date,
        description: "Today's date".to_owned(),
        optional: false,
        unique: false,
        minimum: None,
        maximum: None,
        generate: Some(Generator::Dates {
            from: day(0),
            to: day(4),
        }),
    }
}

fn scenarios(draft: &Draft<'_>) -> Vec<Scenario> {
    let scenario = |(index, (size, description)): (usize, (Size, &str))| {
        let counts = draft
            .entities
            .iter()
            .map(|drafted| (drafted.entity.name.clone(), drafted.counts[index]));
        let mut generate = BTreeMap::new();
        if size == Size::Boundary {
            for drafted in &draft.entities {
                let name = |field: &String| format!("{}.{field}", drafted.entity.name);
                generate.extend(
                    drafted
                        .boundary
                        .iter()
                        .map(|(field, generator)| (name(field), generator.clone())),
                );
            }
        }
        Scenario {
            size,
            description: description.to_owned(),
            counts: counts.collect(),
            generate,
        }
    };
    SCENARIOS.into_iter().enumerate().map(scenario).collect()
}

/// Adds the lists of words that generators use.
fn vocabularies(
    specification: &mut Specification,
    business: &Business,
    key: Key,
) -> Result<(), TemplateError> {
    let fields = specification
        .entities
        .iter()
        .flat_map(|entity| &entity.fields);
    let mut used = BTreeSet::new();
    for generator in fields.filter_map(|field| field.generate.as_ref()) {
        match generator {
            Generator::Word(list) => {
                used.insert(list.clone());
            }
            Generator::Template(template) => {
                let names = template
                    .split('{')
                    .skip(1)
                    .filter_map(|part| part.split_once('}'));
                used.extend(names.map(|(name, _)| name.to_owned()));
            }
            _ => {}
        }
    }
    for list in used {
        let words = business.list(&list);
        let words = words.ok_or_else(|| TemplateError::NoWords {
            business: business.name.clone(),
            list: list.clone(),
        })?;
        let mut words = words.to_vec();
        key.named(&list).shuffle(&mut words);
        words.truncate(MAX_WORDS);
        specification.vocabularies.insert(list, words);
    }
    Ok(())
}
