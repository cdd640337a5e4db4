//! Turns in conversations that belong to no trajectory, as a deployment has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rlf_dialogue::dialogue::Dialogue;
use rlf_policy::{DrawKey, Purpose, Sampler, SamplingParams};
use tokio::task::{JoinError, spawn_blocking};

use super::conversation::{Conversation, Draws, TurnError};
use super::{Turn, TurnRefused, TurnRequest};
use crate::generate::Generator;

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
        let request_number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (seed, number) = seed.map_or((self.seed, request_number), |seed| (seed, 0));
        let sampler = Sampler::new(params, seed, Purpose::Evaluation)
            .map_err(|error| TurnRefused::Invalid(error.to_string()))?;
        let draws = ChatDraws {
            number,
            turns: AtomicU32::new(0),
            position: AtomicU64::new(0),
            most: self.dialogue.config().max_turns,
        };
        let (dialogue, generator) = (Arc::clone(&self.dialogue), Arc::clone(&self.generator));
        // The ids of calls contain this number, so they differ between requests.
        let (number, asked) = (request_number as usize, request.clone());
        let beginning = spawn_blocking(move || {
            Conversation::begin(&dialogue, generator, number, "chat", "chat", &asked)
        });
        let broken = |error: JoinError| TurnRefused::Unavailable(error.to_string());
        let mut conversation = beginning.await.map_err(broken)??;
        let turn = conversation.take_turn(sampler, request.max_tokens, &draws);
        turn.await.map_err(|error| match error {
            TurnError::Refused(refused) => refused,
            TurnError::Generate(error) => TurnRefused::Unavailable(error.to_string()),
        })
    }
}

/// The draws of one request.
struct ChatDraws {
    number: u64,
    turns: AtomicU32,
    position: AtomicU64,
    /// Maximum number of turns, of which all but the last have malformed calls only.
    most: u32,
}

impl Draws for ChatDraws {
    fn begin(&self, _: usize) -> Result<(u32, DrawKey), TurnRefused> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        if turn >= self.most {
            return Err(TurnRefused::NoTurns(self.most));
        }
        let key = DrawKey {
            step: 0,
            task: self.number,
            sample: 0,
            position: self.position.load(Ordering::Relaxed),
        };
        Ok((turn, key))
    }

    fn end(&self, key: DrawKey, _: usize, sampled: usize) {
        let next = key.position + sampled as u64;
        self.position.store(next, Ordering::Relaxed);
    }
}
