//! The beginning of sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_environments::server::ServerStart;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::time::timeout;

use super::connection::{Answer, Connection, Reward};
use super::convert::{Acting, messages, tools, tools_request};
use super::description::Describing;
use super::error::{ConnectionError, DescriptionError};
use super::session::Session;
use crate::config::RemoteConfig;
use crate::error::NotBegun;
use crate::host_form::brief;
use crate::protocol::Protocol;
use crate::rewards::Rewards;
use crate::site::Site;

/// First pause before a server without room is asked again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// An environment on a server of OpenEnv.
#[derive(Debug)]
pub(crate) struct Environment {
    site: Site,
    config: Arc<RemoteConfig>,
    acting: Arc<Acting>,
}

impl Environment {
    /// Asks a server how a model acts in its environment. Returns the hash of the server's description, too.
    pub(crate) async fn ask(
        name: &str,
        config: &Arc<RemoteConfig>,
        site: Site,
    ) -> Result<(Self, String), DescriptionError> {
        let describing = Describing {
            site: &site,
            limit: config.connect,
        };
        let (acting, hash) = describing.acting(name, config.tool()).await?;
        let environment = Self {
            site,
            config: Arc::clone(config),
            acting: Arc::new(acting),
        };
        Ok((environment, hash))
    }

    /// Begins a session. `permit` is held until the session has ended.
    pub(crate) async fn begin(
        &self,
        mut options: Map<String, Value>,
        seed: u64,
        permit: OwnedSemaphorePermit,
    ) -> Result<ServerStart, NotBegun> {
        let permit = Arc::new(permit);
        // Libraries such as numpy take 32 bits.
        let seed = seed & u64::from(u32::MAX);
        options.entry("seed").or_insert_with(|| Value::from(seed));
        let reset = json!({"type": "reset", "data": options});
        let deadline = Instant::now() + self.config.connect;
        let mut pause = FIRST_PAUSE;
        let unavailable = |why: &str| NotBegun::Unavailable(why.to_owned());
        let (mut connection, observed) = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Site { base, token, .. } = &self.site;
            let opening = Connection::open(base, token.clone(), Arc::clone(&permit));
            let opened = timeout(left, opening).await.map_err(|_| {
                let most = self.config.connect.as_millis();
                unavailable(&format!("{base} did not answer within connect_ms = {most}"))
            })?;
            let mut connection = opened?;
            let left = deadline.saturating_duration_since(Instant::now());
            match connection.ask(&reset, left).await? {
                Answer::Observation(observed) => break (connection, observed),
                Answer::Error(refusal) if refusal.is_capacity_reached() => {
                    if Instant::now() + pause >= deadline {
                        return Err(unavailable(
                            "it has had no room within connect_ms; lower max_sessions, or raise that of the server",
                        ));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Answer::Error(refusal) => return Err(NotBegun::Refused(brief(&refusal.reason()))),
                _ => return Err(unavailable("it answered a reset with something else")),
            }
        };
        if observed.done {
            let why = "the episode was over at its reset".to_owned();
            return Err(NotBegun::Refused(why));
        }
        let tools = match &*self.acting {
            Acting::Action(tool) => vec![(**tool).clone()],
            Acting::Tools => {
                let message = json!({"type": "mcp", "data": tools_request()});
                let Answer::Mcp(response) = connection.ask(&message, self.config.deadline).await?
                else {
                    let why = "it does not list its tools over MCP".to_owned();
                    return Err(NotBegun::Broke(why));
                };
                tools(&response).map_err(|error| NotBegun::Broke(error.to_string()))?
            }
        };
        let session = Session {
            acting: Arc::clone(&self.acting),
            connection: Mutex::new(connection),
            rewards: Rewards::new(
                Protocol::OpenEnv,
                &self.config,
                observed.reward.map(Reward::value),
            ),
        };
        Ok(ServerStart {
            session: Box::new(session),
            messages: messages(&observed.observation),
            tools,
        })
    }
}

impl From<ConnectionError> for NotBegun {
    fn from(error: ConnectionError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
