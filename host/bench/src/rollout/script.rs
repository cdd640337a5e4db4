//! A generator that draws as many tokens as the plan says and returns the plan's turn. With barriers, trajectories
//! wait for each other.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use rlf_policy::DrawKey;
use rlf_rollout::generate::{GenerateError, GenerateRequest, Generated, Generator, SequenceId};
use rlf_rollout::policy_generator::PolicyGenerator;
use tokio::sync::Barrier;

use super::plan::{GROUP_SIZE, Plan};

/// The policy, with forced turns.
pub(super) struct ForcedTurns {
    policy: Arc<PolicyGenerator>,
    plans: Arc<[Plan]>,
    /// One for each turn, or none if nobody waits.
    barriers: Vec<Barrier>,
}

impl ForcedTurns {
    /// No trajectory waits for another one.
    pub(super) fn new(policy: Arc<PolicyGenerator>, plans: Arc<[Plan]>) -> Self {
        Self {
            policy,
            plans,
            barriers: Vec::new(),
        }
    }

    /// The trajectories of `batch` wait for each other twice in each turn that they have: before they decode it, for
    /// the tools of all, and after it, for the decoding of all.
    pub(super) fn with_barriers(mut self, batch: Range<usize>) -> Self {
        let plans = &self.plans[batch];
        let longest = plans.iter().map(|plan| plan.turns.len()).max();
        self.barriers = (0..longest.unwrap_or(0))
            .map(|turn| Barrier::new(plans.iter().filter(|plan| plan.turns.len() > turn).count()))
            .collect();
        self
    }

    async fn wait_for_others(&self, turn: usize) {
        if let Some(barrier) = self.barriers.get(turn) {
            barrier.wait().await;
        }
    }
}

#[async_trait]
impl Generator for ForcedTurns {
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError> {
        let DrawKey {
            task,
            sample,
            position,
            ..
        } = request.key;
        let plan = self.plans.get(task as usize * GROUP_SIZE + sample as usize);
        let Some((place, turn)) = plan.and_then(|plan| plan.turn_at(position)) else {
            let what = format!("task {task}, sample {sample}: no turn begins at token {position}");
            return Err(GenerateError::Stopped(what));
        };
        self.wait_for_others(place).await;
        let request = GenerateRequest {
            max_new_tokens: turn.ids.len(),
            ..request
        };
        let drawn = self.policy.generate(request).await?;
        self.wait_for_others(place).await;
        Ok(Generated {
            ids: turn.ids.clone(),
            log_probs: drawn.log_probs,
        })
    }

    fn close(&self, sequence: SequenceId) {
        self.policy.close(sequence);
    }
}
