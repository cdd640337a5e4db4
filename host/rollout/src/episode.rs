//! One trajectory, in the loop that the papers describe: generate, parse, invoke, and again.

use std::sync::Arc;

use rlf_dialogue::episode::NextInput;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::turn::TurnContext;
use rlf_policy::DrawKey;

use crate::engine::RolloutEngine;
use crate::error::RolloutError;
use crate::generate::{GenerateRequest, Generated, OpenSequence};
use crate::settings::{RolloutSettings, TrajectoryIndex};
use crate::task_environment::{SetupError, TaskEnvironment, excluded_trajectory};

/// Plays one trajectory to its end.
pub(crate) async fn play(
    engine: Arc<RolloutEngine>,
    settings: RolloutSettings,
    task: Arc<Task>,
    index: TrajectoryIndex,
) -> Result<Trajectory, RolloutError> {
    let id = settings.trajectory_id(&task, index);
    let opened = TaskEnvironment::open(&engine.context, &task, settings.split, &id).await;
    let mut environment = match opened {
        Ok(environment) => environment,
        Err(SetupError::Excluded(why)) => return Ok(excluded_trajectory(id, &task, why)),
        Err(SetupError::Rollout(error)) => return Err(error),
    };
    let mut episode = environment.begin(&task, id.clone())?;
    let generator = &engine.generator;
    let mut sequence = OpenSequence::new(generator);
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
        let Generated { ids, log_probs } = generator.generate(request).await?;
        sampled += ids.len() as u64;

        // Parse.
        let step = episode.push_sampled(ids, log_probs);

        // Invoke.
        let context = TurnContext {
            trajectory_id: id.clone(),
            turn,
            seed: settings.seed,
        };
        environment.act(step, &context, &mut episode).await?;
        turn += 1;
    }
}
