//! Types, keys and vocabularies of a server's tools, from its schemas and from what was observed.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::tool::ToolDefinition;
use rlf_specification::date;
use serde_json::Value;

use super::WhyLeftOut;
use super::collections::{Collections, is_key_name, is_opaque, without_key_word};
use crate::graph::{Input, Output, Tool, ValueType, defined_tool};
use crate::tasks::make::items;
use crate::tasks::record::Arguments;

/// Calls of a tool that succeeded with a result that is not empty, and what else is known of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    /// Arguments and results.
    pub(super) calls: Vec<(Arguments, Value)>,
    /// Number of calls that succeeded.
    pub(super) succeeded: usize,
    /// True if a call changed the state.
    pub(super) changes: bool,
    /// True if sessions with different seeds gave different results.
    pub(super) by_chance: bool,
    /// True if a call was stopped or broke.
    pub(super) broke: bool,
}

/// A tool, and the fields of the state that have the values of its parameters.
pub(super) struct Known {
    pub(super) tool: Tool,
    pub(super) vocabularies: BTreeMap<String, String>,
}

/// The tool of a definition as it was observed.
pub(super) fn known(
    server: &str,
    definition: &ToolDefinition,
    evidence: &Evidence,
    collections: &Collections,
) -> Result<Known, WhyLeftOut> {
    if evidence.broke {
        return Err(WhyLeftOut::Broke);
    }
    if evidence.by_chance {
        return Err(WhyLeftOut::Chance);
    }
    if evidence.succeeded == 0 {
        return Err(WhyLeftOut::NeverSucceeded);
    }
    let prefix = format!("{server}-");
    let mut plain = definition.clone();
    if let Some(name) = definition.name.strip_prefix(&prefix) {
        name.clone_into(&mut plain.name);
    }
    let mut tool = defined_tool(server, &plain);
    // Objects were flattened. A sentence says values, so an object that may be left out is.
    let is_inside = |input: &Input| input.name.contains('.') || input.kind == ValueType::Object;
    if tool
        .inputs
        .iter()
        .any(|input| input.required && is_inside(input))
    {
        return Err(WhyLeftOut::TakesObject);
    }
    tool.inputs.retain(|input| !is_inside(input));
    let mut vocabularies = BTreeMap::new();
    for input in &mut tool.inputs {
        let given: Vec<&Value> = evidence
            .calls
            .iter()
            .filter_map(|(arguments, _)| arguments.get(&input.name))
            .collect();
        if let Some(field) = refine(server, input, &given, collections) {
            vocabularies.insert(input.name.clone(), field);
        }
    }
    tool.outputs = outputs(server, evidence, collections);
    Ok(Known { tool, vocabularies })
}

/// Gives an input the type that its values have. Returns the field of the state that has all of them, if it is a text of
/// a vocabulary.
fn refine(
    server: &str,
    input: &mut Input,
    given: &[&Value],
    collections: &Collections,
) -> Option<String> {
    if input.kind == ValueType::Any {
        input.kind = kind(given);
    }
    if input.kind != ValueType::Text {
        return None;
    }
    let texts = texts(given);
    let named = without_key_word(&input.name);
    let is_key = is_key_name(&input.name);
    if is_key || !texts.is_empty() && texts.iter().all(|text| is_opaque(text)) {
        let entity = collections.entity(&named, &texts).map(str::to_owned);
        let entity = entity.or_else(|| (is_key && collections.has(&named)).then_some(named));
        if let Some(entity) = entity {
            input.kind = ValueType::Key(format!("{server}.{entity}"));
            input.from_user = None;
            return None;
        }
    }
    if kind(given) == ValueType::Date {
        input.kind = ValueType::Date;
        return None;
    }
    let field = collections.vocabulary(&input.name, &texts);
    field.map(str::to_owned)
}

/// The fields of the items in results, in the order in which they were first seen.
fn outputs(server: &str, evidence: &Evidence, collections: &Collections) -> Vec<Output> {
    let mut fields: Vec<(&String, Vec<&Value>)> = Vec::new();
    for (_, result) in &evidence.calls {
        for (name, value) in items(result)
            .iter()
            .filter_map(Value::as_object)
            .flatten()
            .filter(|(_, value)| !value.is_null())
        {
            match fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => fields.push((name, vec![value])),
            }
        }
    }
    let output = |(name, values): (&String, Vec<&Value>)| {
        let texts = texts(&values);
        let named = without_key_word(name);
        let mut kind = kind(&values);
        if kind == ValueType::Text
            && (is_key_name(name) || texts.iter().all(|text| is_opaque(text)))
        {
            let entity = collections.entity(&named, &texts).map(str::to_owned);
            let entity =
                entity.or_else(|| (is_key_name(name) && !named.is_empty()).then_some(named));
            if let Some(entity) = entity {
                kind = ValueType::Key(format!("{server}.{entity}"));
            }
        }
        Output {
            name: name.clone(),
            kind,
            description: String::new(),
        }
    };
    fields.into_iter().map(output).collect()
}

fn texts<'a>(values: &[&'a Value]) -> BTreeSet<&'a str> {
    let texts = values.iter().filter_map(|value| value.as_str());
    texts.filter(|text| !text.is_empty()).collect()
}

/// The type that all values have.
fn kind(values: &[&Value]) -> ValueType {
    let all = |is: fn(&Value) -> bool| !values.is_empty() && values.iter().all(|value| is(value));
    if all(Value::is_boolean) {
        ValueType::Boolean
    } else if all(|value| value.is_i64() || value.is_u64()) {
        ValueType::Integer
    } else if all(Value::is_number) {
        ValueType::Number
    } else if all(|value| {
        value
            .as_str()
            .is_some_and(|text| date::parse(text).is_some())
    }) {
        ValueType::Date
    } else if all(Value::is_string) {
        ValueType::Text
    } else if all(Value::is_array) {
        let items: Vec<&Value> = values
            .iter()
            .filter_map(|value| value.as_array())
            .flatten()
            .collect();
        ValueType::List(Box::new(kind(&items)))
    } else if all(Value::is_object) {
        ValueType::Object
    } else {
        ValueType::Any
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::tool::Hints;
    use serde_json::json;

    use super::*;

    fn collections() -> Collections {
        let mut collections = Collections::default();
        collections.learn(&json!({
            "books": { "b1": { "title": "Night" }, "b2": { "title": "Salt" } },
            "members": { "m1": { "name": "Ada", "certificates": ["saw", "lathe"] } },
            "loans": [{ "loan_id": "L1", "book_id": "b1", "member_id": "m1" }],
            "shelf": { "flour": { "amount": 3 }, "salt": { "amount": 1 } },
            "tank": { "litres": 3 },
        }));
        collections
    }

    fn definition(properties: &Value) -> ToolDefinition {
        let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
        ToolDefinition {
            name: "Library-lend".into(),
            description: "Lend a book.".into(),
            input_schema: json!({ "type": "object", "properties": properties, "required": names }),
            output_schema: None,
            hints: Hints::default(),
            extra: Vec::new(),
        }
    }

    fn called(arguments: &Value, result: Value) -> Evidence {
        Evidence {
            calls: vec![(arguments.as_object().unwrap().clone(), result)],
            succeeded: 1,
            changes: true,
            ..Evidence::default()
        }
    }

    #[test]
    fn keys_are_found_by_what_they_name() {
        let text = json!({ "type": "string" });
        let definition = definition(&json!({
            "book_id": text, "who": text, "certificate": text, "note": text, "day": text,
            "hours": { "anyOf": [{ "type": "integer" }, { "type": "number" }] },
        }));
        let evidence = called(
            &json!({ "book_id": "b2", "who": "m1", "certificate": "saw", "note": "x 1", "day": "2024-05-01", "hours": 2.5 }),
            json!([{ "loan_id": "L1", "book_id": "b1", "title": "Night", "due": 3, "tags": ["a"] }]),
        );
        let known = known("Library", &definition, &evidence, &collections()).unwrap();
        let inputs: Vec<String> = known
            .tool
            .inputs
            .iter()
            .map(|input| format!("{}: {}", input.name, input.kind))
            .collect();
        assert_eq!(
            inputs,
            [
                "book_id: key of Library.book",
                "who: key of Library.member",
                "certificate: text",
                "note: text",
                "day: date",
                "hours: number",
            ]
        );
        let secret = known
            .tool
            .inputs
            .iter()
            .filter(|input| input.from_user.is_none());
        assert_eq!(secret.count(), 2);
        assert_eq!(
            known.vocabularies,
            BTreeMap::from([("certificate".to_owned(), "certificates".to_owned())])
        );
        let outputs: Vec<String> = known
            .tool
            .outputs
            .iter()
            .map(|output| format!("{}: {}", output.name, output.kind))
            .collect();
        assert_eq!(
            outputs,
            [
                "loan_id: key of Library.loan",
                "book_id: key of Library.book",
                "title: text",
                "due: integer",
                "tags: list of text",
            ]
        );
        assert_eq!(known.tool.full_name(), "Library-lend");
    }

    #[test]
    fn a_tool_that_cannot_be_used_is_left_out_with_the_reason() {
        let text = definition(&json!({ "book_id": { "type": "string" } }));
        let object = definition(&json!({ "who": { "type": "object" } }));
        let good = called(&json!({ "book_id": "b1" }), json!({ "due": 1 }));
        let with = |change: fn(&mut Evidence)| {
            let mut evidence = good.clone();
            change(&mut evidence);
            evidence
        };
        let cases = [
            (&text, with(|one| one.broke = true), WhyLeftOut::Broke),
            (&text, with(|one| one.by_chance = true), WhyLeftOut::Chance),
            (
                &text,
                with(|one| one.succeeded = 0),
                WhyLeftOut::NeverSucceeded,
            ),
            (&object, with(|_| {}), WhyLeftOut::TakesObject),
        ];
        for (definition, evidence, why) in cases {
            let left_out = known("Library", definition, &evidence, &collections());
            assert_eq!(left_out.err(), Some(why));
        }
        assert!(known("Library", &text, &good, &collections()).is_ok());
    }
}
