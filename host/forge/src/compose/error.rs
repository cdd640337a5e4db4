//! Errors of templates and words.

/// A template of an archetype cannot be filled in.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("nothing makes the role `{0}`")]
    NoRole(String),
    #[error("there is no entity `{0}`")]
    NoEntity(String),
    #[error("there is no `<{0}>`")]
    NoPlaceholder(String),
    #[error("there is no list `{0}`")]
    NoList(String),
    #[error("`{text}` lacks a `{close}`")]
    Open { text: String, close: char },
    #[error("{template}: {source}")]
    Unreadable {
        template: String,
        source: toml::de::Error,
    },
    #[error("`{0}` is no attribute")]
    NotAnAttribute(String),
    #[error("{business} has no words for `{list}`")]
    NoWords { business: String, list: String },
    #[error("`{field}` of a new {entity} is no key that can be looked up")]
    NotAKey { field: String, entity: String },
}
