//! All environments of a registry and of servers, and the opening of sessions in them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rlf_dialogue::task::Task;
use rlf_plugins::counters::{CallCounters, CallCounts, Unhealthy};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::registry::Registry;
use rlf_plugins::seed;
use rlf_sandbox::{BoxFuture, Sandbox};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{OfferError, OpenError, SessionError};
use crate::plugin_session::PluginSession;
use crate::pool::{SessionCounts, SessionPool};
use crate::served_session::ServedSession;
use crate::server::EnvironmentServer;
use crate::session::EnvironmentSession;
use crate::slot::Slot;

/// `[environments]` of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentConfig {
    /// Time that a session may wait for its trajectory before a snapshot replaces its instance. Key `idle_ms`, default
    /// 60,000 ms. `sandbox.sessions` limits how many sessions have an instance at once.
    #[serde(rename = "idle_ms", with = "rlf_config::milliseconds")]
    pub idle: Duration,
}

impl Default for EnvironmentConfig {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(1),
        }
    }
}

/// All environments of a registry and of servers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Environments {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    by_name: BTreeMap<String, Environment>,
    served: BTreeMap<String, ServedEnvironment>,
    missing: BTreeMap<String, String>,
    pool: Arc<SessionPool>,
}

/// The environment of a server.
#[derive(Debug)]
struct ServedEnvironment {
    server: Arc<dyn EnvironmentServer>,
    counters: Arc<CallCounters>,
}

/// The environment of a plugin.
#[derive(Debug)]
struct Environment {
    plugin: Arc<Plugin>,
    counters: Arc<CallCounters>,
}

impl Environments {
    /// The environments of a registry, with the sandbox in which its plugins were loaded.
    pub fn new(registry: &Registry, sandbox: &Sandbox, config: &EnvironmentConfig) -> Self {
        Self::with_servers(registry, sandbox, config, Vec::new())
    }

    /// The environments of a registry and of servers. A server's environment hides a plugin's of the same name.
    pub fn with_servers(
        registry: &Registry,
        sandbox: &Sandbox,
        config: &EnvironmentConfig,
        servers: Vec<Arc<dyn EnvironmentServer>>,
    ) -> Self {
        let served = servers
            .into_iter()
            .map(|server: Arc<dyn EnvironmentServer>| {
                let name = server.name().to_owned();
                let counters = Arc::default();
                (name, ServedEnvironment { server, counters })
            });
        let served: BTreeMap<String, ServedEnvironment> = served.collect();
        let environments = registry
            .plugins()
            .iter()
            .filter(|plugin| plugin.is_environment() && !served.contains_key(plugin.name()));
        let by_name = environments
            .map(|plugin| {
                let environment = Environment {
                    plugin: Arc::clone(plugin),
                    counters: Arc::default(),
                };
                (plugin.name().to_owned(), environment)
            })
            .collect();
        let missing = registry
            .problems()
            .iter()
            .filter_map(|problem| Some((problem.plugin.clone()?, problem.to_string())))
            .collect();
        let idle = config.idle.max(Duration::from_millis(1));
        Self {
            inner: Arc::new(Inner {
                served,
                by_name,
                missing,
                pool: SessionPool::new(sandbox.pools().sessions, idle),
            }),
        }
    }

    /// The names of the environments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let served = self.inner.served.keys();
        served.chain(self.inner.by_name.keys()).map(String::as_str)
    }

    /// The environments of servers: their names, and hashes of what the servers said of themselves.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &str)> {
        let served = self.inner.served.values();
        served.map(|environment| (environment.server.name(), environment.server.hash()))
    }

    /// The plugin that is the environment `name`. There is none for an environment of a server.
    pub fn plugin(&self, name: &str) -> Result<&Arc<Plugin>, OpenError> {
        self.find(name).map(|environment| &environment.plugin)
    }

    /// The seed of a task's environment. It is the same in every run and for every sample, so that the task's gold
    /// calls lead to the same state.
    pub fn seed(task: &Task) -> u64 {
        seed::derive(0, "environment", &[&task.source, &task.id])
    }

    /// Opens a task in the environment `name`. `label` names the session in logs. `seed` determines all randomness in
    /// it.
    pub fn open<'a>(
        &'a self,
        name: &'a str,
        label: &'a str,
        setup: &'a Value,
        seed: u64,
    ) -> BoxFuture<'a, Result<EnvironmentSession, OpenError>> {
        Box::pin(async move {
            if let Some(ServedEnvironment { server, counters }) = self.inner.served.get(name) {
                let start = server.open(setup, seed).await?;
                let session = ServedSession::new(Arc::clone(server), start, Arc::clone(counters));
                return Ok(session.into());
            }
            let environment = self.find(name)?;
            let broke = |reason: String| OpenError::Broke {
                environment: name.to_owned(),
                reason,
            };
            let setup = if setup.is_null() {
                "{}".to_owned()
            } else {
                setup.to_string()
            };
            let opened = Slot::open(
                environment.plugin.latest(),
                Arc::clone(&self.inner.pool),
                label.to_owned(),
                setup,
                seed,
            )
            .await;
            if let Err(error @ SessionError::Refused(_)) = &opened {
                return Err(OpenError::Refused {
                    environment: name.to_owned(),
                    reason: error.to_string(),
                });
            }
            let opened = self.served(name, opened)?;
            let pool = Arc::clone(&self.inner.pool);
            let counters = Arc::clone(&environment.counters);
            PluginSession::new(opened, pool, counters, seed)
                .map(EnvironmentSession::from)
                .map_err(|error| match error {
                    OfferError::NoServers => OpenError::Refused {
                        environment: name.to_owned(),
                        reason: error.to_string(),
                    },
                    _ => broke(error.to_string()),
                })
        })
    }

    /// Counts an answer that the machine did not serve, and turns its error into one of opening.
    pub(crate) fn served<T>(
        &self,
        name: &str,
        answer: Result<T, SessionError>,
    ) -> Result<T, OpenError> {
        self.inner.pool.note(&answer);
        answer.map_err(|error| OpenError::stopped(name, &error))
    }

    /// Counts of the pool of sessions so far.
    pub fn sessions(&self) -> SessionCounts {
        self.inner.pool.counts()
    }

    /// Number of requests so far for which the machine had no room or no time, after all retries. How they ended says
    /// nothing about the environment.
    pub fn unserved(&self) -> u64 {
        self.inner.pool.unserved()
    }

    /// Counts of calls so far, by environment.
    pub fn counts(&self) -> BTreeMap<String, CallCounts> {
        let of_plugins = (self.inner.by_name.iter())
            .map(|(name, environment)| (name.clone(), environment.counters.snapshot()));
        let of_servers = (self.inner.served.iter())
            .map(|(name, environment)| (name.clone(), environment.counters.snapshot()));
        of_plugins.chain(of_servers).collect()
    }

    /// Fails if an environment has trapped in more than `max_trap_share` of its calls since `earlier`.
    pub fn check_health(
        &self,
        earlier: &BTreeMap<String, CallCounts>,
        max_trap_share: f64,
    ) -> Result<(), Unhealthy> {
        for (name, environment) in &self.inner.by_name {
            let before = earlier.get(name).copied().unwrap_or_default();
            let counts = environment.counters.snapshot().since(&before);
            counts.check_health(name, max_trap_share, environment.plugin.last_trap())?;
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<&Environment, OpenError> {
        self.inner.by_name.get(name).ok_or_else(|| {
            let hint = if let Some(why) = self.inner.missing.get(name) {
                format!(", because it was not loaded: {why}")
            } else if let Some(near) = rlf_config::nearest(name, self.names()) {
                format!("; did you mean `{near}`?")
            } else {
                let names: Vec<&str> = self.names().collect();
                match names.as_slice() {
                    [] => format!(
                        "; no {} is loaded; a configuration makes one of Python files under [plugins.{name}], with \
                         `plugin = \"python\"` and `environment.servers`",
                        PluginKind::Environment.as_str()
                    ),
                    names => format!("; there are: {}", names.join(", ")),
                }
            };
            OpenError::NoSuchEnvironment {
                name: name.to_owned(),
                hint,
            }
        })
    }
}
