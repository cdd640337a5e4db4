//! An environment on a server, and the beginning of sessions in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_environments::server::ServerStart;
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{AnswerError, messages, read, session_id, tools};
use super::session::{PING_PAUSE, Session};
use crate::config::RemoteConfig;
use crate::error::{NotBegun, SiteError};
use crate::protocol::Protocol;
use crate::rewards::Rewards;
use crate::site::Site;

/// First pause before a server that still prepares an episode is asked again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// An environment on a server of ORS.
#[derive(Debug)]
pub(crate) struct Environment {
    site: Arc<Site>,
    config: Arc<RemoteConfig>,
    /// The server's name for it.
    name: String,
}

impl Environment {
    /// Asks a server for the tools of its environment. Returns the hash of the tools, too, as they are listed outside of
    /// a session.
    pub(crate) async fn ask(
        config: &Arc<RemoteConfig>,
        site: Site,
    ) -> Result<(Self, String), AnswerError> {
        let limit = config.connect;
        let name = if let Some(name) = &config.environment {
            name.clone()
        } else {
            let listed = site.ask(&["list_environments"], None, None, limit).await?;
            let listed: Vec<String> = read(&listed)?;
            let missing = AnswerError::Missing("environment");
            listed.into_iter().next().ok_or(missing)?
        };
        let tools = site.ask(&[&name, "tools"], None, None, limit).await?;
        let tools: Value = read(&tools)?;
        let hash = blake3::hash(tools.to_string().as_bytes());
        let environment = Self {
            site: Arc::new(site),
            config: Arc::clone(config),
            name,
        };
        Ok((environment, hash.to_hex().to_string()))
    }

    /// Begins a session. `task` is what `create` takes. `permit` is held until the session has ended.
    pub(crate) async fn begin(
        &self,
        mut task: Map<String, Value>,
        permit: OwnedSemaphorePermit,
    ) -> Result<ServerStart, AnswerError> {
        let deadline = Instant::now() + self.config.connect;
        let left = || deadline.saturating_duration_since(Instant::now());
        let path = ["create_session"];
        let answer = self.site.ask(&path, None, Some(&json!({})), left()).await?;
        let session = Session::keep(
            Arc::clone(&self.site),
            self.name.clone(),
            session_id(&answer)?,
            Rewards::new(Protocol::Ors, &self.config, None),
            permit,
            PING_PAUSE,
        );
        task.insert("env_name".to_owned(), self.name.clone().into());
        let task = Value::Object(task);
        session.ask(&["create"], Some(&task), left()).await?;
        let mut pause = FIRST_PAUSE;
        let prompt = loop {
            match session.ask(&[&self.name, "prompt"], None, left()).await {
                // It still prepares the episode. Asking again changes nothing there.
                Err(SiteError::Status { status: 503, .. }) if left() > pause => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                answer => break answer?,
            }
        };
        let listed = session
            .ask(&[&self.name, "task_tools"], None, left())
            .await?;
        Ok(ServerStart {
            messages: messages(&prompt)?,
            tools: tools(&listed)?,
            session: Box::new(session),
        })
    }
}

impl From<AnswerError> for NotBegun {
    fn from(error: AnswerError) -> Self {
        let why = error.to_string();
        match error {
            // The server knows no such task, or its environment failed on it.
            AnswerError::Site(SiteError::Status {
                status: 400..=500, ..
            }) => Self::Refused(why),
            AnswerError::Site(_) => Self::Unavailable(why),
            _ => Self::Broke(why),
        }
    }
}
