//! An executed call, and the items of its result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graph::{Tool, ValueType};
use crate::tasks::record::Arguments;

/// A call that was executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedCall {
    /// The tool: `Server-name`.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// Its result.
    pub result: Value,
    /// The origin of each argument.
    pub sources: BTreeMap<String, ArgumentSource>,
    /// True if the user asks for this call. The others look up what it needs.
    pub requested: bool,
}

/// The origin of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentSource {
    /// The user knows it.
    User,
    /// The result of an earlier call.
    Call {
        /// The call, counted from 0 over all turns.
        call: usize,
        /// The item of its result, from 0.
        item: usize,
        /// The field of the item.
        field: String,
    },
}

/// The items of a result: those of a list, or the object itself.
pub fn items(result: &Value) -> &[Value] {
    match result {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// The field of a tool's result that has the key of the found items themselves: the first key.
pub fn own_key(tool: &Tool) -> Option<&String> {
    let mut keys = tool
        .outputs
        .iter()
        .filter(|output| matches!(output.kind, ValueType::Key(_)));
    keys.next().map(|output| &output.name)
}
