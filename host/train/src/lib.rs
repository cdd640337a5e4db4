//! Update: from demonstrations and graded trajectories to new weights.
//!
//! Why it is a crate of its own: the algorithms are what people come here to read and to change.
//! Each is one file in the paper's own symbols, and none of them knows where trajectories come
//! from, which tools ran, or that there is a command line. It must not know plugins, sandboxes,
//! arguments or progress bars.
//!
//! | looking for | file |
//! |---|---|
//! | the GRPO advantage, Reinforce++ | [`advantage`] |
//! | the clipped loss, KL, SFT cross-entropy, token-mean and sequence-mean | [`loss`] |
//! | how a step's trajectories become mini-batches and micro-batches | [`minibatch`] |
//! | every setting, its default, unit and effect | [`config`], [`optimizer`] |
//! | which trajectories train, and which are left out and counted | [`experience`] |
//! | the supervised loop | [`sft`] |
//! | the reinforcement-learning loop | [`rl`] |
//! | what to implement to feed it: rollouts, demonstrations | [`rollouts`] |
//! | what to implement to watch it: progress, evaluation, interruption | [`phase`] |
//! | what is measured and where it is written | [`metrics`], [`summary`], [`tensorboard`] |
//! | what a run leaves on disk, checkpoints, resume | [`run`], [`checkpoint`], [`machine`] |
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
pub mod checkpoint;
pub mod config;
pub mod error;
pub mod experience;
pub mod loss;
pub mod machine;
pub mod metrics;
pub mod minibatch;
pub mod optimizer;
pub mod phase;
pub mod rl;
pub mod rollouts;
pub mod run;
pub mod sft;
pub mod summary;
pub mod tensorboard;

mod atomic;
#[cfg(test)]
mod fixtures;
mod save;
mod update;
