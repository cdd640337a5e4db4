//! The policy as a model that plugins are granted. It answers only the plugin that leads a trajectory. There, `rlf-agents`
//! puts another model in the place of this one.

use rlf_endpoint::{Completion, Sampling};
use rlf_plugins::bindings::types::Error;
use rlf_plugins::gates::{ChatAnswer, GateAnswer, LanguageModel, ModelQuestion, Nesting};
use rlf_sandbox::BoxFuture;

/// Name of the policy among the models of a plugin that leads trajectories.
pub const POLICY: &str = "policy";

/// The model [`POLICY`] outside of a trajectory. It refuses every question.
#[derive(Debug, Clone, Copy)]
pub struct NoPolicy;

fn refusal() -> Error {
    Error::Denied(format!(
        "`{POLICY}` is the policy of a run; it answers only the plugin that `agent.plugin` names, and only while that plugin \
         leads a trajectory"
    ))
}

impl LanguageModel for NoPolicy {
    fn max_tokens(&self) -> u32 {
        0
    }

    fn context_tokens(&self) -> u32 {
        0
    }

    fn ask<'a>(
        &'a self,
        _question: ModelQuestion<'a>,
        _asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<Completion>> {
        Box::pin(async { Ok(Err(refusal())) })
    }

    fn chat<'a>(
        &'a self,
        _request: &'a str,
        _sampling: Sampling,
        _asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<ChatAnswer>> {
        Box::pin(async { Ok(Err(refusal())) })
    }
}
