//! Calls that are not gold calls: with wrong arguments, with everything that the question or a result says, and with
//! whatever else a tool knows.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::rows::row::{Row, RowTool};

/// Maximum number of ways in which the choices of one call are combined.
const MAX_COMBINATIONS: usize = 8;
/// A name that no tool knows.
const NOBODY: &str = "Nobody Of That Name";

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Probe {
    /// Index of the tool.
    pub(super) tool: usize,
    pub(super) arguments: Map<String, Value>,
    pub(super) kind: ProbeKind,
}

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeKind {
    /// The arguments are wrong or mean nothing, so that the tool must give no answer.
    Wrong,
    /// A policy could make the call with what it knows.
    Known,
    /// The tool must answer it: the call is one of the tool's examples.
    Example,
}

/// Every call to make besides the gold calls, each once.
pub(super) fn plan(row: &Row) -> Vec<Probe> {
    let mut plan = Plan {
        row,
        made: BTreeSet::new(),
        probes: Vec::new(),
    };
    for call in &row.calls {
        plan.made
            .insert((call.tool.clone(), json!(call.arguments).to_string()));
    }
    let known: BTreeSet<&str> = row
        .given
        .iter()
        .map(String::as_str)
        .chain(row.calls.iter().map(|call| call.answer.as_str()))
        .collect();
    for (index, tool) in row.tools.iter().enumerate() {
        plan.wrong(index, tool);
        for example in &tool.examples {
            plan.add(index, example.clone(), ProbeKind::Example);
        }
        for value in &known {
            for arguments in filled(tool, value) {
                plan.add(index, arguments, ProbeKind::Known);
            }
        }
    }
    plan.probes
}

struct Plan<'a> {
    row: &'a Row,
    made: BTreeSet<(String, String)>,
    probes: Vec<Probe>,
}

impl Plan<'_> {
    fn add(&mut self, tool: usize, arguments: Map<String, Value>, kind: ProbeKind) {
        let name = self.row.tools[tool].name.clone();
        if self.made.insert((name, json!(arguments).to_string())) {
            self.probes.push(Probe {
                tool,
                arguments,
                kind,
            });
        }
    }

    /// Adds calls with missing, unknown and wrong arguments.
    fn wrong(&mut self, index: usize, tool: &RowTool) {
        self.add(index, Map::new(), ProbeKind::Wrong);
        let Some(good) = filled(tool, NOBODY).into_iter().next() else {
            return;
        };
        for name in good.keys() {
            let mut lacking = good.clone();
            lacking.remove(name);
            self.add(index, lacking, ProbeKind::Wrong);
            let mut mistyped = good.clone();
            mistyped[name] = json!({ "no": ["such", "type"] });
            self.add(index, mistyped, ProbeKind::Wrong);
        }
        let mut further = good.clone();
        further.insert("unexpected_argument".into(), json!(true));
        self.add(index, further, ProbeKind::Wrong);
        let of_text = |value: &Value| match value {
            Value::String(_) => json!("no such value"),
            other => other.clone(),
        };
        let unknown = good
            .iter()
            .map(|(name, value)| (name.clone(), of_text(value)));
        self.add(index, unknown.collect(), ProbeKind::Wrong);
        self.add(index, good, ProbeKind::Wrong);
    }
}

/// The arguments of calls that give `value` wherever a text fits. One call for each combination of required choices.
fn filled(tool: &RowTool, value: &str) -> Vec<Map<String, Value>> {
    let filling = Filling {
        value,
        choice: 0,
        combinations: 1,
    };
    let mut made = Vec::new();
    let mut first = filling;
    let Value::Object(arguments) = first.object(&tool.parameters) else {
        return Vec::new();
    };
    let combinations = first.combinations.min(MAX_COMBINATIONS);
    made.push(arguments);
    for choice in 1..combinations {
        let mut next = Filling {
            value,
            choice,
            combinations: 1,
        };
        if let Value::Object(arguments) = next.object(&tool.parameters) {
            made.push(arguments);
        }
    }
    made
}

/// Fills a schema with a value.
struct Filling<'a> {
    value: &'a str,
    /// Number of the combination of choices, from 0.
    choice: usize,
    /// Number of combinations that the schema has.
    combinations: usize,
}

impl Filling<'_> {
    fn object(&mut self, schema: &Value) -> Value {
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let required: BTreeSet<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        // Where nothing is required, every text is given.
        let is_given = |name: &str, schema: &Value| {
            required.contains(name)
                || (required.is_empty() && schema["type"] == "string" && schema["enum"].is_null())
        };
        let mut made = Map::new();
        for (name, schema) in properties {
            if is_given(name, schema) {
                made.insert(name.clone(), self.of_schema(schema));
            }
        }
        Value::Object(made)
    }

    fn of_schema(&mut self, schema: &Value) -> Value {
        if let Some(values) = schema["enum"]
            .as_array()
            .filter(|values| !values.is_empty())
        {
            let index = (self.choice / self.combinations) % values.len();
            self.combinations = self.combinations.saturating_mul(values.len());
            return values[index].clone();
        }
        let number = || {
            let plain = self.value.replace(',', "");
            let whole = plain.parse::<i64>().ok().map(|whole| json!(whole));
            whole.unwrap_or_else(|| schema.get("minimum").cloned().unwrap_or(json!(1)))
        };
        match schema["type"].as_str() {
            Some("object") => self.object(schema),
            Some("array") => {
                let item = self.of_schema(&schema["items"]);
                let count = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 8);
                Value::Array(vec![item; count as usize])
            }
            Some("integer" | "number") => number(),
            Some("boolean") => json!(false),
            _ if schema["format"] == "date" && !is_date(self.value) => json!("2000-01-01"),
            _ => json!(self.value),
        }
    }
}

fn is_date(text: &str) -> bool {
    rlf_specification::date::parse(text).is_some()
}
