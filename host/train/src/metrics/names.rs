//! Names of the fields of a metrics line that other code reads. All fields are listed in docs/configuration.md.

/// `sft` or `rl`.
pub const PHASE: &str = "phase";
/// Steps done in the phase.
pub const STEP: &str = "step";
/// Seconds that the run has spent.
pub const ELAPSED_S: &str = "elapsed_s";

/// Mean loss of the step's updates. Only lines about a training step have it.
pub const LOSS: &str = "loss";
/// Mean entropy per token.
pub const ENTROPY: &str = "entropy";
/// Mean KL to the policy that sampled.
pub const KL: &str = "kl";
/// Mean norm of the gradients before clipping.
pub const GRAD_NORM: &str = "grad_norm";
/// Mean reward of the scored trajectories.
pub const REWARD: &str = "reward";
/// Share of the scored trajectories that succeed.
pub const SUCCESS: &str = "success";
/// Mean number of model tokens per scored trajectory.
pub const RESPONSE_TOKENS: &str = "response_tokens";
/// Mean number of calls per scored trajectory.
pub const CALLS_PER_TRAJECTORY: &str = "calls_per_trajectory";
/// Number of calls of all trajectories, by tool and ending.
pub const CALLS: &str = "calls";
/// Number of trajectories.
pub const TRAJECTORIES: &str = "trajectories";
/// Number of groups of earlier steps that trained again.
pub const REPLAYED_GROUPS: &str = "replayed_groups";
/// Share of the trajectories that do not train.
pub const EXCLUDED: &str = "excluded";
/// Tokens sampled per second.
pub const DECODE_TOKENS_PER_S: &str = "decode_tokens_per_s";
/// Tokens computed in updates per second.
pub const TRAIN_TOKENS_PER_S: &str = "train_tokens_per_s";
/// Seconds that the step took, without evaluations: waiting for its trajectories, and its updates.
pub const STEP_S: &str = "step_s";

/// The split of an evaluation.
pub const SPLIT: &str = "split";
/// The moment of an evaluation of the test split.
pub const MOMENT: &str = "moment";
/// Prefix of the results of an evaluation.
pub const EVAL: &str = "eval/";
/// Success of one greedy sample per task.
pub const EVAL_GREEDY: &str = "eval/greedy";
/// Success of several samples per task.
pub const EVAL_SAMPLED: &str = "eval/sampled";
/// Lower end of the interval of [`EVAL_SAMPLED`].
pub const EVAL_SAMPLED_LOW: &str = "eval/sampled_low";
/// Upper end of the interval of [`EVAL_SAMPLED`].
pub const EVAL_SAMPLED_HIGH: &str = "eval/sampled_high";
/// Means of the terms of rewards, over the samples of [`EVAL_SAMPLED`].
pub const EVAL_TERMS: &str = "eval/terms";
/// [`EVAL_SAMPLED`] by kind of task.
pub const EVAL_SAMPLED_BY_KIND: &str = "eval/sampled_by_kind";
