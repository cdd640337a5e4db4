//! The forms in which a verified row is written: a row of FTRL's data, a task and a demonstration of this project.

use std::io;

use rlf_dialogue::{Message, Role, Task, ToolCall, ToolDefinition};
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value, json};

use super::row::{Row, RowTool};

/// The text before the question in FTRL's rows.
const INSTRUCTIONS: &str = "Please call given tools to answer the question. Please note that all your information must be obtained by calling tools \
                            and not by answering the question directly.\nIf the call fails, you need to try to correct it and continue until you \
                            arrive at an answer.\nQuestion: ";

/// The environment that imported rows of FTRL's form name.
const ENVIRONMENT: &str = "functions";

/// The text that the model reads.
pub fn prompt(row: &Row) -> String {
    format!("{INSTRUCTIONS}{}", row.question)
}

/// A row as FTRL's data has it. Tools, sources and sub-answers are texts that contain JSON.
pub fn ftrl_row(row: &Row) -> Value {
    let codes: Map<String, Value> = row
        .tools
        .iter()
        .map(|tool| (tool.name.clone(), json!(tool.source)))
        .collect();
    json!({
        "messages": [{ "content": prompt(row), "role": "user" }],
        "tools": tools_text(&row.tools),
        "codes": python_json(&Value::Object(codes)),
        "unsolved_set": python_json(&Value::Object(unsolved(row))),
        "solve_rate": 0.0,
        "data_source": format!("self/{}", row.scenario),
        "split": row.split.as_str(),
        "answer": row.answer,
    })
}

/// The sub-answers by tool, in the order in which the tools are first called.
fn unsolved(row: &Row) -> Map<String, Value> {
    let mut unsolved: Map<String, Value> = Map::new();
    for call in &row.calls {
        let answers = unsolved
            .entry(call.tool.clone())
            .or_insert_with(|| json!([]));
        if let Some(answers) = answers.as_array_mut() {
            answers.push(json!(call.answer));
        }
    }
    unsolved
}

/// Tools as the text that a row contains.
pub(crate) fn tools_text(tools: &[RowTool]) -> String {
    let all: Vec<Value> = tools
        .iter()
        .map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        })
        .collect();
    python_json(&Value::Array(all))
}

/// JSON with a space after `:` and `,`, as Python's `json.dumps` writes it.
pub(crate) fn python_json(value: &Value) -> String {
    struct Spaced;
    impl Formatter for Spaced {
        fn begin_array_value<W: ?Sized + io::Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> io::Result<()> {
            writer.write_all(if first { b"" } else { b", " })
        }

        fn begin_object_key<W: ?Sized + io::Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> io::Result<()> {
            writer.write_all(if first { b"" } else { b", " })
        }

        fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
            writer.write_all(b": ")
        }
    }
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // Writing a value into memory cannot fail; texts are valid UTF-8.
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}

/// A row as a task of this project, with the gold calls that `data import` cannot know of.
pub fn task(row: &Row) -> Task {
    let functions: Vec<Value> = row
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name, "description": tool.description, "parameters": tool.parameters, "source": tool.source,
            })
        })
        .collect();
    let calls: Vec<Value> = row
        .calls
        .iter()
        .map(|call| json!({ "name": call.tool, "arguments": call.arguments }))
        .collect();
    let mut extra = Map::new();
    extra.insert("kind".into(), json!(row.scenario.as_str()));
    extra.insert("split".into(), json!(row.split.as_str()));
    Task {
        id: row.id.clone(),
        source: "ftrl".into(),
        prompt: vec![Message::text(Role::User, prompt(row))],
        tools: None,
        reference: json!({ "answer": row.answer, "unsolved": unsolved(row), "calls": calls }),
        environment: Some(ENVIRONMENT.into()),
        setup: json!({ "functions": functions, "scoping": "clean" }),
        extra,
    }
}

/// A demonstration: calls that need no result of each other are made in one turn, and the answer comes last. `results`
/// are those of the gold calls, in order.
pub fn demonstration(row: &Row, results: &[String]) -> Value {
    let tools: Vec<ToolDefinition> = row
        .tools
        .iter()
        .map(|tool| ToolDefinition {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.parameters.clone(),
            output_schema: None,
            hints: rlf_dialogue::tool::Hints::default(),
            extra: Vec::new(),
        })
        .collect();
    let mut messages = vec![Message::text(Role::User, prompt(row))];
    for turn in turns(row) {
        let mut said = Message::text(Role::Assistant, "");
        said.tool_calls = turn
            .iter()
            .map(|index| ToolCall {
                call_id: format!("call-{index}"),
                name: row.calls[*index].tool.clone(),
                arguments: Value::Object(row.calls[*index].arguments.clone()),
            })
            .collect();
        messages.push(said);
        for index in turn {
            let result = results.get(index).map_or("", String::as_str);
            messages.push(Message::text(Role::Tool, result));
        }
    }
    messages.push(Message::text(Role::Assistant, row.answer.as_str()));
    json!({ "id": row.id, "source": "rows", "tools": tools, "messages": messages, "given": 1 })
}

/// The gold calls by turn: a call is made as soon as all results that it needs are there.
pub(crate) fn turns(row: &Row) -> Vec<Vec<usize>> {
    let mut depth = Vec::with_capacity(row.calls.len());
    let mut turns: Vec<Vec<usize>> = Vec::new();
    for (index, call) in row.calls.iter().enumerate() {
        let needed = references(&call.question).filter_map(|step| depth.get(step).copied());
        let own = needed.max().map_or(0, |deepest: usize| deepest + 1);
        depth.push(own);
        if turns.len() <= own {
            turns.resize(own + 1, Vec::new());
        }
        turns[own].push(index);
    }
    turns
}

/// The steps that a sub-question refers to by `#1` and so on, counted from 0.
pub(crate) fn references(question: &str) -> impl Iterator<Item = usize> {
    question.split('#').skip(1).filter_map(|after| {
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()?.checked_sub(1)
    })
}
