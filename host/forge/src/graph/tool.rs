//! A neutral description of a tool: what it takes and what it gives.

use serde::{Deserialize, Serialize};

use super::ValueType;

/// A tool, wherever its description came from. Objects, and arrays of objects, are flattened one level: `address.city`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The environment or plugin that has the tool.
    pub server: String,
    /// Name of the tool on its server.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its inputs.
    pub inputs: Vec<Input>,
    /// Its outputs.
    pub outputs: Vec<Output>,
}

impl Tool {
    /// The name that no other tool has: `Server-name`.
    pub fn full_name(&self) -> String {
        format!("{}-{}", self.server, self.name)
    }
}

/// A parameter that a tool takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its name; `a.b` for the property `b` of the object, or array of objects, `a`.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// Its description.
    pub description: String,
    /// True if it must be given.
    pub required: bool,
    /// The reason why the user can provide the input, if the user can.
    pub from_user: Option<FromUser>,
}

/// A value that a tool gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its name; `a.b` for the property `b` of the object, or array of objects, `a`.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// Its description.
    pub description: String,
}

/// The source that says that the user provides an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromUser {
    /// The description of the tool.
    Declared,
    /// The rule: the user knows every value that is not a key. In a specification, keys are declared. In a JSON schema,
    /// an input is a key if the last word of its name is one of [`super::KEY_WORDS`].
    ByRule,
}
