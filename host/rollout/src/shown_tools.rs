//! How tools are shown in place of how their authors describe them: some held out, some under other names, parameters in
//! another order. A policy that learnt names by heart is found out by tests that show others.
//!
//! Rewards read the authors' names all the same, so that references need not know of it.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{OWN_NAME, ToolDefinition};
use rlf_plugins::seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The key of a task's `extra` that says it of one task.
const IN_TASK: &str = "shown_tools";

/// `[shown_tools]` of a configuration. A task's own `extra.shown_tools` (a [`Showing`]) comes on top.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShownTools {
    /// While training.
    pub train: Showing,
    /// In validation.
    pub validation: Showing,
    /// In tests.
    pub test: Showing,
}

/// How tools are shown in one split, or for one task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Showing {
    /// Tools that are not offered. Default: none.
    pub hold_out: BTreeSet<String>,
    /// The author's name of a tool to the one that the model sees. Default: none.
    pub rename: BTreeMap<String, String>,
    /// Whether the parameters of every tool stand in an order of their own for each task. Default: false.
    pub permute_parameters: bool,
}

/// A task names the tools in a way that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShownToolsError {
    /// Its `extra.shown_tools` is something else.
    #[error("task {task}: extra.shown_tools: {error}")]
    Task {
        /// The task's id.
        task: String,
        /// What is wrong.
        error: String,
    },
    /// Two tools would be shown under one name.
    #[error("task {task}: two tools would be shown as `{name}`; correct `rename`")]
    SameName {
        /// The task's id.
        task: String,
        /// The name.
        name: String,
    },
}

impl ShownTools {
    /// How the tools of a task are shown.
    pub fn of(&self, split: Split, task: &Task) -> Result<Showing, ShownToolsError> {
        let mut showing = match split {
            Split::Train => self.train.clone(),
            Split::Validation => self.validation.clone(),
            Split::Test => self.test.clone(),
        };
        if let Some(own) = task.extra.get(IN_TASK) {
            let own = Showing::deserialize(own).map_err(|error| ShownToolsError::Task {
                task: task.id.clone(),
                error: error.to_string(),
            })?;
            showing.hold_out.extend(own.hold_out);
            showing.rename.extend(own.rename);
            showing.permute_parameters |= own.permute_parameters;
        }
        Ok(showing)
    }
}

impl Showing {
    /// Whether tools are shown as they are.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The tools as the model of this task sees them.
    pub fn apply(
        &self,
        tools: Vec<ToolDefinition>,
        task: &str,
    ) -> Result<Vec<ToolDefinition>, ShownToolsError> {
        if self.is_plain() {
            return Ok(tools);
        }
        let mut names = BTreeSet::new();
        let mut shown = Vec::with_capacity(tools.len());
        for mut tool in tools {
            if self.hold_out.contains(&tool.name) {
                continue;
            }
            if self.permute_parameters {
                permute(&mut tool.input_schema, task, &tool.name);
            }
            if let Some(name) = self.rename.get(&tool.name) {
                let own = std::mem::replace(&mut tool.name, name.clone());
                tool.extra.push((OWN_NAME.to_owned(), Value::String(own)));
            }
            if !names.insert(tool.name.clone()) {
                return Err(ShownToolsError::SameName {
                    task: task.to_owned(),
                    name: tool.name,
                });
            }
            shown.push(tool);
        }
        Ok(shown)
    }

    /// What the model sees a tool called; nothing of one that it is not offered.
    pub fn shown_name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        if self.hold_out.contains(own) {
            return None;
        }
        Some(self.rename.get(own).map_or(own, String::as_str))
    }
}

/// The author's name of a tool that is shown.
pub(crate) fn own_name<'a>(shown: &'a [ToolDefinition], name: &'a str) -> &'a str {
    let tool = shown.iter().find(|tool| tool.name == name);
    tool.and_then(|tool| {
        let (_, own) = tool.extra.iter().find(|(key, _)| key == OWN_NAME)?;
        own.as_str()
    })
    .unwrap_or(name)
}

/// Puts the parameters of a schema into an order that follows from the task and the tool.
fn permute(schema: &mut Value, task: &str, tool: &str) {
    let place = |name: &str| seed::derive(0, "parameters", &[task, tool, name]);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let mut entries: Vec<(String, Value)> = std::mem::take(properties).into_iter().collect();
        entries.sort_by_key(|(name, _)| place(name));
        *properties = entries.into_iter().collect::<Map<_, _>>();
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by_key(|name| place(name.as_str().unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str) -> ToolDefinition {
        serde_json::from_value(json!({
            "name": name,
            "description": "d",
            "input-schema": {
                "type": "object",
                "properties": {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}},
                "required": ["a", "b", "c", "d", "e"],
            },
        }))
        .unwrap()
    }

    fn task(extra: &Value) -> Task {
        serde_json::from_value(json!({
            "id": "t", "source": "s", "prompt": [], "reference": null, "extra": extra,
        }))
        .unwrap()
    }

    #[test]
    fn a_split_and_a_task_hold_out_and_rename_together() {
        let config: ShownTools = serde_json::from_value(json!({
            "test": {"hold_out": ["a"], "rename": {"b": "x"}},
        }))
        .unwrap();
        let row = task(&json!({"shown_tools": {"hold_out": ["c"], "rename": {"d": "y"}}}));
        let showing = config.of(Split::Test, &row).unwrap();
        let tools = ["a", "b", "c", "d", "e"].map(tool).to_vec();
        let shown = showing.apply(tools.clone(), "t").unwrap();
        let names: Vec<&str> = shown.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["x", "y", "e"]);
        assert_eq!(own_name(&shown, "x"), "b");
        assert_eq!(own_name(&shown, "e"), "e");
        assert_eq!(showing.shown_name("b"), Some("x"));
        assert_eq!(showing.shown_name("a"), None);
        assert_eq!(shown[0].extra, [(OWN_NAME.to_owned(), json!("b"))]);
        let train = config.of(Split::Train, &task(&json!({}))).unwrap();
        assert_eq!(train.apply(tools.clone(), "t").unwrap(), tools);
    }

    #[test]
    fn parameters_stand_in_an_order_of_the_task_and_keep_what_they_say() {
        let showing = Showing {
            permute_parameters: true,
            ..Showing::default()
        };
        let order = |task: &str| -> Vec<String> {
            let shown = showing.apply(vec![tool("f")], task).unwrap();
            let schema = &shown[0].input_schema;
            assert_eq!(schema["required"].as_array().unwrap().len(), 5);
            schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(order("t1"), order("t1"));
        assert!((2..20).any(|n| order(&format!("t{n}")) != order("t1")));
        let mut sorted = order("t1");
        sorted.sort_unstable();
        assert_eq!(sorted, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn what_cannot_be_is_said_with_the_task() {
        let config = ShownTools::default();
        let error = config
            .of(Split::Train, &task(&json!({"shown_tools": {"rename": 1}})))
            .unwrap_err();
        assert!(
            error.to_string().starts_with("task t: extra.shown_tools: "),
            "{error}"
        );
        let showing = Showing {
            rename: BTreeMap::from([("a".into(), "b".into())]),
            ..Showing::default()
        };
        let error = showing.apply(vec![tool("a"), tool("b")], "t").unwrap_err();
        assert_eq!(
            error.to_string(),
            "task t: two tools would be shown as `b`; correct `rename`"
        );
    }
}
