//! The tool `research`: a language model answers a question with the tools that the operator opens.
//!
//! In each step the model either calls tools or answers. It sees the results of its last calls and its own notes, so a
//! question does not grow with the number of steps. Results are data: the model sees them between delimiters that
//! their authors cannot know. If a budget of the operator's is spent, the notes are the answer.
//!
//! ```toml
//! [plugins.research.config]   # every key may be left out
//! model = ""                  # the model, by the name in the grants; default: the first one
//! instructions = ""           # added to the instructions of the model
//! max_steps = 6               # replies of the model before the last question; 1 to 50
//! max_calls_per_step = 4      # calls side by side; 1 to 16
//! max_result_chars = 4_000    # characters of a result that the model sees; at least 100
//! max_tokens = 1_024          # length of a reply; 0: all that the operator allows
//! ```

mod calls;
mod config;
mod investigation;
mod offer;
mod prompt;
mod reply;

use rlf_plugin::{CallContext, Observation, plugin, tool, tools};
use schemars::JsonSchema;
use serde::Deserialize;

use config::Config;
use investigation::Investigation;
use offer::Offer;

/// Maximum number of characters of a question.
const MAX_QUESTION_CHARS: usize = 4_000;

fn init(config: Config) -> Result<Config, String> {
    config.check()
}

/// The arguments of [`research`](fn@research).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Research {
    /// The question
    question: String,
}

/// Answers a question with what other tools find. Returns the answer and its sources.
#[tool(open_world)]
fn research(
    Research { question }: Research,
    context: &CallContext,
    config: &Config,
) -> Result<Observation, String> {
    // A plugin does not learn the name under which it is called, so a renamed one may see itself.
    let offer = Offer::new(tools::list(), "research");
    let question = question.trim();
    if question.is_empty() {
        return Err("the question is empty".to_owned());
    }
    if question.chars().count() > MAX_QUESTION_CHARS {
        return Err(format!(
            "the question has at most {MAX_QUESTION_CHARS} characters; ask a shorter one"
        ));
    }
    if offer.is_empty() {
        return Err("no other tool is open to this tool".to_owned());
    }
    Ok(Investigation::new(question, &offer, context.seed, config).run())
}

plugin!(init: init, tools: [research]);

#[cfg(test)]
mod tests;
