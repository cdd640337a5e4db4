//! The tool `summarise`: a language model summarises a text.
//!
//! A text that is too long for one question is split into parts. Their summaries are summarised again. The text is
//! data: the model sees it between delimiters that its author cannot know.
//!
//! ```toml
//! [plugins.summarise.config]  # every key may be left out
//! model = ""                  # the model, by the name in the grants; default: the first one
//! instructions = ""           # added to the instructions of the model
//! max_words = 100             # words of a summary if the caller does not say; 10 to 500
//! max_tokens = 512            # length of an answer; 0: all that the operator allows
//! max_chars = 48_000          # characters of the text in one question; at least 1_000
//! max_parts = 8               # questions for the parts of one text; 1 to 64
//! ```

mod config;
mod parts;
mod summary;

use rlf_plugin::serde_json::{self, Value};
use rlf_plugin::{CallContext, ToolDefinition, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use config::{Config, WORDS};
use summary::Brief;

/// Maximum number of characters of `about`.
const MAX_ABOUT_CHARS: usize = 2_000;

fn init(config: Config) -> Result<Config, String> {
    config.check()
}

/// The arguments of [`summarise`](fn@summarise).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summarise {
    /// The text
    text: String,
    /// What the reader wants to know
    about: Option<String>,
    /// Words of the summary
    #[schemars(range(min = 10, max = 500))]
    max_words: Option<u32>,
}

/// Summarises a text.
#[tool(read_only, idempotent, open_world, refine = describe)]
fn summarise(
    arguments: Summarise,
    context: &CallContext,
    config: &Config,
) -> Result<String, String> {
    let Summarise {
        text,
        about,
        max_words,
    } = arguments;
    let words = max_words.unwrap_or(config.max_words);
    if !WORDS.contains(&words) {
        return Err(format!(
            "max_words is {} to {}, not {words}",
            WORDS.start(),
            WORDS.end()
        ));
    }
    if text.trim().is_empty() {
        return Err("the text is empty".to_owned());
    }
    let about = about.as_deref().map(str::trim).unwrap_or_default();
    if about.chars().count() > MAX_ABOUT_CHARS {
        return Err(format!(
            "`about` has at most {MAX_ABOUT_CHARS} characters: say what the reader wants to know in fewer words"
        ));
    }
    let brief = Brief {
        about,
        words,
        seed: context.seed,
        config,
    };
    brief.summarise(&text)
}

plugin!(init: init, tools: [summarise]);

/// The operator sets the default of `max_words`, so it is not in the struct.
fn describe(mut definition: ToolDefinition, config: &Config) -> ToolDefinition {
    if let Ok(mut schema) = serde_json::from_str::<Value>(&definition.input_schema) {
        schema["properties"]["max_words"]["default"] = config.max_words.into();
        definition.input_schema = schema.to_string();
    }
    definition
}

#[cfg(test)]
mod tests;
