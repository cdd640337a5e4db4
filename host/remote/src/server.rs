//! The environments of a configuration, and the opening of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_environments::error::OpenError;
use rlf_environments::server::{EnvironmentServer, ServerStart};
use rlf_sandbox::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::config::RemoteConfig;
use crate::error::{NotBegun, RemoteError};
use crate::protocol::Protocol;
use crate::site::Site;
use crate::{openenv, ors};

/// Asks all servers that are enabled how a model acts in their environments. Blocks until all have answered, or one cannot
/// be used.
pub fn connect<'a>(
    configs: impl IntoIterator<Item = (Protocol, &'a BTreeMap<String, RemoteConfig>)>,
) -> Result<Vec<Arc<dyn EnvironmentServer>>, RemoteError> {
    let enabled: Vec<(Protocol, &String, &RemoteConfig)> = configs
        .into_iter()
        .flat_map(|(protocol, configs)| {
            configs.iter().map(move |(name, one)| (protocol, name, one))
        })
        .filter(|(_, _, config)| config.enabled)
        .collect();
    if enabled.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error: std::io::Error| RemoteError::Thread(error.to_string());
    // The caller may be in an async runtime.
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(failed)?;
            let mut servers: Vec<Arc<dyn EnvironmentServer>> = Vec::new();
            for (protocol, name, config) in enabled {
                let server = runtime.block_on(Server::ask(protocol, name, config))?;
                servers.push(Arc::new(server));
            }
            Ok(servers)
        });
        let ended = "the thread ended early".to_owned();
        asking.join().unwrap_or(Err(RemoteError::Thread(ended)))
    })
}

/// The server of one environment.
#[derive(Debug)]
struct Server {
    name: String,
    config: Arc<RemoteConfig>,
    environment: Environment,
    hash: String,
    permits: Arc<Semaphore>,
}

/// An environment, in one of the protocols.
#[derive(Debug)]
enum Environment {
    OpenEnv(openenv::Environment),
    Ors(ors::Environment),
}

impl Server {
    async fn ask(
        protocol: Protocol,
        name: &str,
        config: &RemoteConfig,
    ) -> Result<Self, RemoteError> {
        config.check(protocol, name)?;
        let config = Arc::new(config.clone());
        let site = Site::open(protocol, name, &config)?;
        let unusable = |reason| RemoteError::Connect {
            protocol,
            environment: name.to_owned(),
            reason,
        };
        let (environment, hash) = match protocol {
            Protocol::OpenEnv => {
                let asked = openenv::Environment::ask(name, &config, site).await;
                let (asked, hash) = asked.map_err(|error| unusable(error.to_string()))?;
                (Environment::OpenEnv(asked), hash)
            }
            Protocol::Ors => {
                let asked = ors::Environment::ask(&config, site).await;
                let (asked, hash) = asked.map_err(|error| unusable(error.to_string()))?;
                (Environment::Ors(asked), hash)
            }
        };
        Ok(Self {
            name: name.to_owned(),
            permits: Arc::new(Semaphore::new(config.max_sessions)),
            config,
            environment,
            hash,
        })
    }

    async fn start(&self, setup: &Value, seed: u64) -> Result<ServerStart, NotBegun> {
        let setup = match setup {
            Value::Null => Map::new(),
            Value::Object(setup) => setup.clone(),
            _ => {
                return Err(NotBegun::Refused(
                    "its `setup` must be an object".to_owned(),
                ));
            }
        };
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| NotBegun::Unavailable(error.to_string()))?;
        match &self.environment {
            Environment::OpenEnv(environment) => environment.begin(setup, seed, permit).await,
            // The protocol has no seeds.
            Environment::Ors(environment) => Ok(environment.begin(setup, permit).await?),
        }
    }
}

impl EnvironmentServer for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn hash(&self) -> &str {
        &self.hash
    }

    fn arguments_bytes(&self) -> u64 {
        self.config.arguments_bytes
    }

    fn open<'a>(
        &'a self,
        setup: &'a Value,
        seed: u64,
    ) -> BoxFuture<'a, Result<ServerStart, OpenError>> {
        Box::pin(async move {
            let started = self.start(setup, seed).await;
            started.map_err(|why| why.of(&self.name))
        })
    }
}
