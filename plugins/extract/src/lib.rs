//! The tool `extract`: a language model finds named facts in a text.
//!
//! The model's reply is checked: it has exactly the fields that were asked for, and its strings occur in the text. A
//! reply that fails a check is asked for once more. After that, a string that the text does not contain is left out, so
//! a value that the model made up never reaches the caller unmarked. The text is data: the model sees it between
//! delimiters that its author cannot know.
//!
//! ```toml
//! [plugins.extract.config]    # every key may be left out
//! model = ""                  # the model, by the name in the grants; default: the first one
//! instructions = ""           # added to the instructions of the model
//! verbatim = true             # strings must occur in the text
//! max_tokens = 1_024          # length of an answer; 0: all that the operator allows
//! max_chars = 48_000          # characters of the text; at least 1_000
//! ```

mod config;
mod fields;
mod finding;
mod values;
mod verbatim;

use std::collections::BTreeMap;

use rlf_plugin::serde_json::{Map, Value};
use rlf_plugin::{CallContext, Observation, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use config::Config;
use fields::Fields;

fn init(config: Config) -> Result<Config, String> {
    config.check()
}

/// The arguments of [`extract`](fn@extract).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extract {
    /// The text
    text: String,
    /// What to find: a description of each field, by the name that the field has in the result
    #[schemars(with = "BTreeMap<String, String>", extend("minProperties" = 1, "maxProperties" = 20))]
    fields: Map<String, Value>,
}

/// Finds facts in a text. A field is null if the text does not say it.
#[tool(read_only, idempotent, open_world)]
fn extract(
    Extract { text, fields }: Extract,
    context: &CallContext,
    config: &Config,
) -> Result<Observation, String> {
    let fields = Fields::read(&fields)?;
    let length = text.chars().count();
    if length > config.max_chars {
        return Err(format!(
            "the text has {length} characters, and may have {}; give the part of it that says what you look for",
            config.max_chars
        ));
    }
    if text.trim().is_empty() {
        return Err("the text is empty".to_owned());
    }
    finding::find(&text, &fields, context.seed, config)
}

plugin!(init: init, tools: [extract]);

#[cfg(test)]
mod tests;
