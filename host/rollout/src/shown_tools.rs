//! Tools as the model sees them: some held out, some under other names, parameters under other names and in another order.
//!
//! With other names in the test split, an evaluation shows whether the policy learnt the names by heart. Rewards always
//! read the authors' names, so references do not depend on these settings.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::own_names::SameParameter;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolDefinition;
use rlf_plugins::seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The key in a task's `extra` that holds the task's own [`ToolView`].
const IN_TASK: &str = "shown_tools";

/// `[shown_tools]` of a configuration. A task's own `extra.shown_tools` (a [`ToolView`]) is added to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShownTools {
    /// In training.
    pub train: ToolView,
    /// In validation.
    pub validation: ToolView,
    /// In the test split.
    pub test: ToolView,
}

/// The changes to the tools in one split, or for one task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolView {
    /// Tools that are not offered. Default: none.
    pub hold_out: BTreeSet<String>,
    /// Maps the author's name of a tool to the name that the model sees. Default: none.
    pub rename: BTreeMap<String, String>,
    /// By the author's name of a tool: maps the author's names of its parameters to the names that the model sees. Default:
    /// none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rename_parameters: BTreeMap<String, BTreeMap<String, String>>,
    /// True if the parameters of every tool are in a different order for each task. Default: false.
    pub permute_parameters: bool,
}

/// The reason why the tools of a task cannot be shown as it asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShownToolsError {
    /// The task's `extra.shown_tools` is not a [`ToolView`].
    #[error("task {task}: extra.shown_tools: {error}")]
    Task {
        /// The task's id.
        task: String,
        /// The mistake.
        error: String,
    },
    /// Two tools would be shown under one name.
    #[error("task {task}: two tools would be shown as `{name}`; correct `rename`")]
    SameName {
        /// The task's id.
        task: String,
        /// The name of both.
        name: String,
    },
    /// Two parameters of a tool would be shown under one name.
    #[error("task {task}: {tool}: {source}; correct `rename_parameters`")]
    SameParameter {
        /// The task's id.
        task: String,
        /// The author's name of the tool.
        tool: String,
        /// The name of both.
        source: SameParameter,
    },
}

impl ShownTools {
    /// The view of a task's tools: that of its split, with the task's own changes.
    pub fn for_task(&self, split: Split, task: &Task) -> Result<ToolView, ShownToolsError> {
        let mut view = match split {
            Split::Train => self.train.clone(),
            Split::Validation => self.validation.clone(),
            Split::Test => self.test.clone(),
        };
        if let Some(own) = task.extra.get(IN_TASK) {
            let own = ToolView::deserialize(own).map_err(|error| ShownToolsError::Task {
                task: task.id.clone(),
                error: error.to_string(),
            })?;
            view.hold_out.extend(own.hold_out);
            view.rename.extend(own.rename);
            for (tool, names) in own.rename_parameters {
                view.rename_parameters
                    .entry(tool)
                    .or_default()
                    .extend(names);
            }
            view.permute_parameters |= own.permute_parameters;
        }
        Ok(view)
    }
}

impl ToolView {
    /// True if the tools are shown unchanged.
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
            if let Some(names) = self.rename_parameters.get(&tool.name) {
                let renamed = tool.rename_parameters(names);
                renamed.map_err(|source| ShownToolsError::SameParameter {
                    task: task.to_owned(),
                    tool: tool.name.clone(),
                    source,
                })?;
            }
            if let Some(name) = self.rename.get(&tool.name) {
                tool.rename(name);
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

    /// The name under which the model sees a tool; `None` if the tool is not offered.
    pub fn shown_name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        if self.hold_out.contains(own) {
            return None;
        }
        Some(self.rename.get(own).map_or(own, String::as_str))
    }

    /// Arguments of a tool, given by the authors' names, under the names that the model sees.
    pub fn shown_arguments(&self, tool: &str, arguments: &Value) -> Value {
        let (Some(names), Value::Object(own)) = (self.rename_parameters.get(tool), arguments)
        else {
            return arguments.clone();
        };
        let shown = own
            .iter()
            .map(|(name, value)| (names.get(name).unwrap_or(name).clone(), value.clone()));
        Value::Object(shown.collect())
    }
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
        let view = config.for_task(Split::Test, &row).unwrap();
        let tools = ["a", "b", "c", "d", "e"].map(tool).to_vec();
        let shown = view.apply(tools.clone(), "t").unwrap();
        let names: Vec<&str> = shown.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["x", "y", "e"]);
        assert_eq!(shown[0].own_name(), "b");
        assert_eq!(shown[2].own_name(), "e");
        assert_eq!(view.shown_name("b"), Some("x"));
        assert_eq!(view.shown_name("a"), None);
        assert_eq!(
            shown[0].extra,
            [(rlf_dialogue::tool::OWN_NAME.to_owned(), json!("b"))]
        );
        let train = config.for_task(Split::Train, &task(&json!({}))).unwrap();
        assert_eq!(train.apply(tools.clone(), "t").unwrap(), tools);
    }

    #[test]
    fn parameters_stand_in_an_order_of_the_task_and_keep_what_they_say() {
        let view = ToolView {
            permute_parameters: true,
            ..ToolView::default()
        };
        let order = |task: &str| -> Vec<String> {
            let shown = view.apply(vec![tool("f")], task).unwrap();
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
    fn parameters_are_renamed_by_the_split_and_the_task_together() {
        let config: ShownTools = serde_json::from_value(json!({
            "train": {"rename_parameters": {"f": {"a": "x"}}, "rename": {"f": "g"}},
        }))
        .unwrap();
        let row = task(&json!({"shown_tools": {"rename_parameters": {"f": {"b": "y"}}}}));
        let view = config.for_task(Split::Train, &row).unwrap();
        let shown = view.apply(vec![tool("f")], "t").unwrap().remove(0);
        let names: Vec<&String> = shown.input_schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(names, ["x", "y", "c", "d", "e"]);
        let own = json!({"a": 1, "b": 2, "c": 3});
        let called = view.shown_arguments("f", &own);
        assert_eq!(called, json!({"x": 1, "y": 2, "c": 3}));
        assert_eq!(shown.own_arguments(&called), own);
        assert_eq!((shown.name.as_str(), shown.own_name()), ("g", "f"));
        let same = task(&json!({"shown_tools": {"rename_parameters": {"f": {"b": "c"}}}}));
        let view = config.for_task(Split::Train, &same).unwrap();
        assert_eq!(
            view.apply(vec![tool("f")], "t").unwrap_err().to_string(),
            "task t: f: two parameters would be shown as `c`; correct `rename_parameters`"
        );
    }

    #[test]
    fn what_cannot_be_is_said_with_the_task() {
        let config = ShownTools::default();
        let error = config
            .for_task(Split::Train, &task(&json!({"shown_tools": {"rename": 1}})))
            .unwrap_err();
        assert!(
            error.to_string().starts_with("task t: extra.shown_tools: "),
            "{error}"
        );
        let view = ToolView {
            rename: BTreeMap::from([("a".into(), "b".into())]),
            ..ToolView::default()
        };
        let error = view.apply(vec![tool("a"), tool("b")], "t").unwrap_err();
        assert_eq!(
            error.to_string(),
            "task t: two tools would be shown as `b`; correct `rename`"
        );
    }
}
