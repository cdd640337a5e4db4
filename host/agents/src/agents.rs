//! Starting agents, and their trajectories.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use rlf_rollout::agent::{Agent, AgentEnd, AgentTrajectory};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};

use crate::config::{AgentConfig, InvalidAgent};
use crate::process;
use crate::remote::Queue;
use crate::routes::{Desk, described, router};
use crate::seats::Seats;
use crate::server::Server;

/// The reason why agents cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] InvalidAgent),
    /// The service cannot listen.
    #[error("agent: cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Leads trajectories by the agent of a configuration, and serves the policy to it.
pub struct Agents {
    config: AgentConfig,
    desk: Arc<Desk>,
    server: Server,
    /// Places for processes.
    places: Semaphore,
}

impl Agents {
    /// Checks the configuration, and listens. Connections are accepted from the first trajectory on. `temperature` is the
    /// one at which training samples.
    pub fn new(config: AgentConfig, temperature: f32) -> Result<Self, AgentsError> {
        config.check()?;
        let desk = Arc::new(Desk {
            seats: Seats::default(),
            queue: Queue::default(),
            is_remote: config.listen.is_some(),
            token: config.token()?,
            temperature,
            answers: AtomicU64::new(0),
        });
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let address = config.listen.unwrap_or(any);
        let server = Server::bind(address, router(Arc::clone(&desk)));
        let server = server.map_err(|source| AgentsError::Listen { address, source })?;
        Ok(Self {
            places: Semaphore::new(config.max_processes),
            config,
            desk,
            server,
        })
    }

    /// The URL of the service.
    pub fn url(&self) -> String {
        match &self.config.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.server.address),
        }
    }

    /// Leads a trajectory by a process of its own.
    async fn run_process(
        &self,
        trajectory: &AgentTrajectory,
        url: &str,
        token: &str,
        mut over: oneshot::Receiver<AgentEnd>,
    ) -> AgentEnd {
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        let task = match described(trajectory).await {
            Ok(task) => task,
            Err(refusal) => return AgentEnd::Failed(refusal.message),
        };
        let variables = [
            ("OPENAI_BASE_URL", format!("{url}/v1")),
            ("OPENAI_API_KEY", token.to_owned()),
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", token.to_owned()),
            ("RLF_TRAJECTORY_URL", url.to_owned()),
        ];
        let ended = process::run(&self.config, &variables, &task).await;
        // A report over HTTP counts. The process may have tidied up since.
        if !matches!(ended, AgentEnd::Misconfigured(_))
            && let Ok(reported) = over.try_recv()
        {
            return reported;
        }
        ended
    }

    /// Has a remote agent lead a trajectory.
    async fn wait_for_remote(
        &self,
        trajectory: &AgentTrajectory,
        url: &str,
        token: &str,
        over: oneshot::Receiver<AgentEnd>,
    ) -> AgentEnd {
        let task = match described(trajectory).await {
            Ok(task) => task,
            Err(refusal) => return AgentEnd::Failed(refusal.message),
        };
        let taken = self.desk.queue.offer(json!({
            "url": url,
            "openai_base_url": format!("{url}/v1"),
            "anthropic_base_url": url,
            "api_key": token,
            "task": task,
        }));
        let config = &self.config;
        match tokio::time::timeout(config.fetch, taken).await {
            Ok(Ok(())) => {}
            _ => {
                return AgentEnd::Failed(format!(
                    "no agent fetched the task within {} ms (agent.fetch_ms)",
                    config.fetch.as_millis()
                ));
            }
        }
        match tokio::time::timeout(config.wall, over).await {
            Ok(Ok(end)) => end,
            _ => AgentEnd::Failed(format!(
                "the agent that fetched the task did not finish it within {} ms (agent.wall_ms)",
                config.wall.as_millis()
            )),
        }
    }
}

#[async_trait]
impl Agent for Agents {
    async fn lead(&self, trajectory: Arc<AgentTrajectory>) -> AgentEnd {
        if let Err(error) = self.server.serve() {
            return AgentEnd::Failed(format!("cannot accept connections: {error}"));
        }
        let (open, over) = match self.desk.seats.open(Arc::clone(&trajectory)) {
            Ok(opened) => opened,
            Err(error) => return AgentEnd::Failed(format!("no random token: {error}")),
        };
        let url = format!("{}/t/{}", self.url(), open.token);
        if self.config.listen.is_some() {
            self.wait_for_remote(&trajectory, &url, &open.token, over)
                .await
        } else {
            self.run_process(&trajectory, &url, &open.token, over).await
        }
    }
}
