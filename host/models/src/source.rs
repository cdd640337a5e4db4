//! The trait of what answers questions, and its implementation for endpoints.

use rlf_endpoint::{Completion, Endpoint, EndpointError, ResponseFormat};
use rlf_plugins::gates::ModelQuestion;
use rlf_sandbox::BoxFuture;

use crate::config::Structured;

/// A language model behind its questions: an endpoint, or a policy in this process.
pub trait Source: Send + Sync {
    /// Maximum number of tokens of an answer. 0 if the model itself sets the limit.
    fn max_tokens(&self) -> u32;

    /// Maximum number of tokens of a question with its answer. 0 if it is not known.
    fn context_tokens(&self) -> u32;

    /// A name of what answers at present, if it is not what answered at first. Answers that were recorded under another
    /// name are not given again. Default: always the same.
    fn version(&self) -> Option<String> {
        None
    }

    /// Answers the question. An answer need not fit the question's schema: whoever asked checks that.
    fn answer<'a>(
        &'a self,
        question: ModelQuestion<'a>,
    ) -> BoxFuture<'a, Result<Completion, SourceError>>;
}

/// The reason why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The question is at fault, such as one that is too long.
    #[error("{0}")]
    Question(String),
    /// The model is at fault, or the way to it.
    #[error("{0}")]
    Unavailable(String),
}

/// An endpoint, and how it is told the schemas of answers.
pub(crate) struct EndpointSource {
    endpoint: Endpoint,
    structured: Structured,
}

impl EndpointSource {
    pub(crate) fn new(endpoint: Endpoint, structured: Structured) -> Self {
        Self {
            endpoint,
            structured,
        }
    }

    async fn complete(&self, question: ModelQuestion<'_>) -> Result<Completion, EndpointError> {
        let ModelQuestion {
            messages,
            sampling,
            schema,
        } = question;
        let format = schema.and_then(|schema| match self.structured {
            Structured::None => None,
            Structured::JsonObject => Some(ResponseFormat::JsonObject),
            Structured::JsonSchema => Some(ResponseFormat::JsonSchema(schema.value())),
        });
        if let Some(format) = format {
            let asked = self.endpoint.complete_in_form(messages, format, sampling);
            asked.await
        } else {
            self.endpoint.complete_with(messages, sampling).await
        }
    }
}

impl Source for EndpointSource {
    fn max_tokens(&self) -> u32 {
        self.endpoint.config().max_tokens
    }

    fn context_tokens(&self) -> u32 {
        0
    }

    fn answer<'a>(
        &'a self,
        question: ModelQuestion<'a>,
    ) -> BoxFuture<'a, Result<Completion, SourceError>> {
        Box::pin(async move {
            let answer = self.complete(question).await;
            answer.map_err(|error| {
                match error {
                    // A content filter, or more tokens than the model takes. The server's words are for the log only.
                    EndpointError::Refused {
                        status: status @ (400 | 413 | 422),
                        ..
                    } => {
                        tracing::warn!(%error, "a model refused a question");
                        let what = format!("the model refused the question (status {status})");
                        SourceError::Question(what)
                    }
                    // The same refusal, as a service says it whose filter reads answers, too.
                    EndpointError::Filtered { .. } => {
                        tracing::warn!(%error, "a model refused a question");
                        let what =
                            "the model refused the question (a content filter removed the answer)";
                        SourceError::Question(what.to_owned())
                    }
                    error => SourceError::Unavailable(error.to_string()),
                }
            })
        })
    }
}
