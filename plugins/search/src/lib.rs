//! The tool `search`: titled passages of a corpus, the best matches first.
//!
//! The `bm25` crate splits, stems and weighs words; passages are indexed in `init`, so a call only adds the weights
//! of the query's words. Equal scores keep the order of the corpus, so the same query always has the same answer.
//!
//! ```toml
//! [plugins.search]
//! data.corpus = "corpus.json"
//!
//! [plugins.search.config]     # every key may be left out
//! top_k = 3                   # passages returned where the model does not say
//! max_top_k = 10              # and at most
//! max_passage_chars = 1500    # a longer passage is cut at a word
//! k1 = 1.2                    # BM25: how fast repetitions of a word stop counting
//! b = 0.75                    # BM25: how much long passages are held back, 0 to 1
//! description = "..."         # the tool's description
//! ```

mod corpus;
mod index;

use rlf_plugin::serde_json::{self, Value};
use rlf_plugin::{ToolDefinition, data, error_message, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use index::Index;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    top_k: u32,
    max_top_k: u32,
    max_passage_chars: usize,
    k1: f32,
    b: f32,
    description: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            top_k: 3,
            max_top_k: 10,
            max_passage_chars: 1_500,
            k1: 1.2,
            b: 0.75,
            description: None,
        }
    }
}

/// The state that `init` makes and calls borrow.
struct Library {
    index: Index,
    config: Config,
}

fn init(config: Config) -> Result<Library, String> {
    if config.top_k == 0 || config.top_k > config.max_top_k {
        return Err(format!(
            "configuration: top_k is 1 to max_top_k = {}, not {}",
            config.max_top_k, config.top_k
        ));
    }
    let k1_fits = config.k1.is_finite() && config.k1 >= 0.0;
    if !k1_fits || !(0.0..=1.0).contains(&config.b) {
        return Err("configuration: k1 is at least 0 and b is 0 to 1".to_owned());
    }
    let files = data::texts("corpus").map_err(|error| error_message(&error).to_owned())?;
    let passages = corpus::passages(&files)?;
    Ok(Library {
        index: Index::build(&passages, config.k1, config.b),
        config,
    })
}

/// The arguments of [`search`](fn@search).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Words to look for
    query: String,
    /// How many passages
    top_k: Option<u32>,
}

/// Searches a library and returns the best matching passages with their titles.
#[tool(pure, refine = describe)]
fn search(Search { query, top_k }: Search, library: &Library) -> Result<String, String> {
    let Library { index, config } = library;
    let count = top_k.unwrap_or(config.top_k).clamp(1, config.max_top_k) as usize;
    let found = index.search(&query, count);
    if found.is_empty() {
        return Err(format!("nothing found for {query:?}; try other words"));
    }
    let passages = found.into_iter().enumerate().map(|(rank, passage)| {
        format!(
            "[{}] {}\n{}",
            rank + 1,
            passage.title,
            cut(passage.text, config.max_passage_chars)
        )
    });
    Ok(passages.collect::<Vec<_>>().join("\n\n"))
}

plugin!(init: init, tools: [search]);

/// The operator sets the bounds of `top_k`, so they are not in the struct.
fn describe(mut definition: ToolDefinition, library: &Library) -> ToolDefinition {
    if let Some(description) = &library.config.description {
        definition.description.clone_from(description);
    }
    if let Ok(mut schema) = serde_json::from_str::<Value>(&definition.input_schema) {
        schema["properties"]["top_k"] = serde_json::json!({
            "type": "integer",
            "description": "How many passages",
            "minimum": 1,
            "maximum": library.config.max_top_k,
            "default": library.config.top_k,
        });
        definition.input_schema = schema.to_string();
    }
    definition
}

/// At most this many characters, cut after a whole word if there is one, and marked.
fn cut(text: &str, characters: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(characters) else {
        return text.to_owned();
    };
    let kept = &text[..end];
    let kept = kept
        .rfind(char::is_whitespace)
        .map_or(kept, |space| &kept[..space]);
    format!("{} ...", kept.trim_end())
}

#[cfg(test)]
mod tests;
