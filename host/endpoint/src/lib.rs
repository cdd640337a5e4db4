//! A model behind an OpenAI-compatible endpoint: messages and tools go out, and one answer comes back; or texts go out,
//! and a vector for each comes back. Other services of the same host are asked by their path ([`Endpoint::post`]).
//!
//! Nothing here controls such a model. It is slow, busy or restarted, and sometimes answers with something else. So
//! every question has a time limit ([`EndpointConfig::timeout`]) and is retried if that may help. It ends with a text,
//! or with an error that says whose fault it was. The key is read from the environment or a file. It is in no
//! configuration and no log, and is sent only to the endpoint's own host: [`rlf_http`] sends the requests, with rules
//! that open this one host.
//!
//! It must not know users, tasks or rewards.
//!
//! | looking for | module |
//! |---|---|
//! | a question and its retries | `endpoint`, `backoff` |
//! | messages, calls in them, tools on offer | `message`: [`ChatMessage`], [`ChatCall`], [`ChatTool`] |
//! | the form that an answer must have | `message`: [`ResponseFormat`] |
//! | `url`, `model` and the other keys | `config`: [`EndpointConfig`] |
//! | embeddings | `embeddings`: [`Endpoint::embed`], [`Embedded`] |
//! | the model's answer | `answer`: [`Completion`], [`Usage`] |
//! | tokens, time and prices | `spending`: [`Spent`], [`Price`], [`tokens_of`] |
//! | budgets | `budget`: [`Budget`], [`Ledger`] |
//! | errors | `error`: [`EndpointError`] |
//!
//! ```
//! use rlf_endpoint::{ChatMessage, Endpoint, EndpointConfig};
//!
//! let config: EndpointConfig = rlf_config::parse(
//!     r#"
//! url = "http://127.0.0.1:8000/v1"
//! model = "some-model"
//! retries = 2
//! "#,
//!     "example.toml",
//! )?;
//! let endpoint = Endpoint::open(config)?;
//! let question = [ChatMessage::user("What is good?")];
//! let answer = endpoint.complete(&question, Some(7)); // a future
//! # drop(answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod backoff;
mod budget;
mod config;
mod embeddings;
mod endpoint;
mod error;
mod message;
mod spending;

pub use answer::{Completion, Usage};
pub use budget::{Budget, BudgetSpent, Ledger, Reserved};
pub use config::{EndpointConfig, EndpointConfigError};
pub use embeddings::Embedded;
pub use endpoint::{Endpoint, Sampling};
pub use error::EndpointError;
pub use message::{ChatCall, ChatMessage, ChatRole, ChatTool, ResponseFormat};
pub use spending::{Price, Spent, tokens_of};
