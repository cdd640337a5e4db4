//! The tests in a row, in the forms that data sets use.

use rlf_plugin::serde::Serialize;
use rlf_plugin::serde_json::{self, Map, Value};

/// The tests of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Text before the candidate's code: imports, helpers, the beginning from the prompt.
    pub(crate) prelude: String,
    /// The code that the candidate was asked to continue, used if its own code does not define the function.
    pub(crate) prompt: Option<Prompt>,
    pub(crate) tests: Tests,
}

/// A function whose beginning is in the prompt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) entry: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tests {
    /// Python that asserts.
    Python(Python),
    /// A function and its expected results, as JSON.
    Calls { function: String, cases: Vec<Call> },
    /// Runs of a program: its input and its output.
    Streams(Vec<Stream>),
}

/// A row in Python, as `python/split.py` reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(crate = "rlf_plugin::serde")]
pub(crate) struct Python {
    pub(crate) prelude: String,
    pub(crate) setup: String,
    pub(crate) tests: Vec<String>,
    pub(crate) entry: Vec<String>,
    /// A solution, for the names that it defines. It never runs.
    pub(crate) solution: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) arguments: Vec<Value>,
    pub(crate) output: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stream {
    pub(crate) input: String,
    pub(crate) output: String,
}

const FORMS: &str = "a row is {test_list, ..} (MBPP), {test, entry_point, ..} (HumanEval), {inputs, outputs, ..} (APPS, TACO, \
                     verl, PRIME), {tests, ..}, a list of assertions, or text that is one of these";

impl Row {
    /// Reads a task's reference.
    pub(crate) fn read(reference: &Value) -> Result<Self, String> {
        match reference {
            Value::String(text) => match serde_json::from_str(text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => Self::read(&inner),
                _ => Self::from_tests(vec![text.clone()], &Map::new()),
            },
            Value::Array(_) => Self::from_tests(texts(reference, "the reference")?, &Map::new()),
            Value::Object(row) => Self::from_object(row),
            _ => Err(format!("the reference is {reference}, but {FORMS}")),
        }
    }

    fn from_object(row: &Map<String, Value>) -> Result<Self, String> {
        if let Some(inner) = row.get("ground_truth") {
            return Self::read(inner);
        }
        if row.contains_key("test_list") {
            let mut tests = listed(row, "test_list")?;
            tests.extend(listed(row, "challenge_test_list")?);
            return Self::from_tests(tests, row);
        }
        let asserts = row.get("assert_case").is_some_and(|value| !value.is_null());
        if !asserts && (row.contains_key("inputs") || row.contains_key("outputs")) {
            return Self::from_pairs(row);
        }
        if let (Some(_), Some(entry)) = (row.get("test"), row.get("entry_point")) {
            let entry = string(entry, "entry_point")?;
            let test = string(&row["test"], "test")?;
            let calls = row.get("check").and_then(Value::as_str).unwrap_or("check");
            // Our form and the usual one: the tests define `check`, and it is called with the candidate.
            let test = if test.contains(&format!("def {calls}(")) {
                format!("{test}\n\n{calls}({entry})\n")
            } else {
                test.to_owned()
            };
            return Self::from_tests(vec![test], row);
        }
        for key in ["tests", "assert_case", "asserts"] {
            if let Some(tests) = row.get(key) {
                if let Some(streams) = streams(tests)? {
                    return Ok(Self {
                        prelude: optional(row, "prelude")?,
                        prompt: None,
                        tests: Tests::Streams(streams),
                    });
                }
                return Self::from_tests(texts(tests, key)?, row);
            }
        }
        let keys: Vec<&str> = row.keys().map(String::as_str).collect();
        Err(format!("the reference has the keys {keys:?}, but {FORMS}"))
    }

    fn from_tests(tests: Vec<String>, row: &Map<String, Value>) -> Result<Self, String> {
        if tests.iter().all(|test| test.trim().is_empty()) {
            return Err(format!("the row has no tests; {FORMS}"));
        }
        let entry = match row.get("entry_point") {
            Some(entry) => vec![string(entry, "entry_point")?.to_owned()],
            None => Vec::new(),
        };
        let prompt = match (row.get("prompt"), entry.first()) {
            (Some(Value::String(text)), Some(entry)) => Some(Prompt {
                text: text.clone(),
                entry: entry.clone(),
            }),
            _ => None,
        };
        let mut prelude = optional(row, "prelude")?;
        if let Some((before, _)) = prompt.as_ref().and_then(Prompt::halves) {
            prelude.push_str(before);
        }
        let imports = listed(row, "test_imports")?.join("\n");
        let setup = [
            imports,
            optional(row, "setup")?,
            optional(row, "test_setup_code")?,
        ];
        let setup: Vec<&str> = setup
            .iter()
            .map(|part| part.trim())
            .filter(|part| !part.is_empty())
            .collect();
        Ok(Self {
            prompt,
            tests: Tests::Python(Python {
                prelude: prelude.clone(),
                setup: setup.join("\n"),
                tests,
                entry,
                solution: optional(row, "code")?,
            }),
            prelude,
        })
    }

    fn from_pairs(row: &Map<String, Value>) -> Result<Self, String> {
        let list = |key: &str| match row.get(key) {
            Some(Value::Array(items)) => Ok(items),
            _ => Err(format!("`{key}` is no list; {FORMS}")),
        };
        let (inputs, outputs) = (list("inputs")?, list("outputs")?);
        if inputs.len() != outputs.len() || inputs.is_empty() {
            return Err(format!(
                "there are {} inputs and {} outputs; a row needs as many of one as of the other, and at least one",
                inputs.len(),
                outputs.len()
            ));
        }
        let pairs = inputs.iter().zip(outputs).enumerate();
        let tests = if let Some(function) = row.get("fn_name").filter(|name| !name.is_null()) {
            Tests::Calls {
                function: identifier(string(function, "fn_name")?)?,
                cases: pairs.map(call).collect::<Result<_, _>>()?,
            }
        } else {
            let stream = |(number, (input, output)): (usize, (&Value, &Value))| {
                Ok(Stream {
                    input: lines(input).ok_or_else(|| format!("`inputs[{number}]` is no text"))?,
                    output: lines(output)
                        .ok_or_else(|| format!("`outputs[{number}]` is no text"))?,
                })
            };
            Tests::Streams(pairs.map(stream).collect::<Result<_, String>>()?)
        };
        Ok(Self {
            prelude: optional(row, "prelude")?,
            prompt: None,
            tests,
        })
    }

    /// The program of a candidate's code, without tests.
    pub(crate) fn program(&self, code: &str) -> String {
        let begun = match &self.prompt {
            Some(prompt) if !prompt.is_repeated(code) => &*prompt.text,
            _ => &*self.prelude,
        };
        if begun.is_empty() {
            code.to_owned()
        } else if begun.ends_with('\n') {
            format!("{begun}{code}")
        } else {
            format!("{begun}\n{code}")
        }
    }
}

impl Prompt {
    fn is_repeated(&self, code: &str) -> bool {
        code.lines().any(|line| self.begins(line))
    }

    fn begins(&self, line: &str) -> bool {
        let rest = line
            .strip_prefix("def ")
            .or_else(|| line.strip_prefix("async def "))
            .or_else(|| line.strip_prefix("class "))
            .and_then(|rest| rest.trim_start().strip_prefix(&*self.entry));
        rest.is_some_and(|rest| rest.trim_start().starts_with(['(', ':']))
            || line
                .strip_prefix(&*self.entry)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
    }

    /// The text before the function's start, and the rest.
    fn halves(&self) -> Option<(&str, &str)> {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            if self.begins(line) {
                return Some(self.text.split_at(at));
            }
            at += line.len();
        }
        None
    }
}

fn string<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("`{key}` is {value}, but it must be text"))
}

fn optional(row: &Map<String, Value>, key: &str) -> Result<String, String> {
    match row.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(value) => Ok(string(value, key)?.to_owned()),
    }
}

fn listed(row: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    match row.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => texts(value, key),
    }
}

fn texts(value: &Value, key: &str) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(number, item)| Ok(string(item, &format!("{key}[{number}]"))?.to_owned()))
            .collect(),
        _ => Err(format!(
            "`{key}` is {value}, but it must be a list of texts; {FORMS}"
        )),
    }
}

/// Reads tests of the form `{input, output}`.
fn streams(tests: &Value) -> Result<Option<Vec<Stream>>, String> {
    let Value::Array(items) = tests else {
        return Ok(None);
    };
    if !items.first().is_some_and(Value::is_object) {
        return Ok(None);
    }
    let stream = |(number, item): (usize, &Value)| {
        let field = |key: &str| {
            item.get(key)
                .and_then(lines)
                .ok_or_else(|| format!("`tests[{number}].{key}` is no text"))
        };
        Ok(Stream {
            input: field("input")?,
            output: field("output")?,
        })
    };
    items
        .iter()
        .enumerate()
        .map(stream)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// A text, or a list of its lines.
fn lines(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
            Some(lines?.join("\n"))
        }
        _ => None,
    }
}

/// Reads arguments as a list, or as JSON texts, one a line; the output as a value or as JSON text.
fn call((number, (input, output)): (usize, (&Value, &Value))) -> Result<Call, String> {
    let call = match (input, output) {
        (Value::Array(arguments), output) => Call {
            arguments: arguments.clone(),
            output: output.clone(),
        },
        (Value::String(text), output) => {
            let not_json = |what: &str, error: serde_json::Error| {
                format!("`{what}[{number}]` is not JSON: {error}")
            };
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let arguments = lines
                .map(serde_json::from_str)
                .collect::<Result<_, _>>()
                .map_err(|error| not_json("inputs", error))?;
            let output = match output {
                Value::String(text) => {
                    serde_json::from_str(text).map_err(|error| not_json("outputs", error))?
                }
                other => other.clone(),
            };
            Call { arguments, output }
        }
        _ => {
            return Err(format!(
                "`inputs[{number}]` is neither a list of arguments nor text"
            ));
        }
    };
    if call.arguments.iter().chain([&call.output]).any(is_rounded) {
        return Err(format!(
            "test {number} has an integer of more than 64 bits, which would be rounded here; write it as an assertion"
        ));
    }
    Ok(call)
}

/// True if a number in it was written with more digits than were read.
fn is_rounded(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => number
            .as_f64()
            .is_some_and(|float| float.fract() == 0.0 && float.abs() >= 9.2e18),
        Value::Array(items) => items.iter().any(is_rounded),
        Value::Object(fields) => fields.values().any(is_rounded),
        _ => false,
    }
}

/// Checks a name that becomes part of a program's source.
fn identifier(name: &str) -> Result<String, String> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    if name.split('.').all(plain) {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "`fn_name` is {name:?}, which is no name of a function"
        ))
    }
}
