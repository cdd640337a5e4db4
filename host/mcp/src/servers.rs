//! All servers of a process.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use rlf_tools::ToolServer;

use crate::background::Background;
use crate::config::McpConfig;
use crate::connection::Connection;
use crate::error::McpError;
use crate::server::Server;

/// The connected servers of a configuration. They are connected as long as this or any of the tool servers is held.
#[derive(Debug, Clone, Default)]
pub struct Servers(Vec<Arc<Server>>);

impl Servers {
    /// Connects to all servers that are enabled, at once, and asks for their tools. Blocks until all have answered, or one
    /// cannot be used. `warn` gets what a user should know, such as a tool that cannot be offered.
    pub fn connect(
        configs: &BTreeMap<String, McpConfig>,
        warn: &dyn Fn(&str),
    ) -> Result<Self, McpError> {
        let enabled: Vec<(&String, &McpConfig)> = configs
            .iter()
            .filter(|(_, config)| config.enabled)
            .collect();
        if enabled.is_empty() {
            return Ok(Self::default());
        }
        let mut connections = Vec::new();
        for (name, config) in &enabled {
            config.check(name)?;
            let connection =
                Connection::new(name, config).map_err(|(key, reason)| McpError::Config {
                    server: (*name).clone(),
                    key,
                    reason,
                })?;
            connections.push(Arc::new(connection));
        }
        let background = Arc::new(Background::start(connections.clone())?);
        let opened =
            background.block_on(join_all(connections.iter().cloned().map(Connection::open)))?;
        let mut servers = Vec::new();
        for (((name, config), connection), opened) in
            enabled.into_iter().zip(connections).zip(opened)
        {
            let introduction = opened.map_err(|reason| McpError::Connect {
                server: name.clone(),
                reason,
            })?;
            let background = Arc::clone(&background);
            let server = Server::new(name, config, &introduction, connection, background, warn)?;
            servers.push(Arc::new(server));
        }
        Ok(Self(servers))
    }

    /// The servers as a source of tools.
    pub fn tool_servers(&self) -> Vec<Arc<dyn ToolServer>> {
        self.0
            .iter()
            .map(|server| Arc::clone(server) as _)
            .collect()
    }
}
