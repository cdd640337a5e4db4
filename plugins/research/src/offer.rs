//! The tools that the model may call.

use rlf_plugin::ToolDefinition;

/// The open tools, without the one that offers them.
pub(crate) struct Offer(Vec<ToolDefinition>);

impl Offer {
    /// Offers these tools except the one with the name `own`: a tool that calls itself only spends its budget.
    pub(crate) fn new(mut open: Vec<ToolDefinition>, own: &str) -> Self {
        open.retain(|tool| tool.name != own);
        Self(open)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a tool with this name is offered.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|tool| tool.name == name)
    }

    /// The names, separated by commas.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|tool| &*tool.name).collect();
        names.join(", ")
    }

    /// The names, descriptions and schemas, for a system message.
    pub(crate) fn described(&self) -> String {
        let tools = self.0.iter().map(|tool| {
            let (name, description) = (&tool.name, &tool.description);
            format!(
                "- {name}: {description}\n  schema of its arguments: {}",
                tool.input_schema
            )
        });
        tools.collect::<Vec<_>>().join("\n")
    }
}
