//! Tools that a model sees under other names than their author gave them and their parameters.
//!
//! A definition keeps the authors' names in its `extra`. Calls are made, and graded, under the authors' names.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::content::Content;
use crate::tool::{OWN_NAME, Observation, ToolDefinition};

/// Key in a definition's `extra` for the authors' names of its parameters: an object of them by the shown names.
const OWN_PARAMETERS: &str = "own-parameters";

/// Two parameters of a tool would be shown under one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two parameters would be shown as `{0}`")]
pub struct SameParameter(pub String);

impl ToolDefinition {
    /// Shows the tool under another name.
    pub fn rename(&mut self, name: &str) {
        let own = std::mem::replace(&mut self.name, name.to_owned());
        self.extra.push((OWN_NAME.to_owned(), Value::String(own)));
    }

    /// Shows parameters under other names, which are given by the authors' names.
    pub fn rename_parameters(
        &mut self,
        names: &BTreeMap<String, String>,
    ) -> Result<(), SameParameter> {
        rename_in(&mut self.input_schema, |own| {
            names.get(own).map(String::as_str)
        })?;
        let own = names
            .iter()
            .map(|(own, shown)| (shown.clone(), Value::String(own.clone())));
        self.extra
            .push((OWN_PARAMETERS.to_owned(), Value::Object(own.collect())));
        Ok(())
    }

    /// The author's name of the tool.
    pub fn own_name(&self) -> &str {
        let own = self.known(OWN_NAME).and_then(Value::as_str);
        own.unwrap_or(&self.name)
    }

    /// The arguments of a call of this tool, by the authors' names of the parameters.
    pub fn own_arguments(&self, arguments: &Value) -> Value {
        let (Some(names), Value::Object(given)) = (self.own_parameters(), arguments) else {
            return arguments.clone();
        };
        let own = given.iter().map(|(name, value)| {
            let own = names.get(name).and_then(Value::as_str).unwrap_or(name);
            (own.to_owned(), value.clone())
        });
        Value::Object(own.collect())
    }

    /// The definition as its author wrote it, but for the order of parameters.
    #[must_use]
    pub fn own_definition(&self) -> Self {
        let mut own = self.clone();
        if let Some(names) = self.own_parameters() {
            // The authors' names differ from each other.
            let _ = rename_in(&mut own.input_schema, |shown| names.get(shown)?.as_str());
        }
        self.own_name().clone_into(&mut own.name);
        own.extra
            .retain(|(key, _)| key != OWN_NAME && key != OWN_PARAMETERS);
        own
    }

    /// Puts the shown names of parameters into a message about arguments, which has the authors' names.
    pub fn name_as_shown(&self, message: &mut Observation) {
        let Some(names) = self.own_parameters() else {
            return;
        };
        let shown: BTreeMap<&str, &str> = names
            .iter()
            .filter_map(|(shown, own)| Some((own.as_str()?, shown.as_str())))
            .collect();
        for content in &mut message.content {
            if let Content::Text(text) = content {
                *text = with_words(text, &shown);
            }
        }
    }

    fn own_parameters(&self) -> Option<&Map<String, Value>> {
        self.known(OWN_PARAMETERS)?.as_object()
    }

    fn known(&self, key: &str) -> Option<&Value> {
        let (_, value) = self.extra.iter().find(|(name, _)| name == key)?;
        Some(value)
    }
}

/// Renames the properties of a schema, in their order.
fn rename_in<'a>(
    schema: &mut Value,
    name_of: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), SameParameter> {
    let new_name = |name: &str| name_of(name).unwrap_or(name).to_owned();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let mut renamed = Map::with_capacity(properties.len());
        for (name, property) in std::mem::take(properties) {
            let name = new_name(&name);
            if renamed.insert(name.clone(), property).is_some() {
                return Err(SameParameter(name));
            }
        }
        *properties = renamed;
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        for name in required {
            if let Value::String(text) = name {
                *text = new_name(text);
            }
        }
    }
    Ok(())
}

/// A text with other words in place of some. A word consists of letters, digits and underscores.
fn with_words(text: &str, others: &BTreeMap<&str, &str>) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        written.push_str(others.get(word).unwrap_or(&word));
        let next = behind.find(is_part).unwrap_or(behind.len());
        written.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> ToolDefinition {
        serde_json::from_value(json!({
            "name": "Gym-book_class",
            "description": "Book a class.",
            "input-schema": {
                "type": "object",
                "properties": {"member_id": {"type": "string"}, "day": {"type": "string"}, "seats": {"default": 1}},
                "required": ["member_id", "day"],
            },
        }))
        .unwrap()
    }

    fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(own, shown): &(&str, &str)| ((*own).to_owned(), (*shown).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn a_renamed_tool_says_its_own_names_and_arguments() {
        let mut shown = tool();
        shown.rename("lamset");
        shown
            .rename_parameters(&names(&[("member_id", "zorvik"), ("seats", "plon")]))
            .unwrap();
        let properties = shown.input_schema["properties"].as_object().unwrap();
        assert_eq!(
            properties.keys().collect::<Vec<_>>(),
            ["zorvik", "day", "plon"]
        );
        assert_eq!(shown.input_schema["required"], json!(["zorvik", "day"]));
        assert_eq!(shown.own_name(), "Gym-book_class");
        let arguments = json!({"day": "2025-03-01", "zorvik": "M1", "other": 2});
        assert_eq!(
            shown.own_arguments(&arguments).to_string(),
            r#"{"day":"2025-03-01","member_id":"M1","other":2}"#
        );
        assert_eq!(shown.own_definition(), tool());
        // Unchanged tools are as they are.
        assert_eq!(tool().own_definition(), tool());
        assert_eq!(tool().own_arguments(&arguments), arguments);
    }

    #[test]
    fn messages_about_arguments_have_the_names_that_the_model_sees() {
        let mut shown = tool();
        shown
            .rename_parameters(&names(&[("member_id", "zorvik"), ("day", "fesk")]))
            .unwrap();
        let mut message = Observation::text(
            "`member_id` is missing, `day` is no date; today and member_ids are fine",
            true,
        );
        shown.name_as_shown(&mut message);
        assert_eq!(
            message.content,
            [Content::Text(
                "`zorvik` is missing, `fesk` is no date; today and member_ids are fine".into()
            )]
        );
    }

    #[test]
    fn two_parameters_never_get_one_name() {
        let mut shown = tool();
        let taken = shown.rename_parameters(&names(&[("member_id", "day")]));
        assert_eq!(taken, Err(SameParameter("day".to_owned())));
    }
}
