//! Blocks of servers as other hosts have them: `{"mcpServers": {"NAME": {"command": .., "args": .., "env": ..}}}`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::config::McpConfig;
use crate::convert::valid_name;
use crate::error::McpError;

/// A server of a block. Other hosts have further keys, which mean nothing here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    #[serde(rename = "type", alias = "transport")]
    transport: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
    #[serde(default = "yes")]
    enabled: bool,
}

fn yes() -> bool {
    true
}

/// Keys of `[mcp.NAME]` that no other host has, so that they are meant for this one.
const OWN_KEYS: [&str; 8] = [
    "deadline_ms",
    "connect_ms",
    "max_concurrency",
    "retries",
    "result_bytes",
    "arguments_bytes",
    "rename",
    "protocol",
];

/// Adds the servers of `mcp_servers`, which is a block or the path of a file with one, to those of `[mcp.NAME]`. The path
/// starts at `base`.
pub fn add_mcp_servers(
    configs: &mut BTreeMap<String, McpConfig>,
    block_or_path: &str,
    base: &Path,
) -> Result<(), McpError> {
    let servers = if block_or_path.trim_start().starts_with('{') {
        read_mcp_servers(block_or_path)?
    } else {
        let path = base.join(block_or_path);
        let text = rlf_config::read(&path).map_err(|error| McpError::Block(error.to_string()))?;
        read_mcp_servers(&text).map_err(|error| match error {
            McpError::Block(reason) => McpError::Block(format!("{}: {reason}", path.display())),
            error => error,
        })?
    };
    for (name, config) in servers {
        if configs.contains_key(&name) {
            return Err(McpError::Block(format!(
                "there is also a table [mcp.{name}]; keep one"
            )));
        }
        configs.insert(name, config);
    }
    Ok(())
}

/// Reads the text of a block, with or without `mcpServers` (`servers` in some hosts) around it. A name may have any
/// characters in a block; those that no name may have here become `_`.
fn read_mcp_servers(text: &str) -> Result<BTreeMap<String, McpConfig>, McpError> {
    let wrong = McpError::Block;
    let block: Value =
        rlf_json::from_str(text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    let servers = ["mcpServers", "servers"]
        .into_iter()
        .find_map(|key| block.get(key));
    let Some(servers) = servers.unwrap_or(&block).as_object() else {
        return Err(wrong("it has no object `mcpServers`".to_owned()));
    };
    let mut configs = BTreeMap::new();
    for (name, entry) in servers {
        if let Some(key) = OWN_KEYS.iter().find(|key| entry.get(**key).is_some()) {
            return Err(wrong(format!(
                "server {name:?}: `{key}` is no key of a block; write the server as a table [mcp.NAME], which has it"
            )));
        }
        let entry: Entry = Entry::deserialize(entry)
            .map_err(|error| wrong(format!("server {name:?}: {error}")))?;
        if entry.transport.as_deref() == Some("sse") {
            return Err(wrong(format!(
                "server {name:?} speaks the old transport `sse`; ask for its URL for streamable HTTP, and write `\"type\": \"http\"`"
            )));
        }
        let valid = valid_name(name)
            .ok_or_else(|| wrong(format!("server {name:?}: its name is empty; give it one")))?;
        let config = McpConfig {
            command: entry.command,
            args: entry.args,
            env: entry.env,
            directory: entry.cwd.map(Into::into),
            url: entry.url,
            headers: entry.headers,
            enabled: entry.enabled && !entry.disabled,
            ..McpConfig::default()
        };
        if configs.insert(valid.clone(), config).is_some() {
            return Err(wrong(format!(
                "two servers would be called `{valid}`; rename one"
            )));
        }
    }
    Ok(configs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_another_host_is_read_as_it_is() {
        let text = r#"{
            "mcpServers": {
                "time": { "command": "uvx", "args": ["mcp-server-time"], "env": { "TZ": "UTC" }, "autoApprove": ["x"] },
                "my docs!": { "type": "http", "url": "https://example.com/mcp", "headers": { "X-Key": "${KEY}" }, "disabled": true }
            }
        }"#;
        let configs = read_mcp_servers(text).unwrap();
        assert_eq!(configs.keys().collect::<Vec<_>>(), ["my_docs_", "time"]);
        assert_eq!(configs["time"].command.as_deref(), Some("uvx"));
        assert_eq!(configs["time"].env["TZ"], "UTC");
        assert!(!configs["my_docs_"].enabled);
        for (name, config) in &configs {
            config.check(name).unwrap();
        }
        let off = read_mcp_servers(r#"{"a": {"command": "b", "enabled": false}}"#).unwrap();
        assert!(!off["a"].enabled);
        let bare = read_mcp_servers(r#"{"a": {"command": "b"}}"#).unwrap();
        assert_eq!(bare["a"].command.as_deref(), Some("b"));
    }

    #[test]
    fn what_is_wrong_with_a_block_is_said() {
        for (text, says) in [
            ("{", "it is not JSON"),
            ("[]", "no object `mcpServers`"),
            (r#"{"a": {"args": "b"}}"#, "server \"a\": "),
            (
                r#"{"a": {"command": "b", "deadline_ms": 5}}"#,
                "`deadline_ms` is no key of a block",
            ),
            (
                r#"{"a": {"type": "sse", "url": "http://b"}}"#,
                "old transport",
            ),
            (
                r#"{"a b": {"command": "c"}, "a_b": {"command": "c"}}"#,
                "two servers",
            ),
        ] {
            let said = read_mcp_servers(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
