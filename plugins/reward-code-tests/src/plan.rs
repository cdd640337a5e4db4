//! Parsed tests: the steps that a candidate's run evaluates, and the values that they are compared with.

use std::fmt::Write as _;

use rlf_plugin::error_message;
use rlf_plugin::execute::{self, Compiled, Program};
use rlf_plugin::serde::Deserialize;
use rlf_plugin::serde_json::{self, Value, json};

use crate::config::Config;
use crate::row::{Call, Python};
use crate::value::{Plain, Unread};

const VALUES: &str = include_str!("python/values.py");
const SPLIT: &str = include_str!("python/split.py");
const CALLS: &str = include_str!("python/calls.py");

/// The name under which programs of this plugin import a module.
pub(crate) const MODULE: &str = "rlf_calls";

/// The steps that every candidate of a group runs, and how its answers are judged.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, crate = "rlf_plugin::serde")]
pub(crate) struct Plan {
    pub(crate) asserts: Vec<Assertion>,
    pub(crate) weak: Vec<WeakTest>,
    /// True if each step has a value; the others are only run.
    pub(crate) steps: Vec<bool>,
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, crate = "rlf_plugin::serde")]
pub(crate) struct Assertion {
    /// The steps whose values the assertion needs.
    pub(crate) holes: Vec<usize>,
    compare: Compare,
    #[serde(default)]
    expected: Value,
}

/// A test that could not be split into steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, crate = "rlf_plugin::serde")]
pub(crate) struct WeakTest {
    pub(crate) unit: usize,
    pub(crate) why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
enum Compare {
    Equal,
    Unequal,
    True,
    False,
    /// Equality as in JSON.
    Json,
    Judge,
}

#[derive(Deserialize)]
#[serde(untagged, crate = "rlf_plugin::serde")]
enum Answer {
    Bad { bad: String },
    Plan(Plan),
}

/// The verdict on an assertion whose values are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// The judge must decide.
    Open,
}

impl Plan {
    /// Splits the tests of a row, in an interpreter that never sees a candidate.
    pub(crate) fn split(row: &Python, config: &Config, seed: u64) -> Result<Self, String> {
        let program = splitter(row, seed)
            .arguments(["main.py"])
            .fetch("answer.json");
        let report = execute::run_one(program).map_err(|error| told(&error))?;
        let Some(answer) = report.file("answer.json").filter(|_| report.completed()) else {
            let why = report.exception().map_or_else(
                || format!("{:?}", report.ended),
                |exception| exception.traceback.clone(),
            );
            return Err(format!(
                "the row's tests could not be read in the interpreter: {why}"
            ));
        };
        let mut plan = match serde_json::from_slice(answer) {
            Ok(Answer::Plan(plan)) => plan,
            Ok(Answer::Bad { bad }) => return Err(format!("the row is wrong: {bad}")),
            Err(error) => {
                return Err(format!(
                    "the plan of the row's tests is not as agreed: {error}"
                ));
            }
        };
        if config.max_tests > 0 {
            let kept = config.max_tests.saturating_sub(plan.weak.len());
            plan.asserts.truncate(kept);
        }
        Ok(plan)
    }

    /// Calls of one function with JSON.
    pub(crate) fn calls(function: &str, cases: &[Call], config: &Config) -> Self {
        let mut plan = Self::default();
        let most = if config.max_tests == 0 {
            cases.len()
        } else {
            config.max_tests
        };
        for (step, case) in cases.iter().take(most).enumerate() {
            let arguments: Vec<String> = case.arguments.iter().map(literal).collect();
            let called = format!("{function}({})", arguments.join(", "));
            // A method of the class in which such rows are solved.
            let method = format!("Solution().{called}");
            let choice = format!(
                "{method} if hasattr(globals().get('Solution'), {function:?}) else {called}"
            );
            let _ = write!(plan.source, "\ndef _step_{step}():\n    return {choice}\n");
            plan.steps.push(true);
            plan.asserts.push(Assertion {
                holes: vec![step],
                compare: Compare::Json,
                expected: case.output.clone(),
            });
        }
        plan
    }

    /// The compiled module that runs the steps beside a candidate.
    pub(crate) fn compile(&self) -> Result<Compiled, String> {
        let names: Vec<String> = (0..self.steps.len())
            .map(|step| format!("_step_{step}"))
            .collect();
        // One module, so that only one is compiled and loaded.
        let harness = CALLS.replace("from rlf_values import Refused, encode\n", VALUES);
        let source = format!(
            "{harness}\n{}\nSTEPS = [{}]\n",
            self.source,
            names.join(", ")
        );
        match execute::compile("python", MODULE, &source) {
            Ok(Ok(compiled)) => Ok(compiled),
            Ok(Err(exception)) => Err(format!(
                "the calls of the row's tests do not compile: {}",
                exception.traceback
            )),
            Err(error) => Err(told(&error)),
        }
    }
}

/// The program that splits a row, and that judges.
pub(crate) fn splitter(row: &Python, seed: u64) -> Program {
    let split = SPLIT.replace("from rlf_values import Refused, build, encode\n", VALUES);
    let row = serde_json::to_vec(row).expect("texts can be written as JSON");
    Program::new("python", format!("{split}\n\nmain()\n"))
        .file("row.json", row)
        .seed(seed)
}

/// The gate's refusal as text, with the operator's remedy.
pub(crate) fn told(error: &rlf_plugin::Error) -> String {
    match error {
        rlf_plugin::Error::NotFound(text) => {
            format!(
                "{text}; the policy of this reward must name an interpreter of Python: execute = [\"python\"]"
            )
        }
        rlf_plugin::Error::Exhausted(text) if text.contains("nested_calls") => {
            format!(
                "{text}; raise nested_calls in the limits of this reward, and `programs` in its config"
            )
        }
        error => error_message(error).to_owned(),
    }
}

impl Assertion {
    /// True if the assertion may hold although some of its values are missing: `f(1) == 1 or f(2) == 2`.
    pub(crate) fn may_do_without(&self) -> bool {
        self.compare == Compare::Judge
    }

    /// Judges with the value of its only hole.
    pub(crate) fn verdict(&self, value: &Value) -> Verdict {
        let known = match self.compare {
            Compare::Judge => None,
            Compare::Json => Some(self.equals_json(value)),
            Compare::Equal | Compare::Unequal => {
                let wanted = self.compare == Compare::Equal;
                match (Plain::read(value), Plain::read(&self.expected)) {
                    (Err(Unread::Malformed), _) => Some(false),
                    (Ok(value), Ok(expected)) => {
                        value.equals(&expected).map(|equal| equal == wanted)
                    }
                    _ => None,
                }
            }
            Compare::True | Compare::False => match Plain::read(value) {
                Ok(value) => Some(value.is_true() == (self.compare == Compare::True)),
                Err(Unread::Malformed) => Some(false),
                Err(Unread::Judge) => None,
            },
        };
        match known {
            Some(true) => Verdict::Holds,
            Some(false) => Verdict::Fails,
            None => Verdict::Open,
        }
    }

    /// Equality for rows with a function's name: a tuple is a list, and a single output may be inside a list.
    fn equals_json(&self, value: &Value) -> bool {
        let Ok(value) = Plain::read(&crate::value::without_tuples(value)) else {
            return false;
        };
        let equals = |expected: &Value| {
            Plain::read(&from_json(expected))
                .is_ok_and(|expected| value.equals(&expected) == Some(true))
        };
        equals(&self.expected)
            || matches!(&self.expected, Value::Array(only) if only.len() == 1 && equals(&only[0]))
    }
}

/// JSON as plain data.
fn from_json(value: &Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(_), _, _) => value.clone(),
            (None, Some(large), _) => json!(["i", format!("{large:#x}")]),
            (_, _, float) => json!(["f", format!("{:016x}", float.unwrap_or(f64::NAN).to_bits())]),
        },
        Value::Array(items) => {
            let items = items.iter().map(from_json);
            Value::Array(std::iter::once(json!("l")).chain(items).collect())
        }
        Value::Object(fields) => {
            let pairs = fields
                .iter()
                .flat_map(|(name, value)| [json!(name), from_json(value)]);
            Value::Array(std::iter::once(json!("d")).chain(pairs).collect())
        }
        other => other.clone(),
    }
}

/// JSON as Python's source.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // JSON's escapes are Python's except for halves of surrogate pairs, which cannot occur here.
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let pair =
                |(name, value): (&String, &Value)| format!("{}: {}", json!(name), literal(value));
            let pairs: Vec<String> = fields.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}
