//! A language model behind an OpenAI-compatible endpoint: messages go out, one answer comes back.
//!
//! Such a model is a part of a run that nobody here controls: it is slow, busy, restarted, and now and then it answers
//! something else. So every question has an end ([`EndpointConfig::timeout`]), is asked again where that may help, and
//! comes to a text or to an error that says whose fault it was. The key is read from the environment or a file, is in no
//! configuration and no log, and goes to the endpoint's own host only: the requests are those of [`rlf_http`], with
//! rules that open this one host.
//!
//! It knows nothing of users, tasks or rewards.
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
mod config;
mod endpoint;
mod error;

pub use answer::Completion;
pub use config::{EndpointConfig, EndpointConfigError};
pub use endpoint::{ChatMessage, ChatRole, Endpoint};
pub use error::EndpointError;
