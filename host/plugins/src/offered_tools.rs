//! The tools that a plugin offers: checked, under the operator's names, with the means to check their arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rlf_dialogue::tool::ToolDefinition;
use serde_json::Value;

use crate::arguments::{ArgumentsError, measured, validate};
use crate::bindings::types;
use crate::convert::{ContractError, definition_from_guest};
use crate::manifest::is_valid_name;
use crate::schema::{self, SchemaError, ToolSchema};

/// Maximum number of tools of one plugin.
pub const MAX_TOOLS: usize = 256;
/// Maximum length of a tool's description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// Maximum number of values in the schemas of all tools of a plugin, with every `$ref` followed.
pub const MAX_PLUGIN_SCHEMA_NODES: usize = 100_000;
/// Maximum size of all compiled regular expressions in the schemas of a plugin's tools, in bytes.
pub const MAX_PLUGIN_PATTERN_BYTES: usize = 4 << 20;

/// One tool of a loaded plugin, its schema checked and compiled.
#[derive(Debug, Clone)]
pub struct LoadedTool {
    /// The definition that models see, with the operator's name.
    pub definition: ToolDefinition,
    /// The plugin's own name for it.
    pub own_name: String,
    /// The schema by which the host checks arguments. `None` if the tool's own code checks them.
    pub(crate) schema: Option<Arc<ToolSchema>>,
}

/// The side that checks a tool's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    /// The host, by the tool's schema, which it compiles. Arguments that do not fit never reach the tool.
    Host,
    /// The tool's own code. Its schema is only for the model, and may use keywords that the host's engine does not
    /// know.
    Tool,
}

impl LoadedTool {
    /// Checks arguments before the tool sees them.
    pub fn check(&self, arguments: &Value) -> Result<(), ArgumentsError> {
        match &self.schema {
            Some(schema) => validate(schema, arguments),
            None => measured(arguments).map(drop),
        }
    }
}

/// The reason why the tools that a plugin offers cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OfferedToolsError {
    /// There are none.
    #[error("it offers no tools")]
    NoTools,
    /// More than [`MAX_TOOLS`].
    #[error("it offers {0} tools; at most {MAX_TOOLS} are taken")]
    TooMany(usize),
    /// A description is longer than [`MAX_DESCRIPTION_BYTES`].
    #[error(
        "the description of `{tool}` has {bytes} bytes; at most {MAX_DESCRIPTION_BYTES} are taken"
    )]
    LongDescription {
        /// The tool's name, shown.
        tool: String,
        /// The length of its description.
        bytes: usize,
    },
    /// A schema cannot be used.
    #[error("tool `{tool}`: {source}")]
    Schema {
        /// The tool's name, shown.
        tool: String,
        /// The reason.
        source: SchemaError,
    },
    /// All schemas together exceed [`MAX_PLUGIN_SCHEMA_NODES`] or [`MAX_PLUGIN_PATTERN_BYTES`].
    #[error(
        "the schemas of its tools are too much together: up to `{tool}` they unfold into {nodes} values with \
         {pattern_bytes} bytes of regular expressions, and {MAX_PLUGIN_SCHEMA_NODES} and {MAX_PLUGIN_PATTERN_BYTES} are \
         taken"
    )]
    SchemasTooLarge {
        /// The tool at which a limit was exceeded, shown.
        tool: String,
        /// Number of values up to there.
        nodes: usize,
        /// Size of the compiled expressions up to there.
        pattern_bytes: usize,
    },
    /// A definition is against the contract.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// A name is not allowed.
    #[error("`{0}` cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -")]
    Name(String),
    /// Two tools have the same name.
    #[error("it offers two tools called `{0}`")]
    Twice(String),
    /// The operator renames a tool that does not exist.
    #[error("`rename` is about a tool `{tool}`, but its tools are: {known}")]
    RenamesUnknown {
        /// The name in the grants.
        tool: String,
        /// The names that exist.
        known: String,
    },
    /// The operator gives a tool a name that is not allowed.
    #[error("`rename.{tool}` = {name:?} cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -")]
    NewName {
        /// The plugin's own name for it.
        tool: String,
        /// The name in the grants.
        name: String,
    },
}

/// Checks that the operator renames only existing tools, to valid names.
pub fn check_names(
    listed: &[types::ToolDefinition],
    rename: &BTreeMap<String, String>,
) -> Result<(), OfferedToolsError> {
    let own_names: BTreeSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
    for (own, new) in rename {
        if !own_names.contains(own.as_str()) {
            let known: Vec<&str> = own_names.into_iter().take(20).collect();
            return Err(OfferedToolsError::RenamesUnknown {
                tool: own.clone(),
                known: printable_name(&known.join(", ")),
            });
        }
        if !is_valid_name(new) {
            return Err(OfferedToolsError::NewName {
                tool: own.clone(),
                name: new.clone(),
            });
        }
    }
    Ok(())
}

/// Checks the tools that a plugin offers, and gives them the operator's names.
pub fn check_tools(
    listed: Vec<types::ToolDefinition>,
    rename: &BTreeMap<String, String>,
    checking: Checking,
) -> Result<Vec<LoadedTool>, OfferedToolsError> {
    if listed.is_empty() {
        return Err(OfferedToolsError::NoTools);
    }
    if listed.len() > MAX_TOOLS {
        return Err(OfferedToolsError::TooMany(listed.len()));
    }
    let mut seen = BTreeSet::new();
    let (mut nodes, mut pattern_bytes) = (0, 0);
    listed
        .into_iter()
        .map(|listed| {
            if listed.description.len() > MAX_DESCRIPTION_BYTES {
                return Err(OfferedToolsError::LongDescription {
                    tool: printable_name(&listed.name),
                    bytes: listed.description.len(),
                });
            }
            // Checked before parsing: the length of a schema is bounded as text.
            let schema = match checking {
                Checking::Host => ToolSchema::parse(&listed.input_schema).map(Some),
                Checking::Tool => schema::bounded(&listed.input_schema).map(|_| None),
            };
            let schema = schema.map_err(|source| OfferedToolsError::Schema {
                tool: printable_name(&listed.name),
                source,
            })?;
            nodes += schema.as_ref().map_or(0, ToolSchema::nodes);
            pattern_bytes += schema.as_ref().map_or(0, ToolSchema::pattern_bytes);
            if nodes > MAX_PLUGIN_SCHEMA_NODES || pattern_bytes > MAX_PLUGIN_PATTERN_BYTES {
                return Err(OfferedToolsError::SchemasTooLarge {
                    tool: printable_name(&listed.name),
                    nodes,
                    pattern_bytes,
                });
            }
            let own = definition_from_guest(listed)?;
            let name = rename.get(&own.name).unwrap_or(&own.name).clone();
            for name in [&own.name, &name] {
                if !is_valid_name(name) {
                    return Err(OfferedToolsError::Name(printable_name(name)));
                }
            }
            if !seen.insert(name.clone()) {
                return Err(OfferedToolsError::Twice(name));
            }
            Ok(LoadedTool {
                own_name: own.name.clone(),
                definition: ToolDefinition { name, ..own },
                schema: schema.map(Arc::new),
            })
        })
        .collect()
}

/// Makes a stranger's name short and safe to print.
pub fn printable_name(name: &str) -> String {
    rlf_sandbox::safe_text(name.as_bytes())
        .chars()
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::PluginGrants;

    fn listed(name: &str, schema: &str) -> types::ToolDefinition {
        types::ToolDefinition {
            name: name.into(),
            description: "d".into(),
            input_schema: schema.into(),
            output_schema: None,
            hints: types::Hints::READ_ONLY | types::Hints::DETERMINISTIC,
            extra: vec![],
        }
    }

    const OBJECT: &str = r#"{"type":"object"}"#;

    fn refusal(tools: Vec<types::ToolDefinition>, grants: &str) -> String {
        let grants: PluginGrants = rlf_config::parse(grants, "c.toml").unwrap();
        let refused = check_tools(tools, &grants.rename, Checking::Host);
        refused.unwrap_err().to_string()
    }

    #[test]
    fn tools_are_taken_in_their_order_and_under_the_operators_names() {
        let rename = BTreeMap::from([("b".to_owned(), "c".to_owned())]);
        let listed = vec![listed("b", OBJECT), listed("a", OBJECT)];
        let tools = check_tools(listed, &rename, Checking::Host).unwrap();
        let names: Vec<(&str, &str)> = tools
            .iter()
            .map(|t| (t.definition.name.as_str(), t.own_name.as_str()))
            .collect();
        assert_eq!(names, [("c", "b"), ("a", "a")]);
        assert!(tools[0].definition.hints.read_only && tools[0].definition.hints.deterministic);
        assert!(!tools[0].definition.hints.idempotent);
    }

    #[test]
    fn what_is_wrong_with_a_list_of_tools_is_said() {
        assert_eq!(refusal(vec![], ""), "it offers no tools");
        assert_eq!(
            refusal(vec![listed("a.b\u{1b}", OBJECT)], ""),
            "`a.b\u{241b}` cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -"
        );
        assert_eq!(
            refusal(vec![listed("a", OBJECT), listed("a", OBJECT)], ""),
            "it offers two tools called `a`"
        );
        assert_eq!(
            refusal(
                vec![listed("a", OBJECT), listed("b", OBJECT)],
                "rename.a = \"b\""
            ),
            "it offers two tools called `b`"
        );
        let misnamed = |grants: &str| {
            let grants: PluginGrants = rlf_config::parse(grants, "c.toml").unwrap();
            check_names(&[listed("a", OBJECT)], &grants.rename)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            misnamed("rename.x = \"b\""),
            "`rename` is about a tool `x`, but its tools are: a"
        );
        assert_eq!(
            misnamed("rename.a = \"\""),
            "`rename.a` = \"\" cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -"
        );
        assert!(
            refusal(vec![listed("a", "{")], "").starts_with("tool `a`: the schema is not JSON")
        );
        let remote = r#"{"type":"object","properties":{"x":{"$ref":"https://example.com"}}}"#;
        assert!(refusal(vec![listed("a", remote)], "").contains("is not allowed"));
        let long = types::ToolDefinition {
            description: "x".repeat(20_000),
            ..listed("a", OBJECT)
        };
        assert_eq!(
            refusal(vec![long], ""),
            "the description of `a` has 20000 bytes; at most 16384 are taken"
        );
        // Two hundred schemas, each of which would be accepted alone.
        let large = format!(
            r#"{{"type":"object","properties":{{"x":{{"enum":[{}0]}}}}}}"#,
            "0,".repeat(1_000)
        );
        let large = (0..200).map(|n| listed(&format!("t{n}"), &large)).collect();
        let said = refusal(large, "");
        assert!(
            said.starts_with("the schemas of its tools are too much together: up to `t99`"),
            "{said}"
        );
        let many = (0..300).map(|n| listed(&format!("t{n}"), OBJECT)).collect();
        assert_eq!(
            refusal(many, ""),
            "it offers 300 tools; at most 256 are taken"
        );
    }
}
