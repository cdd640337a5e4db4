//! The description that a server gives of its environment over HTTP, before any session: the form of actions, and the
//! tools.

use std::time::Duration;

use serde_json::Value;

use super::convert::{Acting, tools_request};
use super::error::DescriptionError;
use crate::error::SiteError;
use crate::host_form::safe;
use crate::site::Site;

/// A server that is asked over HTTP.
pub(crate) struct Describing<'a> {
    pub(crate) site: &'a Site,
    /// Time limit of each request.
    pub(crate) limit: Duration,
}

impl Describing<'_> {
    /// The form of a model's actions in an environment, and the hash of the server's description. `tool` is the name of
    /// the tool of an environment whose actions are no tool calls.
    pub(crate) async fn acting(
        &self,
        environment: &str,
        tool: &str,
    ) -> Result<(Acting, String), DescriptionError> {
        let schema = self.fetch("schema", None).await?;
        let actions = schema.get("action").ok_or(DescriptionError::NoAction)?;
        // A server without it works as well.
        let metadata = self.fetch("metadata", None).await.unwrap_or_default();
        let description = metadata.get("description").and_then(Value::as_str);
        let description: String = description.map_or_else(
            || format!("Acts in the environment {environment}."),
            |text| safe(text).chars().take(2_000).collect(),
        );
        let acting = Acting::new(actions, tool, &description)?;
        let mut hash = blake3::Hasher::new();
        hash.update(schema.to_string().as_bytes());
        if let Acting::Tools = acting {
            hash.update(self.tools().await?.to_string().as_bytes());
        }
        Ok((acting, hash.finalize().to_hex().to_string()))
    }

    /// The tools that the server lists outside of a session. Null if it does not: a session's own list is what counts.
    async fn tools(&self) -> Result<Value, DescriptionError> {
        match self.fetch("mcp", Some(&tools_request())).await {
            Ok(mut response) => {
                let listed = response.pointer_mut("/result/tools");
                Ok(listed.map(Value::take).unwrap_or_default())
            }
            Err(error @ DescriptionError::Site(SiteError::Fetch { .. })) => Err(error),
            Err(_) => Ok(Value::Null),
        }
    }

    /// Reads JSON from a path, with GET, or with POST if there is a body.
    async fn fetch(
        &self,
        path: &'static str,
        body: Option<&Value>,
    ) -> Result<Value, DescriptionError> {
        let answer = self.site.ask(&[path], None, body, self.limit).await?;
        rlf_json::from_str(&answer).map_err(|source| DescriptionError::Json { path, source })
    }
}
