//! Starting agents that ask the policy over HTTP, and their trajectories.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rlf_rollout::agent::{Agent, AgentEnd, AgentTrajectory};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::config::{AgentConfig, InvalidAgent};
use crate::open_trajectories::OpenTrajectories;
use crate::process;
use crate::remote::Queue;
use crate::server::{CannotListen, Server};
use crate::task::described;
use crate::trajectory_service::{TrajectoryService, router};

/// Time after which a run says that no agent fetches its tasks.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reason why agents cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] InvalidAgent),
    /// The service cannot listen.
    #[error("agent: {0}")]
    Listen(#[from] CannotListen),
}

/// Leads trajectories by the agent of a configuration with `command` or `listen`, and serves the policy to it.
pub struct Agents {
    config: AgentConfig,
    service: Arc<TrajectoryService>,
    server: Server,
    /// Places for processes.
    places: Semaphore,
    /// True if a warning has said that no agent fetches tasks.
    is_warned: AtomicBool,
    supervisor: Option<PathBuf>,
}

impl Agents {
    /// Checks the configuration, and listens. Connections are accepted from the first trajectory on. `temperature` is the
    /// one at which training samples. `supervisor` is the program that runs
    /// [`supervise`](crate::supervisor::supervise). Without it, and on systems other than Linux, only an agent's process
    /// group is killed at its end.
    pub fn new(
        config: AgentConfig,
        temperature: f32,
        supervisor: Option<PathBuf>,
    ) -> Result<Self, AgentsError> {
        config.check()?;
        let service = Arc::new(TrajectoryService {
            trajectories: OpenTrajectories::new(temperature),
            tasks: Queue::default(),
            token: config.token()?,
        });
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let router = router(Arc::clone(&service), config.listen.is_some());
        let server = Server::bind(config.listen.unwrap_or(any), router)?;
        Ok(Self {
            places: Semaphore::new(config.max_processes),
            supervisor: supervisor.filter(|_| cfg!(target_os = "linux")),
            is_warned: AtomicBool::new(false),
            config,
            service,
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

    /// Warns, once, that no agent fetches tasks.
    fn warn_of_silence(&self) {
        if !self.is_warned.swap(true, Ordering::Relaxed) {
            let (url, wait) = (self.url(), self.config.fetch.as_secs());
            tracing::warn!(
                "no agent has fetched a task within {} s; start one that asks {url}/agents/next (docs/agents.md). A task \
                 waits {wait} s (agent.fetch_ms), then its trajectory is excluded",
                PATIENCE.as_secs()
            );
        }
    }

    /// Leads a trajectory by a process of its own.
    async fn run_process(
        &self,
        task: &Value,
        url: &str,
        token: &str,
        mut over: oneshot::Receiver<AgentEnd>,
    ) -> AgentEnd {
        let variables = [
            ("OPENAI_BASE_URL", format!("{url}/v1")),
            ("OPENAI_API_KEY", token.to_owned()),
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", token.to_owned()),
            ("RLF_TRAJECTORY_URL", url.to_owned()),
            ("RLF_MCP_URL", format!("{url}/mcp")),
        ];
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        let supervisor = self.supervisor.as_deref();
        let ended = process::run(&self.config, supervisor, &variables, task).await;
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
        task: Value,
        url: &str,
        token: &str,
        over: oneshot::Receiver<AgentEnd>,
    ) -> AgentEnd {
        let taken = self.service.tasks.offer(json!({
            "url": url,
            "openai_base_url": format!("{url}/v1"),
            "anthropic_base_url": url,
            "mcp_url": format!("{url}/mcp"),
            "api_key": token,
            "task": task,
        }));
        let config = &self.config;
        let mut taken = std::pin::pin!(taken);
        let patience = PATIENCE.min(config.fetch);
        let taken = match tokio::time::timeout(patience, &mut taken).await {
            Err(_) if patience < config.fetch => {
                self.warn_of_silence();
                tokio::time::timeout(config.fetch.saturating_sub(patience), taken).await
            }
            taken => taken,
        };
        match taken {
            // Others that wait need no warning: there is an agent.
            Ok(Ok(())) => self.is_warned.store(true, Ordering::Relaxed),
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
        let (lease, over) = match self.service.trajectories.open(trajectory) {
            Ok(opened) => opened,
            Err(error) => return AgentEnd::Failed(format!("no random token: {error}")),
        };
        let task = match described(&lease.open.trajectory).await {
            Ok(task) => task,
            Err(error) => return AgentEnd::Failed(error.to_string()),
        };
        let url = format!("{}/t/{}", self.url(), lease.token);
        if self.config.listen.is_some() {
            self.wait_for_remote(task, &url, &lease.token, over).await
        } else {
            self.run_process(&task, &url, &lease.token, over).await
        }
    }
}
