//! The operator's configuration.

use serde::Deserialize;

/// The `[config]` table; the crate's documentation explains each key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) key: Option<String>,
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) key_argument: String,
    pub(crate) column_argument: String,
    pub(crate) schema: SchemaLength,
    pub(crate) show: String,
    pub(crate) ignore_case: bool,
    pub(crate) suggestions: usize,
}

/// The level of detail of the tool's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SchemaLength {
    /// With a description of each argument.
    Full,
    /// Names, types and columns only.
    Short,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            key: None,
            columns: None,
            name: "lookup".to_owned(),
            description: None,
            key_argument: "entity".to_owned(),
            column_argument: "column".to_owned(),
            schema: SchemaLength::Full,
            show: "{value}".to_owned(),
            ignore_case: true,
            suggestions: 3,
        }
    }
}

impl Config {
    /// `show` with its placeholders filled, in one pass: a value that contains `{key}` stays as it is.
    pub(crate) fn shown(&self, key: &str, column: &str, value: &str) -> String {
        let mut shown = String::with_capacity(self.show.len() + value.len());
        let mut rest = self.show.as_str();
        while let Some(open) = rest.find('{') {
            shown.push_str(&rest[..open]);
            rest = &rest[open..];
            let fillings = [("{value}", value), ("{column}", column), ("{key}", key)];
            let filling = fillings
                .iter()
                .find(|(placeholder, _)| rest.starts_with(placeholder));
            if let Some((placeholder, filling)) = filling {
                shown.push_str(filling);
                rest = &rest[placeholder.len()..];
            } else {
                shown.push('{');
                rest = &rest[1..];
            }
        }
        shown.push_str(rest);
        shown
    }
}
