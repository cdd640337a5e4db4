//! The JSON Schema that a plugin asks a model's answer to fit.
//!
//! A stranger wrote the schema, and a model the answer. So the schema has the bounds of a tool's ([`crate::schema`]), and the
//! answer is checked in at most [`MAX_STEPS`]. If the answer may have too many mistakes for the host's memory, it is refused
//! without saying where.

use serde_json::Value;

use crate::arguments::{MAX_EXPLAINED_CHECKS, measured};
use crate::bindings::types::Error;
use crate::offered_tools::{MAX_PLUGIN_PATTERN_BYTES, MAX_PLUGIN_SCHEMA_NODES};
use crate::schema::{MAX_STEPS, SchemaError, ToolSchema};

/// Maximum number of characters of a mistake's description, and of its place.
const MAX_MISTAKE_CHARS: usize = 300;

/// The schema of an answer, which is a JSON object.
#[derive(Debug)]
pub struct AnswerSchema(ToolSchema);

/// The reason why an answer does not fit its schema. It quotes only key names and numbers of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The answer is something else than one JSON value.
    #[error("it is not one JSON object ({0})")]
    NotJson(String),
    /// It would take more than [`MAX_STEPS`] to check.
    #[error("it is too large or too deep for the schema")]
    TooLarge,
    /// The answer breaks the schema, perhaps in too many places.
    #[error("it is too large to say where")]
    Unexplained,
    /// The answer breaks the schema.
    #[error("at `{at}`: {what}")]
    Wrong {
        /// JSON pointer into the answer; `/` is its root.
        at: String,
        /// The mistake at that place.
        what: String,
    },
}

impl AnswerSchema {
    /// Checks and compiles a schema given as JSON text.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        ToolSchema::parse(text).map(Self)
    }

    /// The schema itself, with its keys in the original order.
    pub fn value(&self) -> &Value {
        self.0.value()
    }

    /// Finds the JSON text of an answer, without the thoughts before it and the fence around it, and checks that it fits.
    pub fn read<'a>(&self, answer: &'a str) -> Result<&'a str, Misfit> {
        let text = json_of(answer);
        let value: Value =
            rlf_json::from_str(text).map_err(|error| Misfit::NotJson(shortened(&error)))?;
        let size = measured(&value).map_err(|_| Misfit::TooLarge)?;
        if self.0.steps(size) > MAX_STEPS {
            return Err(Misfit::TooLarge);
        }
        let validator = self.0.validator();
        if validator.is_valid(&value) {
            return Ok(text);
        }
        // An error of `anyOf` holds all mistakes of all its branches.
        if self.0.checks(size) > MAX_EXPLAINED_CHECKS {
            return Err(Misfit::Unexplained);
        }
        validator.validate(&value).map_err(|error| {
            let at = error.instance_path().as_str();
            let at = if at.is_empty() { "/" } else { at };
            Misfit::Wrong {
                at: shortened(&at),
                what: shortened(&error.masked()),
            }
        })?;
        Ok(text)
    }
}

/// The size of the schemas of questions that are asked together. All of them are in the host's memory at once.
#[derive(Debug, Default)]
pub(super) struct SchemaSizes {
    nodes: usize,
    pattern_bytes: usize,
}

impl SchemaSizes {
    /// Parses one more schema. Refuses it if all together are larger than those of a plugin's tools may be.
    pub(super) fn parse(&mut self, text: &str) -> Result<AnswerSchema, Error> {
        let schema = AnswerSchema::parse(text)
            .map_err(|error| Error::InvalidArguments(format!("`schema`: {error}")))?;
        self.nodes += schema.0.nodes();
        self.pattern_bytes += schema.0.pattern_bytes();
        if self.nodes > MAX_PLUGIN_SCHEMA_NODES || self.pattern_bytes > MAX_PLUGIN_PATTERN_BYTES {
            return Err(Error::InvalidArguments(
                "`schema`: those of the questions that are asked together are too large; ask fewer at once"
                    .to_owned(),
            ));
        }
        Ok(schema)
    }
}

/// The answer without thoughts at its beginning and without the fence around it.
fn json_of(answer: &str) -> &str {
    let text = answer.trim();
    // Chat templates may open the thoughts themselves, so an answer may have only their end.
    let has_begun = text.starts_with(['{', '`']);
    let after = text.split_once("</think>").filter(|_| !has_begun);
    let text = after.map_or(text, |(_, spoken)| spoken.trim());
    let fenced = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    fenced.map_or(text, |inside| {
        inside.strip_prefix("json").unwrap_or(inside).trim()
    })
}

fn shortened(mistake: &impl ToString) -> String {
    mistake
        .to_string()
        .chars()
        .take(MAX_MISTAKE_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> AnswerSchema {
        let schema = json!({
            "type": "object",
            "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}},
            "required": ["score"],
            "additionalProperties": false,
        });
        AnswerSchema::parse(&schema.to_string()).unwrap()
    }

    #[test]
    fn an_object_that_fits_is_given_without_thoughts_and_fence() {
        for answer in [
            "{\"score\": 7}",
            " \n{\"score\": 7}\n",
            "```json\n{\"score\": 7}\n```",
            "```\n{\"score\": 7}\n```",
            "<think>{\"score\": 9}?</think>\n{\"score\": 7}",
            "The template opened the thoughts.</think>```json\n{\"score\": 7}```",
        ] {
            assert_eq!(schema().read(answer), Ok("{\"score\": 7}"), "{answer}");
        }
    }

    #[test]
    fn schemas_that_are_asked_together_are_bounded() {
        let choices: Vec<u32> = (0..12_000).collect();
        let schema = json!({"type": "object", "properties": {"a": {"enum": choices}}}).to_string();
        let mut sizes = SchemaSizes::default();
        for _ in 0..8 {
            sizes.parse(&schema).unwrap();
        }
        let Err(Error::InvalidArguments(why)) = sizes.parse(&schema) else {
            panic!("more than 100,000 values were taken")
        };
        assert!(why.contains("ask fewer at once"), "{why}");
        let Err(Error::InvalidArguments(why)) = SchemaSizes::default().parse("{}") else {
            panic!("a schema without a type was taken")
        };
        assert!(
            why.starts_with("`schema`: the schema's root must have"),
            "{why}"
        );
    }

    #[test]
    fn anything_else_is_a_misfit_that_says_where() {
        let misfit = |answer: &str| schema().read(answer).unwrap_err().to_string();
        for answer in [
            "",
            "Sure: {\"score\": 7}",
            "{\"score\": 7} {\"score\": 7}",
            "<think>{\"score\": 7}",
            "{\"score\": 123456789012345678901234567890}",
        ] {
            let said = misfit(answer);
            assert!(said.starts_with("it is not one JSON object"), "{said}");
        }
        assert!(misfit("[7]").starts_with("at `/`: "));
        assert!(misfit("{\"score\": 11}").starts_with("at `/score`: "));
        let unknown = misfit("{\"score\": 7, \"mood\": \"SECRET\"}");
        assert!(
            unknown.contains("mood") && !unknown.contains("SECRET"),
            "{unknown}"
        );
        let wrong = misfit("{\"score\": \"SECRET\"}");
        assert!(
            wrong.starts_with("at `/score`: ") && !wrong.contains("SECRET"),
            "{wrong}"
        );
        let deep = format!("{{\"score\": {}1{}}}", "[".repeat(100), "]".repeat(100));
        assert_eq!(schema().read(&deep), Err(Misfit::TooLarge));
    }

    #[test]
    fn an_answer_that_is_wrong_in_every_branch_of_a_schema_costs_little_memory() {
        let branches = vec![json!({"items": {"type": "string"}}); 100];
        let schema = json!({"type": "object", "properties": {"a": {"anyOf": branches}}});
        let schema = AnswerSchema::parse(&schema.to_string()).unwrap();
        let numbers = |count: usize| json!({"a": vec![1; count]}).to_string();
        // Each number is one more mistake in each branch.
        assert_eq!(schema.read(&numbers(3_000)), Err(Misfit::Unexplained));
        let few = schema.read(&numbers(3)).unwrap_err().to_string();
        assert!(few.starts_with("at `/a`: "), "{few}");
        let texts = json!({"a": vec!["b"; 3_000]}).to_string();
        assert_eq!(schema.read(&texts), Ok(&*texts));
    }

    #[test]
    fn the_place_of_a_mistake_is_shortened() {
        let schema = r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#;
        let schema = AnswerSchema::parse(schema).unwrap();
        let answer = json!({"k".repeat(10_000): "text"}).to_string();
        let Err(Misfit::Wrong { at, .. }) = schema.read(&answer) else {
            panic!("a text passed for an integer")
        };
        assert_eq!(at, format!("/{}", "k".repeat(MAX_MISTAKE_CHARS - 1)));
    }
}
