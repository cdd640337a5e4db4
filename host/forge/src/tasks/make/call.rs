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

/// The key of the items in a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnKey<'a> {
    /// The field of an item that has the key.
    pub field: &'a str,
    /// The kind of entity: `Server.entity`.
    pub entity: &'a str,
}

/// The key of the items in a tool's result: the first one. Further keys are those of what the items refer to.
pub fn own_key(tool: &Tool) -> Option<OwnKey<'_>> {
    tool.outputs.iter().find_map(|output| match &output.kind {
        ValueType::Key(entity) => Some(OwnKey {
            field: &output.name,
            entity,
        }),
        _ => None,
    })
}
