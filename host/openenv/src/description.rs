//! The description that a server gives of its environment over HTTP, before any session: the form of actions, and the
//! tools.

use std::time::{Duration, Instant};

use rlf_http::{HttpClient, Request, Value as Header};
use serde_json::Value;
use url::Url;

use crate::convert::{Acting, safe, tools_request};
use crate::error::DescriptionError;
use crate::token::{Token, without_token};

/// A server that is asked over HTTP.
pub(crate) struct Describing<'a> {
    pub(crate) client: &'a HttpClient,
    pub(crate) base: &'a Url,
    pub(crate) token: Option<&'a Token>,
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
        let missing = || DescriptionError::NoAction {
            url: self.url("schema"),
        };
        let actions = schema.get("action").ok_or_else(missing)?;
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
            Err(error @ DescriptionError::Fetch { .. }) => Err(error),
            Err(_) => Ok(Value::Null),
        }
    }

    /// Reads JSON from a path, with GET, or with POST if there is a body.
    async fn fetch(&self, path: &str, body: Option<&Value>) -> Result<Value, DescriptionError> {
        let url = self.url(path);
        let headers = [
            ("authorization", self.token.map(Token::header_text)),
            ("content-type", body.map(|_| "application/json".to_owned())),
        ];
        let headers = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), Header::Text(value?))));
        let request = Request {
            method: body.map_or("GET", |_| "POST").to_owned(),
            url: url.clone(),
            headers: headers.collect(),
            body: body.map(Value::to_string).unwrap_or_default().into_bytes(),
        };
        let call = self.client.call(Instant::now() + self.limit);
        let response = match call.fetch(request).await {
            Ok(response) => response,
            Err(source) => return Err(DescriptionError::Fetch { url, source }),
        };
        if response.status != 200 {
            let status = response.status;
            return Err(DescriptionError::Status { url, status });
        }
        let text = without_token(&String::from_utf8_lossy(&response.body), self.token);
        rlf_json::from_str(&text).map_err(|source| DescriptionError::Json { url, source })
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base.as_str().trim_end_matches('/'))
    }
}
