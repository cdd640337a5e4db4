//! FTRL's rows: a question, its own Python tools, and the sub-answers that their outputs must contain.

use rlf_dialogue::{Role, Task};
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::error::RowError;
use crate::field::{Row, label, list, needed, object};
use crate::row_context::RowContext;
use crate::tools;

/// The sub-answers that are still to be found, by the tool whose output contains them, in the row's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsolved(pub(crate) Vec<(String, Vec<String>)>);

/// The error of a value that holds no sub-answers.
#[derive(Debug, thiserror::Error)]
#[error("it must hold a list of texts for each tool")]
pub(crate) struct NoSubAnswers;

impl TryFrom<Row> for Unsolved {
    type Error = NoSubAnswers;

    fn try_from(row: Row) -> Result<Self, NoSubAnswers> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let of_tool = |(tool, answers): (&String, &Value)| {
            let answers = answers
                .as_array()?
                .iter()
                .map(text)
                .collect::<Option<_>>()?;
            Some((tool.clone(), answers))
        };
        let all = row.iter().map(of_tool).collect::<Option<_>>();
        all.map(Self).ok_or(NoSubAnswers)
    }
}

impl From<Unsolved> for Row {
    fn from(unsolved: Unsolved) -> Self {
        let Unsolved(all) = unsolved;
        all.into_iter()
            .map(|(tool, answers)| (tool, Value::from(answers)))
            .collect()
    }
}

impl Unsolved {
    /// Number of sub-answers.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|(_, answers)| answers.len()).sum()
    }

    /// Removes the first sub-answer of `tool` that `output` contains.
    pub(crate) fn solve(&mut self, tool: &str, output: &str) {
        let said = plain(output);
        for (_, answers) in self.0.iter_mut().filter(|(name, _)| name == tool) {
            if let Some(at) = answers
                .iter()
                .position(|answer| contains_parts(&said, answer))
            {
                answers.remove(at);
                return;
            }
        }
    }
}

/// True if the output contains every part of a sub-answer. Parts are separated by commas.
fn contains_parts(said: &str, answer: &str) -> bool {
    answer.split(", ").all(|part| said.contains(&plain(part)))
}

/// Text as FTRL compares it: lower case, without commas and without white space at the ends.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(',', "").trim().to_owned()
}

pub(crate) fn task(row: &Row, context: &RowContext) -> Result<Task, RowError> {
    let conversation = Conversation::from_openai("messages", list(row, "messages")?)?;
    let turns = conversation
        .messages
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .count();
    if turns > 0 && !context.options.steps {
        let problem = format!(
            "the model has taken {turns} turns in it, so it is a step-level sample; import it with --steps, as a task of \
             one turn"
        );
        return Err(RowError::field("messages", problem));
    }
    let prompt = conversation.into_prompt("messages")?;
    let functions = functions(row)?;
    let unsolved = object(needed(row, "unsolved_set")?, "unsolved_set")?;
    let unsolved = Unsolved::try_from(unsolved)
        .map_err(|error| RowError::field("unsolved_set", error.to_string()))?;
    let offered = |tool: &str| functions.iter().any(|function| function["name"] == tool);
    if let Some((tool, _)) = unsolved.0.iter().find(|(tool, _)| !offered(tool)) {
        return Err(RowError::field(
            "unsolved_set",
            format!("{tool:?} is none of the row's `tools`"),
        ));
    }
    if turns == 0 && unsolved.count() == 0 {
        return Err(RowError::field(
            "unsolved_set",
            "it holds no sub-answer, so nothing could be rewarded",
        ));
    }
    let answer = needed(row, "answer")?;
    match answer {
        Value::Number(_) => {}
        Value::String(text) if !text.trim().is_empty() => {}
        _ => {
            let problem = format!(
                "it has to be a text with something in it, or whatever is said would be right; it is {answer}"
            );
            return Err(RowError::field("answer", problem));
        }
    }

    let mut extra = Row::new();
    if let Some(source) = label(row, "data_source") {
        let kind = source.rsplit('/').next().unwrap_or(&source).to_owned();
        extra.insert("kind".into(), kind.into());
        extra.insert("data_source".into(), source.into());
    }
    for name in ["split", "solve_rate"] {
        if let Some(value) = row.get(name).filter(|value| !value.is_null()) {
            extra.insert(name.into(), value.clone());
        }
    }
    if turns > 0 {
        extra.insert("turns".into(), turns.into());
    }
    Ok(Task {
        id: context.id(),
        source: "ftrl".into(),
        prompt,
        tools: None,
        reference: json!({"answer": answer, "unsolved": Row::from(unsolved)}),
        environment: Some(context.environment("functions")),
        setup: json!({"functions": functions, "scoping": context.options.scoping.as_str()}),
        extra,
    })
}

/// The tools with their source, in the row's order.
fn functions(row: &Row) -> Result<Vec<Value>, RowError> {
    let offered = tools::definitions(Some(needed(row, "tools")?), "tools")?;
    let mut codes = object(needed(row, "codes")?, "codes")?;
    let mut functions = Vec::with_capacity(offered.len());
    for tool in offered {
        let Some(Value::String(source)) = codes.remove(&tool.name) else {
            let problem = format!("the source of the tool {:?} is missing", tool.name);
            return Err(RowError::field("codes", problem));
        };
        functions.push(json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
            "source": source,
        }));
    }
    if functions.is_empty() {
        return Err(RowError::field("tools", "there is no tool in it"));
    }
    match codes.keys().next() {
        None => Ok(functions),
        Some(name) => Err(RowError::field(
            "codes",
            format!("{name:?} is none of the row's `tools`"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::Unsolved;

    #[test]
    fn one_output_solves_one_sub_answer_of_its_tool() {
        let mut unsolved = Unsolved(vec![
            (
                "find".into(),
                vec!["1,000".into(), "Rome, Italy".into(), "1000".into()],
            ),
            ("count".into(), vec!["1000".into()]),
        ]);
        unsolved.solve("find", "it is rome");
        assert_eq!(unsolved.count(), 4);
        unsolved.solve("find", "{\"n\": 1000}");
        assert_eq!(unsolved.0[0].1, ["Rome, Italy", "1000"]);
        unsolved.solve("find", "ITALY, as Rome said: 1000");
        assert_eq!(unsolved.0[0].1, ["1000"]);
        unsolved.solve("other", "1000");
        assert_eq!(unsolved.count(), 2);
    }
}
