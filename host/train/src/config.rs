//! Every setting of SFT and RL, with its default, unit and effect.

mod check_rl;
mod replay_buffer;
mod rl_optimizer;

use rlf_policy::PassOptions;
use serde::{Deserialize, Serialize};

use crate::advantage::{
    AdvantageEstimator, DrGrpo, Gae, Grpo, MtGrpo, ReMax, ReinforcePlusPlus,
    ReinforcePlusPlusBaseline, Rloo,
};
use crate::curriculum::CurriculumConfig;
use crate::loss::{Aggregation, ClippedPolicy, Ratio};

pub use crate::critic::CriticConfig;
pub use crate::guards::GuardsConfig;
pub use crate::kl::{AdaptiveKl, KlEstimator, KlPlace};
pub use crate::overlong::Overlong;
pub use replay_buffer::ReplayBufferConfig;
pub use rlf_policy::{InvalidSetting, OptimizerConfig, Schedule};

/// Supervised fine-tuning on demonstrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SftConfig {
    /// Updates. Default 1000. 0 leaves the phase out.
    pub steps: u64,
    /// Demonstrations per update. Default 64.
    pub batch_size: usize,
    /// Tokens held in memory at once. It changes speed, memory and the last bits of results. Default
    /// 8192.
    pub micro_batch_tokens: usize,
    /// Loss weight of the tokens that the policy only reads: instructions, tools, questions and observations, and not turns of
    /// a demonstration that are left out. Tokens that it writes have weight 1. Default 0: the policy learns what to say, and
    /// nothing else. With a small weight such as 0.1, a policy that is trained from scratch learns sooner to copy names that
    /// it never saw.
    pub prompt_loss_weight: f64,
    /// Loss weight of tokens in the names of tools that demonstrated calls have. Default 1, as of all other tokens that the
    /// policy writes. A wrong name makes a call useless, and it is only a few tokens (TL-Training, arXiv:2412.15495, whose
    /// weights adapt while it trains).
    #[serde(skip_serializing_if = "is_one")]
    pub tool_name_weight: f64,
    /// The same for the tokens of their arguments. Default 1.
    #[serde(skip_serializing_if = "is_one")]
    pub arguments_weight: f64,
    /// Recomputes each layer in the backward pass: less memory, a third more time, the same results. Default: a run does so
    /// if the memory is too small otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation_checkpointing: Option<bool>,
    /// Threads that share the micro-batches; `None` is one per core. It changes no result, so it is not
    /// part of a configuration.
    #[serde(skip)]
    pub workers: Option<usize>,
    /// The optimiser.
    pub optimizer: OptimizerConfig,
}

impl Default for SftConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch_size: 64,
            micro_batch_tokens: 8192,
            prompt_loss_weight: 0.0,
            tool_name_weight: 1.0,
            arguments_weight: 1.0,
            activation_checkpointing: None,
            workers: None,
            optimizer: OptimizerConfig::default(),
        }
    }
}

impl SftConfig {
    /// Refuses settings that cannot be trained with.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let at_least_one = "must be at least 1";
        InvalidSetting::require(
            (1..=MAX_TRAJECTORIES).contains(&self.batch_size),
            "sft.batch_size",
            &self.batch_size,
            "must be from 1 to 1,000,000",
        )?;
        InvalidSetting::require(
            self.micro_batch_tokens >= 1,
            "sft.micro_batch_tokens",
            &self.micro_batch_tokens,
            at_least_one,
        )?;
        InvalidSetting::require(
            (0.0..=1.0).contains(&self.prompt_loss_weight),
            "sft.prompt_loss_weight",
            &self.prompt_loss_weight,
            "must be from 0 to 1",
        )?;
        for (name, weight) in [
            ("sft.tool_name_weight", self.tool_name_weight),
            ("sft.arguments_weight", self.arguments_weight),
        ] {
            let is_weight = (0.0..=1000.0).contains(&weight);
            InvalidSetting::require(is_weight, name, &weight, "must be from 0 to 1000")?;
        }
        self.optimizer.validate()
    }

    /// True if tokens of calls have other weights than the rest.
    pub fn weighs_calls(&self) -> bool {
        (self.tool_name_weight, self.arguments_weight) != (1.0, 1.0)
    }

    /// True if the backward pass recomputes each layer.
    pub fn recomputes(&self) -> bool {
        self.activation_checkpointing.unwrap_or(false)
    }

    pub(crate) fn pass(&self) -> PassOptions {
        PassOptions {
            workers: workers(self.workers),
            temperature: 1.0,
            checkpointing: self.recomputes(),
        }
    }
}

fn workers(asked: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(cores).max(1)
}

/// The advantage estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Algorithm {
    /// [`Grpo`]: advantages are normalised within the group, the KL penalty is in the loss. Default.
    #[default]
    #[serde(rename = "grpo")]
    Grpo,
    /// [`MtGrpo`]: as `grpo`, and each turn before the last also by the turn's own rewards, which `turns` of a
    /// `[[rewards.stack]]` entry weighs.
    #[serde(rename = "mt-grpo")]
    MtGrpo,
    /// [`DrGrpo`]: the reward minus the group's mean, the KL penalty is in the loss.
    #[serde(rename = "dr-grpo")]
    DrGrpo,
    /// [`Rloo`]: the reward minus the mean of the others in the group, the KL penalty is in the loss.
    #[serde(rename = "rloo")]
    Rloo,
    /// [`ReMax`]: the reward minus that of a greedy trajectory of the task, the KL penalty is in the loss.
    #[serde(rename = "remax")]
    ReMax,
    /// [`ReinforcePlusPlus`]: advantages are normalised over the batch, the KL penalty is in the reward.
    #[serde(rename = "reinforce++")]
    ReinforcePlusPlus,
    /// [`ReinforcePlusPlusBaseline`]: the reward minus the group's mean, normalised over the batch, the KL penalty is in
    /// the loss.
    #[serde(rename = "reinforce++-baseline")]
    ReinforcePlusPlusBaseline,
    /// [`Gae`]: advantages from the values of a critic, `[rl.critic]`, normalised over the batch; the KL penalty is in the
    /// reward.
    #[serde(rename = "ppo")]
    Ppo,
}

/// Reinforcement learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RlConfig {
    /// `grpo` (default), `mt-grpo`, `dr-grpo`, `rloo`, `remax`, `reinforce++`, `reinforce++-baseline` or `ppo`.
    pub algorithm: Algorithm,
    /// Steps of rollout and update. Default 100. 0 leaves the phase out.
    pub steps: u64,
    /// Tasks per step. Default 64.
    pub prompts_per_step: usize,
    /// Trajectories per task. Default 8; all algorithms but `reinforce++`, `remax` and `ppo` need at least 2.
    pub group_size: usize,
    /// Updates per pass over a step's trajectories. Default 1, which is exactly on-policy.
    pub mini_batches: usize,
    /// Passes over a step's trajectories. Default 1.
    pub epochs: u64,
    /// The importance ratio that is clipped: each token's own (`token`, the default), or that of its sequence (`sequence`,
    /// GSPO, which clips far closer to 1: 0.0003 and 0.0004).
    pub importance_ratio: Ratio,
    /// The importance ratio is clipped below at `1 - clip_low`, which matters for negative advantages. Default 0.2.
    pub clip_low: f64,
    /// The importance ratio is clipped above at `1 + clip_high`, which matters for positive advantages. Default 0.28
    /// ("clip-higher" of DAPO, arXiv:2503.14476).
    pub clip_high: f64,
    /// Corrects for an engine that samples with other log-probabilities than training computes (truncated importance
    /// sampling, Yao et al. 2025), or for older weights that sampled (`staleness`): the policy gradient of a token is
    /// multiplied by the ratio of the two, but at most by this value. It costs one more forward pass. Default: none, or
    /// 2 with `[external_engine]` or `staleness`. Groups of a `replay_buffer` are always corrected, with 2 if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance_cap: Option<f64>,
    /// For negative advantages, the importance ratio is clipped above at this value ("dual clip" of Ye et al. 2020,
    /// arXiv:1912.09729, equation 5; 3 is usual). It matters for tokens that have become far likelier since they were
    /// sampled. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dual_clip: Option<f64>,
    /// Weight of the KL to the reference policy, which RL began with. Default 0, which needs no reference policy in memory.
    pub kl_coefficient: f64,
    /// The place of the KL penalty: `loss` or `reward`. Default: `reward` for `reinforce++` and `ppo`, `loss` for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_in: Option<KlPlace>,
    /// The estimator of the KL: `k1`, `k2` or `k3`. Default: `k3` in the loss, `k1` in the reward. In the loss, the gradient
    /// of `k2` is that of the reverse KL, and `k1` is refused: its gradient is 0 on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_estimator: Option<KlEstimator>,
    /// Changes `kl_coefficient` after each step, so that the KL comes close to a target: `{ target = 0.05, horizon = 5120 }`.
    /// Default: none; the weight is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_kl: Option<AdaptiveKl>,
    /// Weight of the entropy bonus in the loss. Default 0.
    pub entropy_coefficient: f64,
    /// Discount per model token; `reinforce++` and `ppo` only. Default 1.
    pub gamma: f64,
    /// Lambda of generalised advantage estimation; `ppo` only. Default 1, as in verl: an advantage is then the sum of all
    /// rewards that follow minus the critic's value, whose errors bias nothing. With 0.95, TRL's default, the outcome counts a
    /// thousandth 135 tokens earlier, and the critic must bridge the distance.
    #[serde(skip_serializing_if = "is_one")]
    pub gae_lambda: f64,
    /// The critic; `ppo` only.
    #[serde(skip_serializing_if = "CriticConfig::is_default")]
    pub critic: CriticConfig,
    /// `token-mean` (default) or `sequence-mean`.
    pub aggregation: Aggregation,
    /// Temperature of sampling, and of every log-probability in training. Default 1.
    pub temperature: f64,
    /// Maximum share of a step's groups that may be dropped because too few of their trajectories could be scored. Beyond
    /// it the run stops, because the rest would be a biased sample. Default 0.5.
    #[serde(alias = "max_dropped_groups")] // Its name in earlier versions.
    pub max_dropped_share: f64,
    /// Tokens held in memory at once. It changes speed, memory and the last bits of results. Default
    /// 8192.
    pub micro_batch_tokens: usize,
    /// Recomputes each layer in the backward pass: less memory, a third more time, the same results. Default: a run does so
    /// if the memory is too small otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation_checkpointing: Option<bool>,
    /// Threads that share the micro-batches; `None` is one per core. It changes no result, so it is not
    /// part of a configuration.
    #[serde(skip)]
    pub workers: Option<usize>,
    /// Draws tasks by the policy's estimated success on them. Default: none; training goes through all tasks epoch by
    /// epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curriculum: Option<CurriculumConfig>,
    /// Maximum number of rounds in a step that play further tasks in place of those whose rewards are all the same
    /// ("dynamic sampling" of DAPO, arXiv:2503.14476). With 1 or more, groups whose rewards are all the same do not
    /// count in the normalisation of the loss. Default 0. Not with a curriculum, which draws tasks by their success
    /// itself, nor with `remax`, `reinforce++`, `mt-grpo` and `ppo`, nor with the KL in the reward: they learn from
    /// such groups, too. With `staleness`, the further tasks come from an order of their own, so that they are known
    /// before the step is played.
    #[serde(skip_serializing_if = "is_zero")]
    pub refill: u32,
    /// Number of steps by which the weights that play may be behind: while step `s` updates, step `s + staleness` is
    /// played with the weights from before the update. So decoding, tools and training overlap. It takes memory for so
    /// many copies of the weights, and for the cache of keys and values beside training. Default 0: a step is played
    /// with the weights that it updates.
    #[serde(skip_serializing_if = "is_zero")]
    pub staleness: u64,
    /// Trains on good groups of earlier steps besides those of the step: `{ groups_per_step = 16, max_age = 8 }`. For
    /// `grpo`, `mt-grpo`, `dr-grpo` and `rloo`. Default: none; a group trains once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_buffer: Option<ReplayBufferConfig>,
    /// Punishes trajectories with many model tokens (DAPO): `{ max_tokens = 400, buffer = 100 }`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlong: Option<Overlong>,
    /// Number of validations in a row without a new best success after which RL ends before its last step. Default 0: any
    /// number.
    #[serde(skip_serializing_if = "is_zero")]
    pub patience: u64,
    /// Limits beyond which RL stops.
    #[serde(skip_serializing_if = "GuardsConfig::is_default")]
    pub guards: GuardsConfig,
    /// The optimiser. Its learning rate is 1e-6 by default.
    #[serde(deserialize_with = "rl_optimizer::deserialize")]
    pub optimizer: OptimizerConfig,
}

impl Default for RlConfig {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Grpo,
            steps: 100,
            prompts_per_step: 64,
            group_size: 8,
            mini_batches: 1,
            epochs: 1,
            importance_ratio: Ratio::Token,
            clip_low: 0.2,
            clip_high: 0.28,
            importance_cap: None,
            dual_clip: None,
            kl_coefficient: 0.0,
            kl_in: None,
            kl_estimator: None,
            adaptive_kl: None,
            entropy_coefficient: 0.0,
            gamma: 1.0,
            gae_lambda: 1.0,
            critic: CriticConfig::default(),
            aggregation: Aggregation::TokenMean,
            temperature: 1.0,
            max_dropped_share: 0.5,
            micro_batch_tokens: 8192,
            activation_checkpointing: None,
            workers: None,
            curriculum: None,
            refill: 0,
            staleness: 0,
            replay_buffer: None,
            overlong: None,
            patience: 0,
            guards: GuardsConfig::default(),
            optimizer: rl_optimizer::default(),
        }
    }
}

/// Maximum number of trajectories of one step; no machine plays as many.
const MAX_TRAJECTORIES: usize = 1_000_000;

/// The default of [`RlConfig::importance_cap`] where another engine or older weights sample, as in verl.
pub const IMPORTANCE_CAP: f64 = 2.0;

/// Keys that `[rl]` does not have although people expect them, and the reason.
pub const ABSENT_RL_KEYS: [(&str, &str); 2] = [("top_p", TRUNCATION), ("top_k", TRUNCATION)];

const TRUNCATION: &str = "truncated sampling is for evaluation: the log-probability that training computes is that of \
     the full distribution, so tokens drawn from a truncated one would be off-policy from the start; \
     remove it. To evaluate with it, put it into generation_config.json of `model.checkpoint`, and let the \
     evaluation sample with that file";

impl RlConfig {
    /// True if the backward pass recomputes each layer.
    pub fn recomputes(&self) -> bool {
        self.activation_checkpointing.unwrap_or(false)
    }

    pub(crate) fn pass(&self) -> PassOptions {
        PassOptions {
            workers: workers(self.workers),
            temperature: self.temperature as f32,
            checkpointing: self.recomputes(),
        }
    }

    /// The advantage estimator that these settings choose.
    pub fn estimator(&self) -> Box<dyn AdvantageEstimator> {
        match self.algorithm {
            Algorithm::Grpo => Box::new(Grpo::default()),
            Algorithm::MtGrpo => Box::new(MtGrpo::default()),
            Algorithm::DrGrpo => Box::new(DrGrpo),
            Algorithm::Rloo => Box::new(Rloo),
            Algorithm::ReMax => Box::new(ReMax),
            Algorithm::ReinforcePlusPlusBaseline => Box::new(ReinforcePlusPlusBaseline),
            Algorithm::ReinforcePlusPlus => Box::new(ReinforcePlusPlus { gamma: self.gamma }),
            Algorithm::Ppo => Box::new(Gae {
                gamma: self.gamma,
                lambda: self.gae_lambda,
            }),
        }
    }

    /// The settings of the critic, if the algorithm has one.
    pub(crate) fn active_critic(&self) -> Option<&CriticConfig> {
        self.estimator().needs_values().then_some(&self.critic)
    }

    /// The place of the KL penalty.
    pub fn kl_place(&self) -> KlPlace {
        self.kl_in.unwrap_or(match self.algorithm {
            Algorithm::ReinforcePlusPlus | Algorithm::Ppo => KlPlace::Reward,
            _ => KlPlace::Loss,
        })
    }

    /// The estimator of the KL penalty.
    pub fn kl(&self) -> KlEstimator {
        self.kl_estimator.unwrap_or(match self.kl_place() {
            KlPlace::Loss => KlEstimator::K3,
            KlPlace::Reward => KlEstimator::K1,
        })
    }

    /// The loss that these settings choose, in a step whose KL has the weight `kl_coefficient`.
    pub fn policy_loss(&self, kl_coefficient: f64) -> ClippedPolicy {
        ClippedPolicy {
            ratio: self.importance_ratio,
            clip_low: self.clip_low,
            clip_high: self.clip_high,
            dual_clip: self.dual_clip,
            kl_coefficient: match self.kl_place() {
                KlPlace::Loss => kl_coefficient,
                KlPlace::Reward => 0.0,
            },
            kl_estimator: self.kl(),
            entropy_coefficient: self.entropy_coefficient,
        }
    }
}

/// The checkpoints and trajectories that a run keeps on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Steps between checkpoints; the end of a phase always has one. Default 50.
    pub every: u64,
    /// Number of checkpoints kept, besides the last one of every finished phase, and the last one before
    /// `rl.guards.min_entropy` was undercut. Default 2.
    pub keep_last: usize,
    /// Trajectories are written every this many steps; 0 writes none. Default 1.
    pub trajectories_every: u64,
    /// Also saves a checkpoint after every validation with a new best success, and keeps the best one of each phase.
    /// `checkpoints/best` points to it. Default false.
    #[serde(skip_serializing_if = "is_false")]
    pub keep_best: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            every: 50,
            keep_last: 2,
            trajectories_every: 1,
            keep_best: false,
        }
    }
}

impl CheckpointConfig {
    /// Refuses settings that would leave nothing to resume from.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        InvalidSetting::require(
            self.every >= 1,
            "checkpoint.every",
            &self.every,
            "must be at least 1 step",
        )?;
        InvalidSetting::require(
            self.keep_last >= 1,
            "checkpoint.keep_last",
            &self.keep_last,
            "must be at least 1: a run resumes from its last checkpoint",
        )
    }
}

#[cfg(test)]
mod tests;
