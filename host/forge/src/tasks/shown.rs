//! The tools of a task under other names than their author gave, with other names and another order of parameters.
//!
//! Records and checks always have the author's names. Only rows for training show the others, so that a policy has to
//! read names instead of knowing them.

use std::collections::BTreeMap;

use rlf_dialogue::message::Message;
use rlf_dialogue::tool::ToolDefinition;
use rlf_random::{Key, Purpose};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Names and orders under which a task shows its tools: `extra.shown_tools` of its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShownTools {
    /// The shown names of tools, by the author's names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// The shown names of parameters, by the author's names of the tool and of the parameter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rename_parameters: BTreeMap<String, BTreeMap<String, String>>,
    /// True if the parameters of every tool have an order of the task's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub permute_parameters: bool,
}

impl ShownTools {
    /// True if tools are shown as their author wrote them.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The shown name of a tool.
    pub fn name<'a>(&'a self, tool: &'a str) -> &'a str {
        self.rename.get(tool).map_or(tool, String::as_str)
    }

    /// The arguments of a call under the shown names.
    pub fn arguments(&self, tool: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
        let Some(names) = self.rename_parameters.get(tool) else {
            return arguments.clone();
        };
        let shown = |(own, value): (&String, &Value)| {
            (names.get(own).unwrap_or(own).clone(), value.clone())
        };
        arguments.iter().map(shown).collect()
    }

    /// A tool as the model of the task `id` sees it.
    pub fn definition(&self, mut tool: ToolDefinition, id: &str) -> ToolDefinition {
        let own = tool.name.clone();
        if let Some(names) = self.rename_parameters.get(&own) {
            // Names are drawn so that no two are the same.
            let _ = tool.rename_parameters(names);
        }
        if let Some(name) = self.rename.get(&own) {
            tool.rename(name);
        }
        tool.extra.clear();
        let properties = tool.input_schema.get_mut("properties");
        if self.permute_parameters
            && let Some(properties) = properties.and_then(Value::as_object_mut)
        {
            let mut entries: Vec<(String, Value)> =
                std::mem::take(properties).into_iter().collect();
            let key = Key::new(0, Purpose::Order).named("forge parameters");
            key.named(id).named(&own).shuffle(&mut entries);
            properties.extend(entries);
        }
        tool
    }

    /// Messages whose calls have the shown names.
    pub fn messages(&self, mut messages: Vec<Message>) -> Vec<Message> {
        for call in messages
            .iter_mut()
            .flat_map(|message| &mut message.tool_calls)
        {
            if let Value::Object(own) = &call.arguments {
                call.arguments = Value::Object(self.arguments(&call.name, own));
            }
            call.name = self.name(&call.name).to_owned();
        }
        messages
    }
}
