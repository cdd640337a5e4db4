//! Checks whether the tools that `[shown_tools]` names exist.

use rlf_rollout::shown_tools::{ShownTools, ToolView};
use rlf_tools::tool_manager::ToolManager;

use crate::error::ConfigurationError;

/// Refuses names of tools and parameters that do not exist. A misspelt name in `hold_out` would train on the tool that was to
/// be unseen.
pub(crate) fn check(shown: &ShownTools, tools: &ToolManager) -> Result<(), ConfigurationError> {
    for (split, view) in [
        ("train", &shown.train),
        ("validation", &shown.validation),
        ("test", &shown.test),
    ] {
        check_view(&format!("shown_tools.{split}"), view, tools)?;
    }
    Ok(())
}

fn check_view(key: &str, view: &ToolView, tools: &ToolManager) -> Result<(), ConfigurationError> {
    let named = view.hold_out.iter().chain(view.rename.keys());
    for name in named.chain(view.rename_parameters.keys()) {
        let found = tools.definitions(Some(std::slice::from_ref(name)));
        let found =
            found.map_err(|error| ConfigurationError::value(key, format!("[{key}]: {error}")))?;
        let properties = found[0].input_schema["properties"].as_object();
        let renamed = view.rename_parameters.get(name).into_iter().flatten();
        for (parameter, _) in renamed {
            if properties.is_none_or(|known| !known.contains_key(parameter)) {
                let known = properties.map_or_else(String::new, |known| {
                    known.keys().cloned().collect::<Vec<_>>().join(", ")
                });
                let problem = format!(
                    "[{key}] rename_parameters: `{name}` has no parameter `{parameter}`; it has: {known}"
                );
                return Err(ConfigurationError::value(key, problem));
            }
        }
    }
    Ok(())
}
