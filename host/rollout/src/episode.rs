//! One trajectory, in the loop that the papers describe: generate, parse, invoke, and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rlf_dialogue::episode::NextInput;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::turn::TurnContext;
use rlf_policy::DrawKey;

use crate::engine::{RolloutEngine, RolloutSettings};
use crate::error::RolloutError;
use crate::generate::{GenerateRequest, Generated, Generator, SequenceId};
use crate::task_environment::{SetupError, TaskEnvironment, excluded_trajectory};

static NEXT_SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// The place of a trajectory in its rollout. Everything random in the trajectory follows from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrajectoryIndex {
    /// The task's number: see [`NumberedTask`](rlf_dialogue::task::NumberedTask).
    pub(crate) task: u64,
    /// Index of the sample within its group.
    pub(crate) sample: u64,
}

/// Closes the generator's sequence however the trajectory ends, cancellation included.
struct OpenSequence<'a> {
    generator: &'a dyn Generator,
    id: SequenceId,
}

impl<'a> OpenSequence<'a> {
    fn new(generator: &'a dyn Generator) -> Self {
        Self {
            generator,
            id: SequenceId(NEXT_SEQUENCE.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl Drop for OpenSequence<'_> {
    fn drop(&mut self) {
        self.generator.close(self.id);
    }
}

/// Plays one trajectory to its end.
pub(crate) async fn play(
    engine: Arc<RolloutEngine>,
    settings: RolloutSettings,
    task: Arc<Task>,
    index: TrajectoryIndex,
) -> Result<Trajectory, RolloutError> {
    let sample = if settings.sampler.params().is_greedy() {
        "greedy".to_owned()
    } else {
        index.sample.to_string()
    };
    // With the task's number: at the border of two epochs one row may come twice in a step.
    let id = format!(
        "{}-{}/{}:{}/{sample}",
        settings.split, settings.step, index.task, task.id
    );
    let opened = TaskEnvironment::open(&engine.context, &task, settings.split, &id).await;
    let mut environment = match opened {
        Ok(environment) => environment,
        Err(SetupError::Excluded(why)) => return Ok(excluded_trajectory(id, &task, why)),
        Err(SetupError::Rollout(error)) => return Err(error),
    };
    let mut episode = environment.begin(&task, id.clone())?;
    let generator = &*engine.generator;
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
                sequence = OpenSequence::new(generator);
                (ids, max_new_tokens)
            }
            NextInput::Finished => {
                environment.judge(&mut episode, &task).await;
                return Ok(episode.finish());
            }
        };
        let request = GenerateRequest {
            sequence: sequence.id,
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
