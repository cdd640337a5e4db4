//! Copies of the policy after the last steps. They play steps while later ones update.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use rlf_policy::Model;
use serde_json::Value;

use crate::error::TrainError;
use crate::run::{Checkpoint, OlderWeights};

/// The policy after a step, with everything else that the play of a step depends on.
pub(crate) struct OlderPolicy {
    /// Steps done.
    pub(crate) step: u64,
    /// A copy of the weights.
    pub(crate) model: Arc<Model>,
    /// The state of the rollouts then.
    pub(crate) rollouts: Option<Value>,
}

/// The policies after the last steps, oldest first.
#[derive(Default)]
pub(crate) struct OlderPolicies {
    staleness: u64,
    policies: VecDeque<OlderPolicy>,
}

impl OlderPolicies {
    /// The policies of a run with this `rl.staleness`: those that the checkpoint `resumed` holds. None of them, if the
    /// run begins, or if it had no staleness before.
    pub(crate) fn new(
        staleness: u64,
        resumed: Option<&Checkpoint>,
        model: &Model,
    ) -> Result<Self, TrainError> {
        let mut policies = VecDeque::new();
        if let Some(Checkpoint { path, state }) = resumed.filter(|_| staleness > 0) {
            for older in OlderWeights::all(path)? {
                if older.step < state.step && older.step + staleness >= state.step {
                    policies.push_back(OlderPolicy {
                        step: older.step,
                        model: Arc::new(model.reload(&older.path)?),
                        rollouts: older.rollouts,
                    });
                }
            }
        }
        Ok(Self {
            staleness,
            policies,
        })
    }

    /// The policy that plays `step`: the one of `staleness` steps before, or the oldest one, if the run has none so
    /// old.
    pub(crate) fn for_step(&self, step: u64) -> Option<&OlderPolicy> {
        let is_old_enough = |policy: &&OlderPolicy| policy.step + self.staleness <= step;
        let mut newest_first = self.policies.iter().rev();
        newest_first
            .find(is_old_enough)
            .or_else(|| self.policies.front())
    }

    /// True if the policy after `step` steps is here.
    pub(crate) fn has(&self, step: u64) -> bool {
        self.policies.iter().any(|policy| policy.step == step)
    }

    /// Adds a copy of the policy after `step` steps, which is newer than the others.
    pub(crate) fn keep(
        &mut self,
        step: u64,
        model: &Model,
        rollouts: Option<Value>,
    ) -> Result<(), TrainError> {
        self.forget();
        self.policies.push_back(OlderPolicy {
            step,
            model: Arc::new(model.copy()?),
            rollouts,
        });
        Ok(())
    }

    /// Drops the policies that no later checkpoint needs. Until a step updates, a checkpoint of the weights before it
    /// may still be written, which needs one more.
    pub(crate) fn forget(&mut self) {
        while self.policies.len() as u64 > self.staleness {
            self.policies.pop_front();
        }
    }

    /// Saves the policies that a run needs to go on after `step` steps, into the folder of that checkpoint.
    pub(crate) fn save(&self, checkpoint: &Path, step: u64) -> Result<(), TrainError> {
        for policy in &self.policies {
            if policy.step < step && policy.step + self.staleness >= step {
                OlderWeights::write(
                    checkpoint,
                    policy.step,
                    policy.rollouts.as_ref(),
                    |folder| {
                        policy.model.save(folder)?;
                        Ok::<(), TrainError>(())
                    },
                )?;
            }
        }
        Ok(())
    }
}
