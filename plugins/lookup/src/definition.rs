//! The tool's definition, which depends on the table and on the configuration.

use rlf_plugin::ToolDefinition;
use rlf_plugin::serde_json::json;

use crate::Facts;
use crate::config::SchemaLength;

pub(crate) fn describe(mut definition: ToolDefinition, facts: &Facts) -> ToolDefinition {
    let Facts { table, config } = facts;
    definition.name.clone_from(&config.name);
    if let Some(description) = &config.description {
        definition.description.clone_from(description);
    }
    let columns: Vec<&str> = table.columns().collect();
    let (key, column) = match config.schema {
        SchemaLength::Full => (
            json!({ "type": "string", "description": "Name of what the fact is about" }),
            json!({ "type": "string", "description": "Which fact", "enum": columns }),
        ),
        SchemaLength::Short => (json!({ "type": "string" }), json!({ "enum": columns })),
    };
    definition.input_schema = json!({
        "type": "object",
        "properties": { &config.key_argument: key, &config.column_argument: column },
        "required": [config.key_argument, config.column_argument],
    })
    .to_string();
    definition
}
