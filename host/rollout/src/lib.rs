//! Generate, parse, invoke: many trajectories in flight over one policy and one set of plugins.
//!
//! This is the only crate where the policy and the plugins meet.
//!
//! A trajectory is one asynchronous function, and [`rollout()`](rollout::rollout) spawns one per sample.
//! The generator batches them: all turns that are being generated at a moment share one forward pass. A
//! trajectory that waits for its tools is not part of that pass, and there is no barrier per turn.
//!
//! Under a seed the trajectories are the same bit for bit. The order in which tools finish and the
//! batching of turns make no difference. Every draw is keyed by its place (see [`generate::GenerateRequest::key`]), and
//! the policy's arithmetic does not depend on the other sequences of a pass.
//!
//! The crate must not know advantages, losses, gradients, checkpoints or the command line.
//!
//! | looking for | module |
//! |---|---|
//! | the trait of what plays one trajectory | [`player`] |
//! | the loop of one trajectory | `episode`: [`PolicyPlayer`] |
//! | the same loop with a model behind an endpoint | [`endpoint_loop`] |
//! | trajectories that a program with a loop of its own leads | [`agent`] |
//! | groups of trajectories and their grading | [`rollout`] |
//! | evaluation, pass@k and intervals | [`evaluate`], [`statistics`] |
//! | demonstrations played against the real tools | [`demonstrate`] |
//! | the parts of a rollout, its settings, the surroundings of an episode | [`engine`], `settings`, `context` |
//! | the trait that produces turns, and the policy behind it | [`generate`], [`policy_generator`] |
//! | turns of an engine beside this program, and its weights | [`external_engine`] |
//! | an episode's environment session, tools and prompt | [`task_environment`] |
//! | outcomes that calls take in a replay | `recorded`: [`RecordedOutcomes`] |
//! | simulated users | [`user`], `conversation` |
//! | renamed and held-out tools | [`shown_tools`] |
//! | errors | `error` |

pub mod agent;
mod context;
mod conversation;
pub mod demonstrate;
pub mod endpoint_loop;
pub mod engine;
mod episode;
mod error;
pub mod evaluate;
pub mod external_engine;
pub mod generate;
pub mod player;
pub mod policy_generator;
mod recorded;
pub mod rollout;
mod settings;
pub mod shown_tools;
pub mod statistics;
pub mod task_environment;
pub mod user;

pub use context::EpisodeContext;
pub use engine::RolloutEngine;
pub use episode::PolicyPlayer;
pub use error::RolloutError;
pub use player::Player;
pub use recorded::RecordedOutcomes;
pub use settings::{RolloutSettings, TrajectoryIndex};
