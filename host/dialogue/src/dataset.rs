//! Task files: JSON lines or one JSON array, in our own format or in one of those that data sets
//! come in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::exact;
use crate::message::{Content, Message, Role};
use crate::protocol::{THINK_CLOSE, THINK_OPEN};
use crate::task::Task;
use crate::tool::ToolCall;

/// Why a task file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The file could not be read.
    #[error("cannot read the tasks {}: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A row is no task.
    #[error("{origin}:{line}: {message}")]
    Row {
        /// The file, or what stands for one.
        origin: String,
        /// Where the row begins, from 1.
        line: usize,
        /// Which field is wrong, and how to mend it.
        message: String,
    },
    /// There is no row at all.
    #[error("{}: no tasks in it; it needs one JSON object a line, or one array of objects", .0.display())]
    Empty(PathBuf),
}

/// Reads a task file. Rows may be of our own format, of Search-R1's and verl's
/// (`data_source, prompt, ability, reward_model, extra_info`), question and answer
/// (`question, answer`: HotpotQA, MuSiQue, GSM8K), or a programming problem with its tests (MBPP's
/// `text, test_list`, HumanEval's `prompt, entry_point, test`).
pub fn read_tasks(path: &Path) -> Result<Vec<Task>, TaskError> {
    let text = std::fs::read_to_string(path).map_err(|source| TaskError::Read {
        path: path.to_owned(),
        source,
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let stem = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut lines: HashMap<String, usize> = HashMap::new();
    let mut tasks = Vec::new();
    let fail = |line, message| TaskError::Row {
        origin: path.display().to_string(),
        line,
        message,
    };
    for row in rows(text) {
        let (line, row) = row.map_err(|(line, message)| fail(line, message))?;
        let foreign = is_foreign(&row);
        let mut task = task_of(row, line, &stem).map_err(|message| fail(line, message))?;
        if foreign && lines.contains_key(&task.id) {
            // Data sets that were put together count each from 0.
            task.id = format!("{}@{line}", task.id);
        }
        if let Some(first) = lines.insert(task.id.clone(), line) {
            let message = format!("field `id`: {:?} stands in line {first} already", task.id);
            return Err(fail(line, message));
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        Err(TaskError::Empty(path.to_owned()))
    } else {
        Ok(tasks)
    }
}

impl Task {
    /// One row of any known format; `line` makes an id where the row has none.
    pub fn from_row(row: Value, line: usize) -> Result<Self, TaskError> {
        task_of(row, line, "row").map_err(|message| TaskError::Row {
            origin: "row".into(),
            line,
            message,
        })
    }
}

type Row = Result<(usize, Value), (usize, String)>;

/// The rows of a file with the line each begins in.
fn rows(text: &str) -> Box<dyn Iterator<Item = Row> + '_> {
    if text.trim_start().starts_with('[') {
        return Box::new(Items {
            text,
            at: text.find('[').unwrap_or(0) + 1,
            line: 1,
            counted: 0,
            broken: false,
        });
    }
    let row = |(index, text): (usize, &str)| {
        let line = index + 1;
        let value = exact::from_str(text).map_err(|e| (line, format!("not JSON: {e}")));
        value.map(|value| (line, value))
    };
    let full = |(_, text): &(usize, &str)| !text.trim().is_empty();
    Box::new(text.lines().enumerate().filter(full).map(row))
}

/// The items of one JSON array, read one by one so that each knows its line.
struct Items<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    counted: usize,
    broken: bool,
}

impl Iterator for Items<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.broken {
            return None;
        }
        let start = loop {
            let rest = &self.text[self.at..];
            let start =
                self.text.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', ',']).len();
            self.line += self.text[self.counted..start].matches('\n').count();
            self.counted = start;
            let Some(rest) = self.text[start..].strip_prefix(']') else {
                break start;
            };
            // Another array may follow, and nothing is passed over.
            let rest = rest.trim_start();
            if rest.is_empty() {
                return None;
            }
            if !rest.starts_with('[') {
                self.broken = true;
                let passed = &self.text[start..self.text.len() - rest.len()];
                self.line += passed.matches('\n').count();
                let what = "something follows the array: a file has arrays, or JSON lines";
                return Some(Err((self.line, what.into())));
            }
            self.at = self.text.len() - rest.len() + 1;
        };
        let failed = match exact::first(&self.text[start..]) {
            Some(Ok((value, length))) => {
                self.at = start + length;
                return Some(Ok((self.line, value)));
            }
            Some(Err(error)) => format!("not JSON: {error}"),
            None => "the array is not closed with ]".to_owned(),
        };
        // Nothing can be read behind a broken item.
        self.broken = true;
        Some(Err((self.line, failed)))
    }
}

/// Whether a row is of a format whose ids need not be unique in a file.
fn is_foreign(row: &Value) -> bool {
    ["reward_model", "question", "task_id"]
        .iter()
        .any(|field| row.get(field).is_some())
}

fn task_of(row: Value, line: usize, stem: &str) -> Result<Task, String> {
    let Value::Object(row) = row else {
        return Err("a row must be a JSON object".into());
    };
    if row.contains_key("reward_model") {
        return verl_row(row, line, stem);
    }
    if row.contains_key("question") {
        return question_row(row, line, stem);
    }
    if row.contains_key("test_list") || row.contains_key("entry_point") {
        return programming_row(row, line, stem);
    }
    for field in ["id", "source", "prompt", "reference"] {
        if !row.contains_key(field) {
            return Err(format!(
                "field `{field}` is missing; a row is {{id, source, prompt, reference, ..}}, \
                 {{data_source, prompt, reward_model, ..}}, {{question, answer, ..}}, {{text, test_list, ..}} or \
                 {{prompt, entry_point, test, ..}}"
            ));
        }
    }
    let task: Task = serde_path_to_error::deserialize(Value::Object(row)).map_err(|error| {
        match error.path().to_string().as_str() {
            // The message of an unknown or missing field names it.
            "." => format!("field {}", error.inner()),
            path => format!("field `{path}`: {}", error.inner()),
        }
    })?;
    if task.prompt.is_empty() && task.environment.is_none() {
        return Err(
            "field `prompt`: it needs at least one message, or an `environment` that says it"
                .into(),
        );
    }
    Ok(task)
}

fn verl_row(mut row: Map<String, Value>, line: usize, stem: &str) -> Result<Task, String> {
    let prompt = match row.remove("prompt") {
        Some(Value::Array(messages)) if !messages.is_empty() => {
            let message = |(at, value): (usize, &Value)| {
                message_of(value).map_err(|error| format!("field `prompt[{at}]`: {error}"))
            };
            messages
                .iter()
                .enumerate()
                .map(message)
                .collect::<Result<_, _>>()?
        }
        Some(Value::String(text)) => vec![Message::text(Role::User, text)],
        _ => return Err("field `prompt`: a list of messages {role, content} is missing".into()),
    };
    let reference = row
        .get_mut("reward_model")
        .and_then(|model| model.get_mut("ground_truth"));
    let reference = reference
        .map(Value::take)
        .filter(says_something)
        .ok_or("field `reward_model.ground_truth` is missing or empty")?;
    let mut extra = match row.remove("extra_info") {
        Some(Value::Object(extra)) => extra,
        _ => Map::new(),
    };
    let id = match (text_of(row.get("id")), text_of(extra.get("index"))) {
        (Some(id), _) => id,
        (None, Some(index)) => {
            text_of(extra.get("split")).map_or(index.clone(), |split| format!("{split}-{index}"))
        }
        (None, None) => format!("{stem}-{line}"),
    };
    if let Some(ability) = row.remove("ability") {
        extra.insert("ability".into(), ability);
    }
    let source = text_of(row.get("data_source")).ok_or("field `data_source` is missing")?;
    Ok(Task {
        id,
        source,
        prompt,
        tools: None,
        reference,
        environment: None,
        setup: Value::Null,
        extra,
    })
}

fn question_row(mut row: Map<String, Value>, line: usize, stem: &str) -> Result<Task, String> {
    let Some(Value::String(question)) = row.remove("question") else {
        return Err("field `question`: it must be text".into());
    };
    let answer = ["answer", "golden_answers", "answers"]
        .iter()
        .find_map(|key| row.remove(*key));
    let answer = answer.filter(says_something);
    let reference = match answer.ok_or("field `answer` is missing or empty")? {
        Value::String(text) => match (text.rsplit_once("####"), row.remove("answer_aliases")) {
            // GSM8K: the working, then the number.
            (Some((_, number)), _) => Value::String(number.trim().replace(',', "")),
            (None, Some(Value::Array(aliases))) if !aliases.is_empty() => Value::Array(
                std::iter::once(Value::String(text))
                    .chain(aliases)
                    .collect(),
            ),
            _ => Value::String(text),
        },
        other => other,
    };
    let id = ["id", "_id"]
        .iter()
        .find_map(|key| text_of(row.remove(*key).as_ref()));
    let source = ["source", "data_source"]
        .iter()
        .find_map(|key| text_of(row.remove(*key).as_ref()));
    // Passages are for the search tool to find.
    for given in ["context", "paragraphs"] {
        row.remove(given);
    }
    if let Some(kind) = row.get("type").filter(|kind| kind.is_string()).cloned() {
        row.entry("kind").or_insert(kind);
    }
    Ok(Task {
        id: id.unwrap_or_else(|| format!("{stem}-{line}")),
        source: source.unwrap_or_else(|| stem.to_owned()),
        prompt: vec![Message::text(Role::User, question)],
        tools: None,
        reference,
        environment: None,
        setup: Value::Null,
        extra: row,
    })
}

/// A programming problem: the task as the model reads it, and the row itself as the reference, without the solution
/// that it holds.
fn programming_row(mut row: Map<String, Value>, line: usize, stem: &str) -> Result<Task, String> {
    let text_in = |row: &Map<String, Value>, fields: &[&str]| -> Result<String, String> {
        let found = fields.iter().find_map(|field| row.get(*field));
        let text = found.and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty())
            .map(str::to_owned)
            .ok_or_else(|| format!("field `{}`: the problem's text is missing", fields[0]))
    };
    let id = text_of(row.get("task_id")).unwrap_or_else(|| format!("{stem}-{line}"));
    let prompt = if let Some(tests) = row.get("test_list").cloned() {
        let text = text_in(&row, &["text", "prompt"])?;
        // The first test says what the function is called; the others stay hidden.
        let example = tests
            .get(0)
            .and_then(Value::as_str)
            .ok_or("field `test_list`: it needs at least one test, as text")?;
        format!("{text}\n\nFor example, this has to hold:\n```python\n{example}\n```")
    } else {
        if !row.get("test").is_some_and(Value::is_string) {
            return Err("field `test`: the tests' text is missing".into());
        }
        let text = text_in(&row, &["prompt"])?;
        format!("Complete this function:\n```python\n{text}\n```")
    };
    // What solves it is for nobody to see but who demonstrates it.
    let solution = ["canonical_solution", "solution"]
        .iter()
        .find_map(|field| row.remove(*field));
    let mut extra = Map::new();
    if let Some(solution) = solution {
        extra.insert("solution".into(), solution);
    }
    Ok(Task {
        id,
        source: stem.to_owned(),
        prompt: vec![Message::text(Role::User, prompt)],
        tools: None,
        reference: Value::Object(row),
        environment: None,
        setup: Value::Null,
        extra,
    })
}

/// Whether a reference could be met by any answer.
fn says_something(reference: &Value) -> bool {
    match reference {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(fields) => fields.values().any(says_something),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A message in the form of OpenAI's API, reasoning in its content included.
fn message_of(value: &Value) -> Result<Message, String> {
    let role = value
        .get("role")
        .and_then(Value::as_str)
        .ok_or("`role` is missing")?;
    let role = match role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => {
            return Err(format!(
                "role {other:?} is none of system, user, assistant and tool"
            ));
        }
    };
    let mut content = match value.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| Some(part.get("text")?.as_str()?.to_owned());
            parts
                .iter()
                .map(text)
                .collect::<Option<String>>()
                .ok_or("only text parts are read")?
        }
        Some(_) => return Err("`content` must be text".into()),
    };
    let mut reasoning_content = value
        .get("reasoning_content")
        .and_then(Value::as_str)
        .map(str::to_owned);
    if role == Role::Assistant
        && reasoning_content.is_none()
        && let Some(thought) = content.trim_start().strip_prefix(THINK_OPEN)
        && let Some((thought, rest)) = thought.split_once(THINK_CLOSE)
    {
        reasoning_content = Some(thought.trim_matches('\n').to_owned());
        content = rest.trim_start_matches('\n').into();
    }
    let calls = value
        .get("tool_calls")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let tool_calls = calls.iter().map(call_of).collect::<Option<Vec<_>>>();
    Ok(Message {
        role,
        content: vec![Content::Text(content)],
        reasoning_content,
        tool_calls: tool_calls.ok_or("`tool_calls` must hold {name, arguments}")?,
    })
}

fn call_of(call: &Value) -> Option<ToolCall> {
    let function = call.get("function").unwrap_or(call);
    let arguments = match function.get("arguments")? {
        Value::String(text) => exact::from_str(text).ok()?,
        other => other.clone(),
    };
    Some(ToolCall {
        call_id: text_of(call.get("id")).unwrap_or_default(),
        name: function.get("name")?.as_str()?.to_owned(),
        arguments,
    })
}
