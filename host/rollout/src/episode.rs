//! One trajectory, in the loop that the papers describe: generate, parse, invoke, and again.

use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::episode::NextInput;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::turn::TurnContext;
use rlf_policy::DrawKey;

use crate::context::EpisodeContext;
use crate::error::RolloutError;
use crate::generate::{GenerateError, GenerateRequest, Generated, Generator, OpenSequence};
use crate::player::Player;
use crate::settings::{RolloutSettings, TrajectoryIndex};
use crate::task_environment::TaskEnvironment;

/// Plays trajectories in our own loop, with turns from a generator.
pub struct PolicyPlayer {
    generator: Arc<dyn Generator>,
}

impl PolicyPlayer {
    /// Plays with the turns of this generator.
    pub fn new(generator: Arc<dyn Generator>) -> Self {
        Self { generator }
    }
}

#[async_trait]
impl Player for PolicyPlayer {
    async fn play(
        &self,
        context: &EpisodeContext,
        settings: RolloutSettings,
        task: Arc<Task>,
        index: TrajectoryIndex,
    ) -> Result<Trajectory, RolloutError> {
        let id = settings.trajectory_id(&task, index);
        let entered = TaskEnvironment::enter(context, &task, settings.split, &id).await;
        let (mut environment, mut episode) = match entered {
            Ok(entered) => entered,
            Err(error) => return error.into_trajectory(id, &task),
        };
        let mut sequence = OpenSequence::new(&self.generator);
        let mut sampled = 0;
        let mut turn = 0;
        loop {
            // Generate.
            let (append, max_new_tokens) = match episode.next_input() {
                NextInput::Continue {
                    append,
                    max_new_tokens,
                } => (append, max_new_tokens),
                NextInput::Restart {
                    ids,
                    max_new_tokens,
                } => {
                    sequence.restart();
                    (ids, max_new_tokens)
                }
                NextInput::Finished => {
                    environment.judge(&mut episode, &task).await;
                    return Ok(episode.finish());
                }
            };
            let request = GenerateRequest {
                sequence: sequence.id(),
                append,
                max_new_tokens,
                sampler: settings.sampler,
                key: DrawKey {
                    step: settings.step,
                    task: index.task,
                    sample: index.sample,
                    position: sampled,
                },
            };
            let Generated { ids, log_probs } = match self.generator.generate(request).await {
                Ok(generated) => generated,
                Err(error @ GenerateError::Unavailable(_)) => {
                    episode.abort(error.to_string());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            sampled += ids.len() as u64;

            // Parse.
            let step = episode.push_sampled(ids, log_probs);

            // Invoke.
            let turn_context = TurnContext {
                trajectory_id: id.clone(),
                turn,
                seed: settings.seed,
            };
            environment.act(step, &turn_context, &mut episode).await?;
            turn += 1;
        }
    }
}
