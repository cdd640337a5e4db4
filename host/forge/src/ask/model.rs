//! The model that is asked.

use async_trait::async_trait;
use rlf_endpoint::{ChatMessage, Completion, Endpoint, EndpointError};
use serde_json::json;

/// A model that answers messages.
#[async_trait]
pub trait Model: Send + Sync {
    /// Everything that an answer depends on besides the question: the model's name, the temperature.
    fn identity(&self) -> String;

    /// Maximum length of an answer, in tokens. 0 if there is no limit.
    fn max_answer_tokens(&self) -> u64;

    /// Answers the messages. The same seed may give the same answer.
    async fn answer(
        &self,
        messages: &[ChatMessage],
        seed: u64,
    ) -> Result<Completion, EndpointError>;
}

#[async_trait]
impl Model for Endpoint {
    /// The model and its settings. The address is left out, because a model may move.
    fn identity(&self) -> String {
        let config = self.config();
        json!({
            "model": config.model,
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
            "extra": config.extra,
        })
        .to_string()
    }

    fn max_answer_tokens(&self) -> u64 {
        u64::from(self.config().max_tokens)
    }

    async fn answer(
        &self,
        messages: &[ChatMessage],
        seed: u64,
    ) -> Result<Completion, EndpointError> {
        match self.complete(messages, Some(seed)).await {
            // An answer that cannot be used: it costs its own question and not the whole stage.
            Err(EndpointError::Filtered { .. }) => Ok(Completion::default()),
            answer => answer,
        }
    }
}
