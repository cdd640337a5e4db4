//! Questions to an endpoint, with retries.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rlf_http::{FetchError, HttpClient, Request, Response, Value as Header};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::answer::{AnswerError, Completion, beginning, read};
use crate::backoff::{self, LastWarning};
use crate::config::{EndpointConfig, EndpointConfigError, KEY};
use crate::error::EndpointError;
use crate::message::{ChatMessage, ChatTool, ResponseFormat};

/// The settings of one question. Where there is none, the configuration's setting counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// Maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, from 0 to 2.
    pub temperature: Option<f64>,
    /// The seed. An endpoint that supports seeds gives the same answer to the same seed.
    pub seed: Option<u64>,
}

/// Shortest wait that is worth a line in the log.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// An endpoint for questions. Cheap to clone; clones share the count of `max_concurrent`.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: EndpointConfig,
    target: String,
    pub(crate) embeddings_target: String,
    pub(crate) host: String,
    client: HttpClient,
    permits: Semaphore,
    last_warning: LastWarning,
}

/// Shows host and model, never the key.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.inner.host)
            .field("model", &self.inner.config.model)
            .finish_non_exhaustive()
    }
}

/// An attempt without an answer.
struct Failure {
    error: EndpointError,
    retry: Retry,
}

/// The decision to try again, or not.
enum Retry {
    No,
    /// Try again after a wait, which is at least this long if the endpoint asked for one.
    After(Option<Duration>),
}

impl Failure {
    fn last(error: EndpointError) -> Self {
        let retry = Retry::No;
        Self { error, retry }
    }
}

impl Endpoint {
    /// Checks the configuration and reads the key. Nothing is sent.
    pub fn open(config: EndpointConfig) -> Result<Self, EndpointConfigError> {
        config.check()?;
        let target = config.target()?;
        let client = HttpClient::open(&config.rules(&target)).map_err(|error| {
            let key = match &error {
                rlf_http::HttpError::Secret { .. } if config.key_env.is_some() => "key_env",
                rlf_http::HttpError::Secret { .. } => "key_file",
                _ => "url",
            };
            let reason = error.to_string();
            EndpointConfigError { key, reason }
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                host: target.host_str().unwrap_or_default().to_owned(),
                target: target.into(),
                embeddings_target: config.embeddings_target()?.into(),
                client,
                permits: Semaphore::new(config.max_concurrent as usize),
                last_warning: LastWarning::default(),
                config,
            }),
        })
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.inner.config.model
    }

    /// The configuration that it was opened with.
    pub fn config(&self) -> &EndpointConfig {
        &self.inner.config
    }

    /// Asks for the model's answer to `messages`, with the configuration's settings. An endpoint that supports `seed`
    /// gives the same answer to the same seed.
    pub fn complete<'a>(
        &'a self,
        messages: &'a [ChatMessage],
        seed: Option<u64>,
    ) -> BoxFuture<'a, Result<Completion, EndpointError>> {
        let sampling = Sampling {
            seed,
            ..Sampling::default()
        };
        self.complete_with(messages, sampling)
    }

    /// Asks for the model's answer to `messages`, with these settings.
    pub fn complete_with<'a>(
        &'a self,
        messages: &'a [ChatMessage],
        sampling: Sampling,
    ) -> BoxFuture<'a, Result<Completion, EndpointError>> {
        self.complete_with_tools(messages, &[], sampling)
    }

    /// Asks for the model's answer to `messages`, with these settings and with these tools on offer.
    pub fn complete_with_tools<'a>(
        &'a self,
        messages: &'a [ChatMessage],
        tools: &'a [ChatTool],
        sampling: Sampling,
    ) -> BoxFuture<'a, Result<Completion, EndpointError>> {
        let draw = sampling.seed.unwrap_or_default();
        self.send(self.inner.body(messages, tools, sampling), draw)
    }

    /// Asks for an answer to `messages` that has this form, with these settings. A server may ignore the form, so whoever
    /// needs it checks the answer.
    pub fn complete_in_form(
        &self,
        messages: &[ChatMessage],
        format: ResponseFormat<'_>,
        sampling: Sampling,
    ) -> BoxFuture<'_, Result<Completion, EndpointError>> {
        let mut body = self.inner.body(messages, &[], sampling);
        body.insert("response_format".into(), format.wire());
        let draw = sampling.seed.unwrap_or_default();
        self.send(body, draw)
    }

    /// Sends the body of a question.
    fn send(
        &self,
        body: Map<String, Value>,
        draw: u64,
    ) -> BoxFuture<'_, Result<Completion, EndpointError>> {
        let body = Value::Object(body).to_string().into_bytes();
        Box::pin(async move {
            let inner = &*self.inner;
            let read = |body: &[u8]| {
                let host = || inner.host.clone();
                read(body).map_err(|error| match error {
                    AnswerError::Filtered => EndpointError::Filtered { host: host() },
                    error => EndpointError::NoCompletion {
                        host: host(),
                        reason: error.to_string(),
                    },
                })
            };
            inner.post(&inner.target, &body, draw, read).await
        })
    }

    /// Sends JSON to another service of the same host, with the same limits and retries. `path`, such as `/generate`,
    /// is added to the base URL. `draw` spreads the retries of different requests. Returns the body of a successful
    /// answer.
    pub fn post<'a>(
        &'a self,
        path: &str,
        body: &Value,
        draw: u64,
    ) -> BoxFuture<'a, Result<Vec<u8>, EndpointError>> {
        let target = format!("{}{path}", self.inner.config.base());
        let body = body.to_string().into_bytes();
        Box::pin(async move {
            let read = |body: &[u8]| Ok(body.to_vec());
            self.inner.post(&target, &body, draw, read).await
        })
    }
}

impl Inner {
    fn body(
        &self,
        messages: &[ChatMessage],
        tools: &[ChatTool],
        sampling: Sampling,
    ) -> Map<String, Value> {
        let config = &self.config;
        let temperature = sampling.temperature.unwrap_or(config.temperature);
        let max_tokens = sampling.max_tokens.unwrap_or(config.max_tokens);
        let mut body: Map<String, Value> = config.extra.clone();
        body.insert("model".into(), config.model.as_str().into());
        body.insert(
            "messages".into(),
            messages.iter().map(ChatMessage::wire).collect(),
        );
        if !tools.is_empty() {
            body.insert("tools".into(), tools.iter().map(ChatTool::wire).collect());
        }
        body.insert("temperature".into(), temperature.into());
        if max_tokens > 0 {
            body.insert("max_tokens".into(), max_tokens.into());
        }
        if let Some(seed) = sampling.seed.filter(|_| config.send_seed) {
            // Servers accept 32 or 64 bits, signed or unsigned. This value fits all of them.
            body.insert("seed".into(), (seed & 0x7fff_ffff).into());
        }
        body
    }

    /// Sends a body until `read` has an answer, or a retry would not help. `draw` spreads the retries of different clients.
    pub(crate) async fn post<T>(
        &self,
        target: &str,
        body: &[u8],
        draw: u64,
        read: impl Fn(&[u8]) -> Result<T, EndpointError>,
    ) -> Result<T, EndpointError> {
        let mut attempts = 1;
        loop {
            let Failure { error, retry } = match self.attempt(target, body, attempts).await {
                Ok(body) => return read(&body),
                Err(failure) => failure,
            };
            let Retry::After(asked) = retry else {
                return Err(error);
            };
            if attempts > self.config.retries {
                return Err(error);
            }
            let wait = backoff::wait(self.config.backoff, attempts, asked, draw);
            let wait_ms = wait.as_millis();
            if wait >= LONG_WAIT && self.last_warning.is_due(Instant::now()) {
                tracing::warn!(
                    model = self.config.model,
                    wait_ms,
                    %error,
                    "an endpoint gave no answer and is asked again after a wait (said at most once a minute)"
                );
            } else {
                tracing::debug!(%error, wait_ms, "asking again");
            }
            tokio::time::sleep(wait).await;
            attempts += 1;
        }
    }

    /// Makes one attempt. Returns the body of a successful answer.
    async fn attempt(&self, target: &str, body: &[u8], attempts: u32) -> Result<Vec<u8>, Failure> {
        let host = self.host.clone();
        let fetched = {
            // The semaphore is never closed, so a permit always arrives in the end.
            let _permit = self.permits.acquire().await;
            // `timeout` must end first, so the deadline is later. It starts when the permit is there.
            let deadline = Instant::now() + self.config.timeout + Duration::from_secs(1);
            let request = self.request(target, body);
            self.client.call(deadline).fetch(request).await
        };
        let response = match fetched {
            Ok(response) => response,
            Err(FetchError::Unavailable(reason)) => {
                let error = EndpointError::Unreachable {
                    host,
                    attempts,
                    reason,
                };
                return Err(Failure {
                    error,
                    retry: Retry::After(None),
                });
            }
            Err(FetchError::Timeout { .. }) => {
                let after = self.config.timeout;
                return Err(Failure::last(EndpointError::TimedOut { host, after }));
            }
            Err(error @ FetchError::Exhausted { .. }) => {
                let reason = error.to_string();
                return Err(Failure::last(EndpointError::TooLarge { host, reason }));
            }
            Err(error @ (FetchError::Denied(_) | FetchError::Invalid(_))) => {
                let reason = error.to_string();
                return Err(Failure::last(EndpointError::Unsendable { host, reason }));
            }
        };
        let (status, text) = (response.status, beginning(&response.body));
        match status {
            200..=299 => Ok(response.body),
            429 | 500..=599 => Err(Failure {
                error: EndpointError::Failed {
                    host,
                    attempts,
                    status,
                    text,
                },
                retry: Retry::After(retry_after(&response)),
            }),
            _ => Err(Failure::last(EndpointError::Refused { host, status, text })),
        }
    }

    fn request(&self, target: &str, body: &[u8]) -> Request {
        let mut headers = vec![(
            "content-type".to_owned(),
            Header::Text("application/json".to_owned()),
        )];
        if self.config.key_env.is_some() || self.config.key_file.is_some() {
            headers.push(("authorization".to_owned(), Header::Secret(KEY.to_owned())));
        }
        Request {
            method: "POST".to_owned(),
            url: target.to_owned(),
            headers,
            body: body.to_vec(),
        }
    }
}

/// The wait that an endpoint asks for, if it is given in seconds.
fn retry_after(response: &Response) -> Option<Duration> {
    let header = |(name, value): &(String, String)| {
        (name == "retry-after").then(|| value.trim().parse::<u32>().ok())?
    };
    let seconds = response.headers.iter().find_map(header)?;
    Some(Duration::from_secs(u64::from(seconds)))
}
