//! Update: from demonstrations and graded trajectories to new weights.
//!
//! The algorithms have their own crate, so that people can read and change them. Each is one file in the
//! paper's own symbols. This crate must not know where trajectories come from, nor plugins, sandboxes,
//! the command line or progress bars.
//!
//! | looking for | module |
//! |---|---|
//! | the advantages of GRPO, Reinforce++, PPO and others | [`advantage`] |
//! | the loss mask and the turns of a trajectory, as estimators see them | [`advantage::Sample`] |
//! | the clipped loss, KL, SFT's cross-entropy, token mean and sequence mean | [`loss`] |
//! | the correction for turns that another engine or older weights sampled | `importance` |
//! | the KL to the reference policy: estimators, its place, its adaptive weight | [`kl`] |
//! | PPO's critic, and the loss of its values | [`critic`], [`value_loss`] |
//! | the punishment of long trajectories | [`overlong`] |
//! | the cut of a step's trajectories into mini-batches | [`minibatch`] |
//! | the inputs of the loss for each trajectory of a step | `training_set` |
//! | the gradient of one mini-batch | `update` |
//! | tasks drawn by the policy's success on them | [`curriculum`] |
//! | every setting, its default, unit and effect | [`config`], [`rlf_policy::OptimizerConfig`] |
//! | the trajectories that train, and those that are left out and counted | [`batch`] |
//! | the supervised loop | [`sft`] |
//! | the reinforcement-learning loop | [`rl`] |
//! | groups of earlier steps that train again | `replay_buffer` |
//! | steps that are played while earlier ones update, and the weights that play them | `ahead`, `older_policies` |
//! | the traits to implement to feed it: rollouts, demonstrations | [`rollouts`] |
//! | the trait to implement to watch it: progress, evaluation, interruption | [`observer`] |
//! | the phases of a run, and where one begins and is saved | [`phase`], `phase_loop` |
//! | the measured numbers of a step | [`metrics`], [`summary`], [`tensorboard`] |
//! | the files of a run, its checkpoints, resuming | [`run`] |
//! | reasons to stop RL: exclusions, entropy, no advantage | [`guards`] |
//! | errors | `error` |
//!
//! ```
//! use rlf_train::advantage::{AdvantageEstimator, Grpo, Sample};
//!
//! // Four answers to one question, two model tokens each; the second one was right.
//! let group: Vec<Sample> = [0.0, 1.0, 0.0, 0.0]
//!     .into_iter()
//!     .map(|reward| Sample::single_turn(0, 2, reward))
//!     .collect();
//! let advantages = Grpo::default().advantages(&group);
//! assert!(advantages[1][0] > 1.49 && advantages[0][0] < 0.0);
//! ```

pub mod advantage;
mod ahead;
pub mod batch;
pub mod config;
pub mod critic;
pub mod curriculum;
pub mod error;
#[cfg(test)]
mod fixtures;
pub mod guards;
mod importance;
pub mod kl;
pub mod loss;
pub mod metrics;
pub mod minibatch;
pub mod observer;
mod older_policies;
pub mod overlong;
pub mod phase;
mod phase_loop;
mod replay_buffer;
pub mod rl;
pub mod rollouts;
pub mod run;
pub mod sft;
pub mod summary;
pub mod tensorboard;
mod training_set;
mod update;
pub mod value_loss;
