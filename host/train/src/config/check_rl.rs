//! The check of `[rl]`: settings that cannot be trained with are refused, with the reason.

use rlf_policy::InvalidSetting;

use super::{Algorithm, KlEstimator, KlPlace, MAX_TRAJECTORIES, RlConfig};

/// Maximum number of rounds that refill a step.
const MAX_REFILL: u32 = 100;
/// Maximum number of steps by which the weights that play may be behind.
const MAX_STALENESS: u64 = 16;
/// Maximum number of times that a step learns from its rollouts.
const MAX_EPOCHS: u64 = 1000;

impl RlConfig {
    /// Refuses settings that cannot be trained with.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let at_least_one = "must be at least 1";
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        let smallest_group = self.estimator().smallest_group();
        InvalidSetting::require(
            self.group_size >= smallest_group,
            "rl.group_size",
            &self.group_size,
            if smallest_group > 1 {
                "this algorithm compares the trajectories of a group, and one trajectory alone always gets advantage 0; \
                 write at least 2 (8 is usual), or use `algorithm = \"reinforce++\"`"
            } else {
                at_least_one
            },
        )?;
        InvalidSetting::require(
            self.group_size.saturating_mul(self.prompts_per_step) <= MAX_TRAJECTORIES,
            "rl.prompts_per_step",
            &self.prompts_per_step,
            "times rl.group_size, is more than 1,000,000 trajectories a step",
        )?;
        InvalidSetting::require(
            self.prompts_per_step >= 1,
            "rl.prompts_per_step",
            &self.prompts_per_step,
            at_least_one,
        )?;
        InvalidSetting::require(
            self.mini_batches >= 1,
            "rl.mini_batches",
            &self.mini_batches,
            at_least_one,
        )?;
        InvalidSetting::require(
            (1..=MAX_EPOCHS).contains(&self.epochs),
            "rl.epochs",
            &self.epochs,
            "write 1 to 1000; a step that is interrupted is repeated with all its epochs",
        )?;
        InvalidSetting::require(
            self.micro_batch_tokens >= 1,
            "rl.micro_batch_tokens",
            &self.micro_batch_tokens,
            at_least_one,
        )?;
        InvalidSetting::require(
            (0.0..=1.0).contains(&self.clip_low),
            "rl.clip_low",
            &self.clip_low,
            "the lower bound of the ratio is 1 - clip_low: from 0 to 1, 0.2 is usual",
        )?;
        InvalidSetting::require(
            not_negative(self.clip_high),
            "rl.clip_high",
            &self.clip_high,
            "the upper bound of the ratio is 1 + clip_high: 0 or more, 0.2 to 0.28 is usual",
        )?;
        if let Some(cap) = self.importance_cap {
            InvalidSetting::require(
                cap.is_finite() && cap >= 1.0,
                "rl.importance_cap",
                &cap,
                "must be 1 or more; leave it out for the default, which is 2 where it is needed",
            )?;
        }
        if let Some(bound) = self.dual_clip {
            InvalidSetting::require(
                bound.is_finite() && bound > 1.0,
                "rl.dual_clip",
                &bound,
                "must be above 1, such as 3; leave it out for no such bound",
            )?;
        }
        InvalidSetting::require(
            not_negative(self.kl_coefficient),
            "rl.kl_coefficient",
            &self.kl_coefficient,
            "must be 0 or more, such as 0.001",
        )?;
        self.validate_kl()?;
        InvalidSetting::require(
            not_negative(self.entropy_coefficient),
            "rl.entropy_coefficient",
            &self.entropy_coefficient,
            "must be 0 or more",
        )?;
        InvalidSetting::require(
            self.gamma > 0.0 && self.gamma <= 1.0,
            "rl.gamma",
            &self.gamma,
            "must be above 0 and at most 1",
        )?;
        InvalidSetting::require(
            (0.0..=1.0).contains(&self.gae_lambda),
            "rl.gae_lambda",
            &self.gae_lambda,
            "must be from 0 to 1; 1 and 0.95 are usual",
        )?;
        self.critic.validate()?;
        self.validate_critic_is_used()?;
        InvalidSetting::require(
            // As sampling uses it: a tiny value is 0 there.
            (self.temperature as f32).is_finite() && self.temperature as f32 > 0.0,
            "rl.temperature",
            &self.temperature,
            "must be above 0: greedy rollouts explore nothing and have no probabilities; 1.0 is usual",
        )?;
        InvalidSetting::require(
            (0.0..=1.0).contains(&self.max_dropped_share),
            "rl.max_dropped_share",
            &self.max_dropped_share,
            "is a share of a step's groups, from 0 to 1",
        )?;
        if let Some(curriculum) = &self.curriculum {
            curriculum.validate()?;
        }
        self.validate_refill()?;
        InvalidSetting::require(
            self.staleness <= MAX_STALENESS,
            "rl.staleness",
            &self.staleness,
            "write 0 to 16; with 1, trajectories are played while the step before updates",
        )?;
        if let Some(replay) = &self.replay_buffer {
            replay.validate(self.algorithm)?;
        }
        if let Some(overlong) = &self.overlong {
            overlong.validate()?;
            InvalidSetting::require(
                self.algorithm != Algorithm::ReMax,
                "rl.overlong.max_tokens",
                &overlong.max_tokens,
                "ReMax compares with a greedy trajectory, which is not punished; leave out `rl.overlong`, or choose another \
                 algorithm",
            )?;
        }
        self.guards.validate()?;
        self.optimizer.validate()
    }

    /// Refuses settings of a critic without one.
    fn validate_critic_is_used(&self) -> Result<(), InvalidSetting> {
        if self.active_critic().is_some() {
            return Ok(());
        }
        InvalidSetting::require(
            self.gae_lambda == Self::default().gae_lambda,
            "rl.gae_lambda",
            &self.gae_lambda,
            "only `algorithm = \"ppo\"` uses it; leave it out, or choose that algorithm",
        )?;
        InvalidSetting::require(
            self.critic.is_default(),
            "rl.critic",
            &"{...}",
            "only `algorithm = \"ppo\"` has a critic; leave out `rl.critic`, or choose that algorithm",
        )
    }

    fn validate_kl(&self) -> Result<(), InvalidSetting> {
        let place = self.kl_place();
        if let Some(estimator) = self.kl_estimator {
            InvalidSetting::require(
                estimator != KlEstimator::K1 || place == KlPlace::Reward,
                "rl.kl_estimator",
                &estimator,
                "in the loss, the gradient of k1 is 0 on average, so it keeps the policy nowhere; write \"k2\" or \"k3\", or \
                 `kl_in = \"reward\"`",
            )?;
        }
        if self.kl_in == Some(KlPlace::Reward) {
            InvalidSetting::require(
                self.algorithm != Algorithm::ReMax,
                "rl.kl_in",
                &KlPlace::Reward,
                "ReMax compares with a greedy trajectory, whose reward has no KL; write \"loss\", or choose another algorithm",
            )?;
        }
        let has_kl = self.kl_coefficient > 0.0;
        let unused = "`rl.kl_coefficient` is 0, so there is no KL; leave it out, or set that to a weight such as 0.001";
        if let Some(kl_in) = &self.kl_in {
            InvalidSetting::require(has_kl, "rl.kl_in", kl_in, unused)?;
        }
        if let Some(estimator) = &self.kl_estimator {
            InvalidSetting::require(has_kl, "rl.kl_estimator", estimator, unused)?;
        }
        if let Some(adaptive) = &self.adaptive_kl {
            InvalidSetting::require(
                has_kl,
                "rl.kl_coefficient",
                &self.kl_coefficient,
                "`rl.adaptive_kl` multiplies it, so it must be above 0, such as 0.001",
            )?;
            adaptive.validate()?;
        }
        Ok(())
    }

    fn validate_refill(&self) -> Result<(), InvalidSetting> {
        let compares_groups = match self.algorithm {
            Algorithm::ReMax
            | Algorithm::ReinforcePlusPlus
            | Algorithm::MtGrpo
            | Algorithm::Ppo => false,
            Algorithm::Grpo
            | Algorithm::DrGrpo
            | Algorithm::Rloo
            | Algorithm::ReinforcePlusPlusBaseline => {
                self.kl_coefficient == 0.0 || self.kl_place() == KlPlace::Loss
            }
        };
        for (is_right, mend) in [
            (self.refill <= MAX_REFILL, "write 0 to 100 rounds"),
            (
                self.refill == 0 || self.curriculum.is_none(),
                "a curriculum draws tasks by the policy's success itself; leave out one of the two",
            ),
            (
                self.refill == 0 || compares_groups,
                "with this algorithm, or with the KL in the reward, groups whose rewards are all the same teach something, too; \
                 leave it out",
            ),
        ] {
            InvalidSetting::require(is_right, "rl.refill", &self.refill, mend)?;
        }
        Ok(())
    }
}
