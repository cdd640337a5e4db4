//! The languages that a loaded interpreter runs.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rlf_plugins::bindings::interpreter;
use rlf_plugins::manifest::is_valid_name;
use rlf_plugins::offered_tools::printable_name;
use rlf_plugins::plugin::Plugin;
use serde::Serialize;

use crate::program::ProgramError;

/// Maximum number of languages of one interpreter.
pub const MAX_LANGUAGES: usize = 16;

/// The language of environments in files, and of functions.
pub const PYTHON: &str = "python";

/// A language that an interpreter runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Language {
    /// The name, such as `python` or `javascript`.
    pub id: String,
    /// The version, as the interpreter reports it.
    pub version: String,
    /// True if it supports notebooks.
    pub sessions: bool,
}

/// The data of a loaded interpreter, as returned by [`Plugin::exports`].
pub(crate) struct Loaded {
    pub(crate) indices: Arc<interpreter::GuestIndices>,
    /// Set once the interpreter has reported its languages.
    pub(crate) languages: OnceLock<Vec<Language>>,
}

/// The languages of an interpreter; empty for a plugin of another kind.
pub fn languages(plugin: &Plugin) -> &[Language] {
    let loaded = plugin.exports::<Loaded>();
    loaded
        .and_then(|loaded| loaded.languages.get())
        .map_or(&[], Vec::as_slice)
}

/// The language `id`, if the plugin runs it.
pub fn language<'a>(plugin: &'a Plugin, id: &str) -> Option<&'a Language> {
    languages(plugin).iter().find(|language| language.id == id)
}

/// The exports of an interpreter.
pub(crate) fn indices(plugin: &Plugin) -> Result<Arc<interpreter::GuestIndices>, ProgramError> {
    match plugin.exports::<Loaded>() {
        Some(loaded) => Ok(Arc::clone(&loaded.indices)),
        // Something else replaced the plugin on disk.
        None => Err(ProgramError::Unavailable(format!(
            "plugin `{}` is no interpreter",
            plugin.name()
        ))),
    }
}

/// The reason why the languages that an interpreter reports cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LanguagesError {
    #[error("it runs {0} languages; there must be between 1 and {MAX_LANGUAGES}")]
    Count(usize),
    #[error("`{0}` cannot name a language: write 1 to 64 of a-z A-Z 0-9 _ -, and each once")]
    Name(String),
}

/// Checks the languages that an interpreter reports.
pub(crate) fn check_languages(
    languages: Vec<interpreter::Language>,
) -> Result<Vec<Language>, LanguagesError> {
    if languages.is_empty() || languages.len() > MAX_LANGUAGES {
        return Err(LanguagesError::Count(languages.len()));
    }
    let mut seen = BTreeSet::new();
    languages
        .into_iter()
        .map(|language| {
            if !is_valid_name(&language.id) || !seen.insert(language.id.clone()) {
                return Err(LanguagesError::Name(printable_name(&language.id)));
            }
            Ok(Language {
                id: language.id,
                version: printable_name(&language.version),
                sessions: language.sessions,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_list_of_languages_is_said() {
        let language = |id: &str| interpreter::Language {
            id: id.into(),
            version: "1\u{1b}[2J".into(),
            sessions: false,
        };
        let refusal = |ids: &[&str]| {
            let languages = ids.iter().map(|id| language(id)).collect();
            check_languages(languages).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(&[]),
            "it runs 0 languages; there must be between 1 and 16"
        );
        assert!(refusal(&["a"; 17]).starts_with("it runs 17 languages"));
        assert!(refusal(&["a", "a"]).starts_with("`a` cannot name a language"));
        assert!(refusal(&["a b"]).starts_with("`a b` cannot name a language"));
        let read = check_languages(vec![language("a")]).unwrap();
        assert_eq!(read[0].version, "1\u{241b}[2J");
    }
}
