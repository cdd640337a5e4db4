//! The connection to an engine: turns and weights.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rlf_endpoint::{Endpoint, EndpointConfigError, EndpointError};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::config::{EngineKind, ExternalEngineConfig};
use super::protocol::{self, Turn};
use super::weights::{SavedWeights, UpdateError, confirmed, run_command};
use crate::generate::{GenerateError, Generated};

/// An engine beside this program. It has one policy's weights at a time.
#[derive(Debug)]
pub struct ExternalEngine {
    config: ExternalEngineConfig,
    endpoint: Endpoint,
    adapters: Mutex<Adapters>,
}

/// The adapters that were loaded. Each has another name, because engines keep what they computed by the name.
#[derive(Debug)]
struct Adapters {
    /// Milliseconds since 1970 when the engine was opened. An engine that served an earlier run may still have its
    /// adapters.
    opened: u128,
    /// Number of names so far.
    count: u64,
    /// The one that is loaded.
    loaded: Option<String>,
}

impl Adapters {
    /// A name that no adapter has had.
    fn next_name(&mut self) -> String {
        self.count += 1;
        format!("rlf-{}-{}", self.opened, self.count)
    }
}

/// True if the engine answered that it does not do what it was told.
fn is_refusal(error: &UpdateError) -> bool {
    matches!(
        error,
        UpdateError::Refused(_) | UpdateError::Endpoint(EndpointError::Refused { .. })
    )
}

impl ExternalEngine {
    /// Checks the configuration and reads the key. Nothing is sent. `lora` says whether the run trains adapters.
    pub fn open(config: ExternalEngineConfig, lora: bool) -> Result<Self, EndpointConfigError> {
        config.check(lora)?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let adapters = Adapters {
            opened: since_1970.map_or(0, |time: Duration| time.as_millis()),
            count: 0,
            loaded: None,
        };
        Ok(Self {
            endpoint: Endpoint::open(config.endpoint())?,
            config,
            adapters: Mutex::new(adapters),
        })
    }

    /// True if seeds are sent.
    pub(super) fn sends_seeds(&self) -> bool {
        self.config.send_seed
    }

    /// The model by the engine's name for it.
    pub(super) fn model(&self) -> &str {
        self.endpoint.model()
    }

    /// Has the engine sample a turn. `draw` spreads the retries of different turns.
    pub(super) async fn sample(
        &self,
        turn: &Turn<'_>,
        draw: u64,
    ) -> Result<Generated, GenerateError> {
        let kind = self.config.kind;
        let body = protocol::body(kind, turn);
        let answered = self.endpoint.post(protocol::path(kind), &body, draw).await;
        let answer = answered.map_err(|error| match error {
            error if error.meets_every_question() => GenerateError::Stopped(format!(
                "{error}; correct [external_engine], or start the engine as docs/external-engines.md says"
            )),
            error => GenerateError::Unavailable(error.to_string()),
        })?;
        protocol::read(kind, &answer, turn).map_err(|error| {
            let kind = kind.as_str();
            GenerateError::Unavailable(format!("the answer of {kind} is no turn: {error}"))
        })
    }

    /// Has the engine load weights, which replace those before. No turn may be under way. Returns the name of the
    /// adapter, if the weights are one.
    pub(super) async fn load(&self, weights: &SavedWeights) -> Result<Option<String>, UpdateError> {
        match weights {
            SavedWeights::Adapter(folder) => self.load_adapter(folder).await.map(Some),
            SavedWeights::Model(folder) => {
                let command = &self.config.update_command;
                if command.is_empty() {
                    self.load_model(folder).await?;
                } else {
                    run_command(command, folder, self.config.timeout).await?;
                }
                Ok(None)
            }
        }
    }

    async fn load_model(&self, folder: &Path) -> Result<(), UpdateError> {
        let folder = folder.display().to_string();
        match self.config.kind {
            EngineKind::Sglang => {
                let body = json!({ "model_path": folder });
                self.tell("/update_weights_from_disk", &body).await
            }
            EngineKind::Vllm => {
                let kwargs = json!({ "weights_path": folder });
                let body = json!({ "method": "reload_weights", "kwargs": kwargs });
                self.tell("/collective_rpc", &body).await?;
                // Keys and values of the weights before must not be used again.
                self.tell("/reset_prefix_cache", &json!({})).await
            }
        }
    }

    async fn load_adapter(&self, folder: &Path) -> Result<String, UpdateError> {
        let load = match self.config.kind {
            EngineKind::Sglang => "/load_lora_adapter",
            EngineKind::Vllm => "/v1/load_lora_adapter",
        };
        let folder = folder.display().to_string();
        let mut adapters = self.adapters.lock().await;
        if let Some(before) = adapters.loaded.take() {
            self.unload(&before).await?;
        }
        let mut name = adapters.next_name();
        let body = |name: &str| json!({ "lora_name": name, "lora_path": folder });
        match self.tell(load, &body(&name)).await {
            Err(error) if is_refusal(&error) => {
                // The engine may have it from an attempt whose answer was lost, and then refuses the name.
                self.unload(&name).await?;
                name = adapters.next_name();
                self.tell(load, &body(&name)).await?;
            }
            told => told?,
        }
        adapters.loaded = Some(name.clone());
        Ok(name)
    }

    /// Has the engine forget an adapter. An engine that was started again does not have it and refuses.
    async fn unload(&self, name: &str) -> Result<(), UpdateError> {
        let unload = match self.config.kind {
            EngineKind::Sglang => "/unload_lora_adapter",
            EngineKind::Vllm => "/v1/unload_lora_adapter",
        };
        match self.tell(unload, &json!({ "lora_name": name })).await {
            Err(error) if !is_refusal(&error) => Err(error),
            _ => Ok(()),
        }
    }

    async fn tell(&self, path: &str, body: &Value) -> Result<(), UpdateError> {
        confirmed(&self.endpoint.post(path, body, 0).await?)
    }
}
