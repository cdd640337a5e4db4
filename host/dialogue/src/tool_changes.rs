//! The text that a model reads when the tools on offer change in the middle of an episode.

use std::fmt::Write as _;

use serde_json::json;

use crate::tool::ToolDefinition;

/// Tells the model which tools were added and removed. `None` if no tool changed.
pub(crate) fn tool_changes(before: &[ToolDefinition], after: &[ToolDefinition]) -> Option<String> {
    let gone: Vec<&str> = before
        .iter()
        .filter(|tool| after.iter().all(|other| other.name != tool.name))
        .map(|tool| tool.name.as_str())
        .collect();
    let new: Vec<String> = after
        .iter()
        .filter(|tool| !before.contains(tool))
        .map(|tool| {
            let function = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
            });
            function.to_string()
        })
        .collect();
    if gone.is_empty() && new.is_empty() {
        return None;
    }
    let mut news = "The tools have changed.".to_owned();
    if !gone.is_empty() {
        let _ = write!(news, " No longer there: {}.", gone.join(", "));
    }
    if !new.is_empty() {
        let _ = write!(news, " New:\n{}", new.join("\n"));
    }
    Some(news)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            description: description.into(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            hints: crate::tool::Hints::default(),
            extra: Vec::new(),
        }
    }

    #[test]
    fn what_came_and_what_went_is_told_once() {
        let before = [tool("a", "A."), tool("b", "B."), tool("c", "C.")];
        let after = [tool("a", "A."), tool("c", "Other."), tool("d", "D.")];
        assert_eq!(
            tool_changes(&before, &after).unwrap(),
            "The tools have changed. No longer there: b. New:\n\
             {\"name\":\"c\",\"description\":\"Other.\",\"parameters\":{\"type\":\"object\"}}\n\
             {\"name\":\"d\",\"description\":\"D.\",\"parameters\":{\"type\":\"object\"}}"
        );
        assert_eq!(tool_changes(&before, &before), None);
    }
}
