//! The tools of a server at the beginning, which models were shown, and what later lists lack of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use rlf_plugins::schema::ToolSchema;
use rmcp::model::Tool;
use serde_json::Value;

/// The tools of a server at the beginning.
#[derive(Debug, Default)]
pub(crate) struct KnownTools(OnceLock<BTreeMap<String, Known>>);

/// A tool at the beginning.
#[derive(Debug)]
struct Known {
    /// Hash of the schema of its arguments, as the model was shown it.
    arguments: blake3::Hash,
    /// The schema of its structured answers.
    output_schema: Option<ToolSchema>,
}

impl Known {
    fn new(tool: &Tool) -> Self {
        let schema = tool.output_schema.as_ref();
        Self {
            arguments: hash_of_arguments(tool),
            // A schema that cannot be checked promises nothing.
            output_schema: schema
                .and_then(|schema| ToolSchema::new(Value::Object((**schema).clone())).ok()),
        }
    }
}

impl KnownTools {
    /// The schema that a tool promised for its structured answers.
    pub(crate) fn output_schema(&self, tool: &str) -> Option<&ToolSchema> {
        self.0.get()?.get(tool)?.output_schema.as_ref()
    }

    /// The tools of the beginning that a list lacks, or has with another schema. The first list is the beginning.
    pub(crate) fn missing(&self, tools: &[Tool]) -> BTreeSet<String> {
        let known = self.0.get_or_init(|| {
            let known = tools
                .iter()
                .map(|tool| (tool.name.to_string(), Known::new(tool)));
            known.collect()
        });
        let now: BTreeMap<&str, blake3::Hash> = tools
            .iter()
            .map(|tool| (&*tool.name, hash_of_arguments(tool)))
            .collect();
        known
            .iter()
            .filter(|(name, known)| now.get(name.as_str()) != Some(&known.arguments))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

fn hash_of_arguments(tool: &Tool) -> blake3::Hash {
    blake3::hash(&serde_json::to_vec(&tool.input_schema).unwrap_or_default())
}
