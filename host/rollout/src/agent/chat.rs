//! Turns in conversations that belong to no trajectory, as a deployment has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rlf_dialogue::dialogue::Dialogue;
use rlf_policy::{DrawKey, Purpose, Sampler, SamplingParams};

use super::conversation::Conversation;
use super::{Turn, TurnRefused, TurnRequest};
use crate::generate::{GenerateRequest, Generator};

/// Answers requests with a policy that is not being trained. Nothing is kept between two requests.
pub struct PolicyChat {
    dialogue: Arc<Dialogue>,
    generator: Arc<dyn Generator>,
    /// Seed of requests that have none.
    seed: u64,
    /// Number of requests so far.
    requests: AtomicU64,
}

impl PolicyChat {
    /// Answers with this policy. Each request without a seed draws differently; `seed` decides how.
    pub fn new(dialogue: Arc<Dialogue>, generator: Arc<dyn Generator>, seed: u64) -> Self {
        Self {
            dialogue,
            generator,
            seed,
            requests: AtomicU64::new(0),
        }
    }

    /// The policy's turn. The same request gets the same turn if `seed` is given.
    pub async fn answer(
        &self,
        request: &TurnRequest,
        params: SamplingParams,
        seed: Option<u64>,
    ) -> Result<Turn, TurnRefused> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (seed, number) = seed.map_or((self.seed, number), |seed| (seed, 0));
        let sampler = Sampler::new(params, seed, Purpose::Evaluation)
            .map_err(|error| TurnRefused::Invalid(error.to_string()))?;
        let mut conversation = Conversation::begin(
            &self.dialogue,
            &self.generator,
            0,
            "chat",
            "chat",
            &request.messages,
            &request.tools,
        )?;
        let prompt_tokens = conversation.tokens();
        let asked = request.max_tokens.unwrap_or(usize::MAX).max(1);
        let mut sampled_tokens = 0;
        // Each turn but the last one had malformed calls only.
        while let Some((sequence, append, room)) = conversation.next_input() {
            let request = GenerateRequest {
                sequence,
                append,
                max_new_tokens: room.min(asked),
                sampler,
                key: DrawKey {
                    step: 0,
                    task: number,
                    sample: 0,
                    position: sampled_tokens as u64,
                },
            };
            let generated = self.generator.generate(request).await;
            let generated =
                generated.map_err(|error| TurnRefused::Unavailable(error.to_string()))?;
            sampled_tokens += generated.ids.len();
            if conversation.push(generated) {
                break;
            }
        }
        let (message, stopped) = conversation.answer();
        Ok(Turn {
            message,
            stopped,
            prompt_tokens,
            sampled_tokens,
        })
    }
}
