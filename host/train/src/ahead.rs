//! Steps that are played ahead of the updates.
//!
//! With `rl.staleness = k`, step `s` (from 0) is played with the weights after `max(0, s - k)` steps, while the steps
//! before it update. The schedule is fixed: neither how fast a step is played nor how fast it is trained on changes
//! which weights play it. So a run stays a function of its seed, and a resumed run begins the same plays again. A bound
//! on how far the weights that play may be behind is AReaL's (arXiv:2505.24298); with 1, it is the order of
//! "Asynchronous RLHF" (arXiv:2410.18252).
//!
//! ```text
//! k = 0   play 0 | update 0 | play 1 | update 1 | play 2 | ..
//! k = 1   play 0 | play 1   | play 2   | ..
//!                | update 0 | update 1 | ..
//! ```
//!
//! Without staleness, a step is played when it begins, with the present weights.

use std::collections::VecDeque;
use std::sync::Arc;

use rlf_policy::Model;

use crate::error::TrainError;
use crate::older_policies::{OlderPolicies, OlderPolicy};
use crate::rollouts::{Play, Rollouts};
use crate::run::TrainerState;

/// The steps that are under way. Dropping it breaks them off.
pub(crate) struct Ahead {
    staleness: u64,
    /// Steps from this one on are not begun.
    end: u64,
    /// The next step comes first.
    begun: VecDeque<Begun>,
}

/// A step that is being played.
pub(crate) struct Begun {
    /// Steps done by the weights that play it.
    pub(crate) weights: u64,
    /// The experience of the step, as a future.
    pub(crate) play: Play,
}

impl Ahead {
    /// Nothing is under way yet. Steps from `end` on are not begun ahead.
    pub(crate) fn new(staleness: u64, end: u64) -> Self {
        Self {
            staleness,
            end,
            begun: VecDeque::new(),
        }
    }

    /// Begins again the plays that were under way after `state.step` steps, then restores the rollouts' state.
    pub(crate) fn start(
        &mut self,
        rollouts: &mut dyn Rollouts,
        older: &mut OlderPolicies,
        model: &Model,
        state: &TrainerState,
    ) -> Result<(), TrainError> {
        let step = state.step;
        let failed = |source| TrainError::Rollouts { step, source };
        if self.staleness > 0 {
            if older.for_step(step).is_none() {
                older.keep(step, model, state.rollouts.clone())?;
            }
            for ahead in step..step + self.staleness {
                let Some(policy) = older.for_step(ahead) else {
                    continue;
                };
                if let Some(known) = &policy.rollouts {
                    rollouts.resume(known).map_err(failed)?;
                }
                self.begin(rollouts, policy, ahead);
            }
        }
        if let Some(known) = &state.rollouts {
            rollouts.resume(known).map_err(failed)?;
        }
        Ok(())
    }

    /// The step that comes next, which has this number.
    pub(crate) fn take(&mut self, rollouts: &mut dyn Rollouts, model: &Model, step: u64) -> Begun {
        let begun = self.begun.pop_front();
        begun.unwrap_or_else(|| Begun {
            weights: step,
            play: rollouts.play(step, Arc::new(model.share()), step),
        })
    }

    /// Begins the step that the present weights play. Called when the trajectories of step `state.step` are there, and
    /// before its updates.
    pub(crate) fn extend(
        &mut self,
        rollouts: &mut dyn Rollouts,
        older: &mut OlderPolicies,
        model: &Model,
        state: &TrainerState,
    ) -> Result<(), TrainError> {
        if self.staleness == 0 {
            return Ok(());
        }
        // The first step has kept its weights already.
        if !older.has(state.step) {
            older.keep(state.step, model, state.rollouts.clone())?;
        }
        let ahead = state.step + self.staleness;
        if let Some(policy) = older.for_step(ahead) {
            self.begin(rollouts, policy, ahead);
        }
        Ok(())
    }

    /// Breaks off the steps that are under way. Only for a run that plays no further step.
    pub(crate) fn break_off(&mut self) {
        self.begun.clear();
    }

    fn begin(&mut self, rollouts: &mut dyn Rollouts, policy: &OlderPolicy, step: u64) {
        if step < self.end {
            let play = rollouts.play(step, Arc::clone(&policy.model), policy.step);
            self.begun.push_back(Begun {
                weights: policy.step,
                play,
            });
        }
    }
}
