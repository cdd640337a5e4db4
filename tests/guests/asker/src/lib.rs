//! A tool that asks language models. The host's tests say what.

use rlf_plugin::model::{self, Question};
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Json, error_message, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// What to ask, all at once
    questions: Vec<String>,
    /// How many times, one after the other
    #[serde(default = "once")]
    times: usize,
    /// The name of the model
    #[serde(default)]
    model: String,
    /// Maximum number of tokens of an answer
    #[serde(default)]
    max_tokens: u32,
    /// Temperature
    #[serde(default)]
    temperature: Option<f64>,
}

fn once() -> usize {
    1
}

/// Asks, and returns each answer or the reason why there is none.
#[tool]
fn ask(ask: Ask) -> Json<Vec<Value>> {
    let question = |text: &String| Question {
        temperature: ask.temperature,
        ..Question::new(text)
            .model(&ask.model)
            .max_tokens(ask.max_tokens)
    };
    let questions: Vec<Question> = ask.questions.iter().map(question).collect();
    let answers = (0..ask.times).flat_map(|_| model::ask(&questions));
    let answers = answers.map(|answer| match answer {
        Ok(answer) => json!({
            "text": answer.text,
            "cut_short": answer.cut_short,
            "tokens": [answer.prompt_tokens, answer.completion_tokens],
        }),
        Err(error) => json!({ "refused": error_message(&error) }),
    });
    Json(answers.collect())
}

/// Names the models that are open.
#[tool(pure)]
fn list_models() -> Json<Vec<(String, u32)>> {
    let models = model::list().into_iter();
    Json(models.map(|model| (model.name, model.max_tokens)).collect())
}

plugin!(tools: [ask, list_models]);
