//! The question for the words of a task, and the shipped prompts.

use rlf_endpoint::ChatMessage;
use rlf_random::{Key, Purpose};
use schemars::JsonSchema;
use serde::Deserialize;

use super::faults::Fault;
use super::meaning::{meaning, tools};
use crate::ask::prompts::{PromptError, Prompts, Shipped};
use crate::ask::{Question, Unusable, extract, schema_of};
use crate::sampling::Draws;
use crate::tasks::make::Maker;
use crate::tasks::record::TaskRecord;

/// The prompts of `forge tasks`.
pub const PROMPTS: &[Shipped] = &[
    Shipped {
        name: "text-system",
        text: include_str!("prompts/text-system.txt"),
        needs: &[],
        knows: &[],
    },
    Shipped {
        name: "text",
        text: include_str!("prompts/text.txt"),
        needs: &["turns", "schema"],
        knows: &["tools", "style"],
    },
    // A line for each way of speaking, of which each task gets one.
    Shipped {
        name: "styles",
        text: include_str!("prompts/styles.txt"),
        needs: &[],
        knows: &[],
    },
    Shipped {
        name: "solve",
        text: include_str!("prompts/solve.txt"),
        needs: &["tools", "schema"],
        knows: &[],
    },
];

/// The answer: the words of the user, turn by turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reworded {
    /// The words of each turn, in order.
    turns: Vec<String>,
}

impl Reworded {
    /// The words in an answer.
    pub(super) fn read(answer: &str) -> Result<Vec<String>, Vec<Fault>> {
        let value = extract::json(answer).map_err(|why| vec![Fault::form(why.to_string())])?;
        let read: Result<Self, _> = serde_json::from_value(value);
        read.map(|reworded| reworded.turns)
            .map_err(|error| vec![Fault::form(error.to_string())])
    }
}

/// The question for the words of a task.
pub(super) fn question(
    maker: &Maker<'_>,
    prompts: &Prompts,
    task: &TaskRecord,
) -> Result<Question, PromptError> {
    let style = style(prompts, maker.options.seed, &task.id)?;
    let turns = meaning(maker.suite, task);
    let tools = tools(maker.suite, task);
    let schema = format!("{:#}", schema_of::<Reworded>());
    let values = [
        ("turns", turns.as_str()),
        ("tools", &tools),
        ("style", &style),
        ("schema", &schema),
    ];
    let messages = vec![
        ChatMessage::system(prompts.render("text-system", &[])?),
        ChatMessage::user(prompts.render("text", &values)?),
    ];
    Ok(Question::new(format!("text-{}", task.id), messages))
}

/// The question with an answer that passed all checks but the last. `why` is the reason why it failed that one.
pub(super) fn again(question: &Question, round: u32, answer: &str, why: &Unusable) -> Question {
    let stage = question.stage.split("-again-").next().unwrap_or_default();
    question.again(format!("{stage}-again-{round}"), answer, why)
}

/// The way of speaking of a task: a line of the prompt `styles`.
fn style(prompts: &Prompts, seed: u64, task: &str) -> Result<String, PromptError> {
    let styles = prompts.render("styles", &[])?;
    let styles: Vec<&str> = styles
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let key = Key::new(seed, Purpose::Order)
        .named("forge rewriting")
        .named(task);
    let style = Draws::new(key).pick(&styles);
    Ok(style.unwrap_or_default().to_owned())
}
