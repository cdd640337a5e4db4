//! Tools as the model sees them: some held out, some under other names, parameters in another order.
//!
//! With other names in the test split, an evaluation shows whether the policy learnt the names by heart. Rewards always
//! read the authors' names, so references do not depend on these settings.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{OWN_NAME, ToolDefinition};
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

    /// The name under which the model sees a tool; `None` if the tool is not offered.
    pub fn shown_name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        if self.hold_out.contains(own) {
            return None;
        }
        Some(self.rename.get(own).map_or(own, String::as_str))
    }
}

/// The author's name of the tool that is shown as `name`.
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
        let view = config.for_task(Split::Test, &row).unwrap();
        let tools = ["a", "b", "c", "d", "e"].map(tool).to_vec();
        let shown = view.apply(tools.clone(), "t").unwrap();
        let names: Vec<&str> = shown.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["x", "y", "e"]);
        assert_eq!(own_name(&shown, "x"), "b");
        assert_eq!(own_name(&shown, "e"), "e");
        assert_eq!(view.shown_name("b"), Some("x"));
        assert_eq!(view.shown_name("a"), None);
        assert_eq!(shown[0].extra, [(OWN_NAME.to_owned(), json!("b"))]);
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
