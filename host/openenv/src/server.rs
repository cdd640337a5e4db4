//! The environments of a configuration, and the opening of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_environments::error::OpenError;
use rlf_environments::server::{EnvironmentServer, ServerStart};
use rlf_http::HttpClient;
use rlf_sandbox::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use crate::config::OpenEnvConfig;
use crate::connection::{Answer, Connection, Reward};
use crate::convert::{Acting, messages, safe, tools, tools_request};
use crate::description::Describing;
use crate::error::OpenEnvError;
use crate::session::Session;
use crate::token::Token;

/// First pause before a server without room is asked again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Asks all servers that are enabled how a model acts in their environments. Blocks until all have answered, or one cannot
/// be used.
pub fn connect(
    configs: &BTreeMap<String, OpenEnvConfig>,
) -> Result<Vec<Arc<dyn EnvironmentServer>>, OpenEnvError> {
    let enabled = configs.iter().filter(|(_, config)| config.enabled);
    let enabled: Vec<(&String, &OpenEnvConfig)> = enabled.collect();
    if enabled.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error: std::io::Error| OpenEnvError::Thread(error.to_string());
    // The caller may be in an async runtime.
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(failed)?;
            let mut servers: Vec<Arc<dyn EnvironmentServer>> = Vec::new();
            for (name, config) in enabled {
                servers.push(Arc::new(runtime.block_on(Server::ask(name, config))?));
            }
            Ok(servers)
        });
        let ended = "the thread ended early".to_owned();
        asking.join().unwrap_or(Err(OpenEnvError::Thread(ended)))
    })
}

/// The server of one environment.
#[derive(Debug)]
struct Server {
    name: String,
    base: Url,
    token: Option<Arc<Token>>,
    config: Arc<OpenEnvConfig>,
    acting: Arc<Acting>,
    hash: String,
    places: Arc<Semaphore>,
}

impl Server {
    async fn ask(name: &str, config: &OpenEnvConfig) -> Result<Self, OpenEnvError> {
        config.check(name)?;
        let base = config.base(name)?;
        let token = config.token_env.as_ref();
        let token = token.map(|variable| Token::read(name, variable).map(Arc::new));
        let token = token.transpose()?;
        let client = HttpClient::open(&config.rules(&base))
            .map_err(|error| OpenEnvError::config(name, "url", error.to_string()))?;
        let describing = Describing {
            client: &client,
            base: &base,
            token: token.as_deref(),
            limit: config.connect,
        };
        let described = describing.acting(name, &config.tool).await;
        let (acting, hash) = described.map_err(|error| OpenEnvError::Connect {
            environment: name.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            name: name.to_owned(),
            base,
            token,
            places: Arc::new(Semaphore::new(config.max_sessions)),
            config: Arc::new(config.clone()),
            acting: Arc::new(acting),
            hash,
        })
    }

    fn unavailable(&self, reason: String) -> OpenError {
        OpenError::Unavailable {
            environment: self.name.clone(),
            reason,
        }
    }

    async fn start(&self, setup: &Value, seed: u64) -> Result<ServerStart, OpenError> {
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = Arc::new(place.map_err(|error| self.unavailable(error.to_string()))?);
        let mut options = match setup {
            Value::Null => Map::new(),
            Value::Object(setup) => setup.clone(),
            _ => {
                return Err(OpenError::Refused {
                    environment: self.name.clone(),
                    reason: "its `setup` must be an object".to_owned(),
                });
            }
        };
        // Libraries such as numpy take 32 bits.
        let seed = seed & u64::from(u32::MAX);
        options.entry("seed").or_insert_with(|| Value::from(seed));
        let reset = json!({"type": "reset", "data": options});
        let deadline = Instant::now() + self.config.connect;
        let mut pause = FIRST_PAUSE;
        let (mut connection, observed) = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let opening = Connection::open(&self.base, self.token.clone(), Arc::clone(&place));
            let opened = timeout(left, opening).await.map_err(|_| {
                self.unavailable(format!(
                    "{} did not answer within connect_ms = {}",
                    self.base,
                    self.config.connect.as_millis()
                ))
            })?;
            let mut connection = opened.map_err(|why| self.unavailable(why.to_string()))?;
            let left = deadline.saturating_duration_since(Instant::now());
            match connection.ask(&reset, left).await {
                Ok(Answer::Observation(observed)) => break (connection, observed),
                Ok(Answer::Error(refusal)) if refusal.is_capacity_reached() => {
                    if Instant::now() + pause >= deadline {
                        let why = "it has had no room within connect_ms; lower max_sessions, or raise that of the server";
                        return Err(self.unavailable(why.to_owned()));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Ok(Answer::Error(refusal)) => {
                    return Err(OpenError::Refused {
                        environment: self.name.clone(),
                        reason: safe(&refusal.reason().chars().take(500).collect::<String>()),
                    });
                }
                Ok(_) => {
                    let why = "it answered a reset with something else".to_owned();
                    return Err(self.unavailable(why));
                }
                Err(why) => return Err(self.unavailable(why.to_string())),
            }
        };
        if observed.done {
            return Err(OpenError::Refused {
                environment: self.name.clone(),
                reason: "the episode was over at its reset".to_owned(),
            });
        }
        let tools = match &*self.acting {
            Acting::Action(tool) => vec![(**tool).clone()],
            Acting::Tools => {
                let message = json!({"type": "mcp", "data": tools_request()});
                let broke = |reason: String| OpenError::Broke {
                    environment: self.name.clone(),
                    reason,
                };
                match connection.ask(&message, self.config.deadline).await {
                    Ok(Answer::Mcp(response)) => {
                        tools(&response).map_err(|error| broke(error.to_string()))?
                    }
                    Ok(_) => return Err(broke("it does not list its tools over MCP".to_owned())),
                    Err(why) => return Err(self.unavailable(why.to_string())),
                }
            }
        };
        let session = Session::new(
            Arc::clone(&self.config),
            Arc::clone(&self.acting),
            connection,
            observed.reward.map(Reward::value),
        );
        Ok(ServerStart {
            session: Box::new(session),
            messages: messages(&observed.observation),
            tools,
        })
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
        Box::pin(self.start(setup, seed))
    }
}
