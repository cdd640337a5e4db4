//! One trajectory, as the loop reads in the papers: generate, parse, invoke, and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rlf_dialogue::episode::NextInput;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::turn::TurnContext;
use rlf_policy::DrawKey;

use crate::generate::{GenerateRequest, Generated, SequenceId};
use crate::world::{World, unopened};
use crate::{RolloutError, Settings, Workshop};

static NEXT_SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Which trajectory this is: everything random in it follows from here.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Index of the task within its split.
    pub(crate) task_index: u64,
    /// Index of the sample within its group.
    pub(crate) sample: u64,
}

/// Closes the generator's sequence however the trajectory ends, cancellation included.
struct OpenSequence<'a> {
    workshop: &'a Workshop,
    id: SequenceId,
}

impl<'a> OpenSequence<'a> {
    fn new(workshop: &'a Workshop) -> Self {
        Self {
            workshop,
            id: SequenceId(NEXT_SEQUENCE.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl Drop for OpenSequence<'_> {
    fn drop(&mut self) {
        self.workshop.generator.close(self.id);
    }
}

/// Plays one trajectory to its end.
pub(crate) async fn play(
    workshop: Arc<Workshop>,
    settings: Settings,
    task: Arc<Task>,
    place: Place,
) -> Result<Trajectory, RolloutError> {
    // The index too: a row may come twice in one step, at the border of two epochs.
    let sample = if settings.sampler.params().is_greedy() {
        "greedy".to_owned()
    } else {
        place.sample.to_string()
    };
    let id = format!(
        "{}-{}/{}:{}/{sample}",
        settings.split, settings.step, place.task_index, task.id
    );
    let mut world = match World::open(&workshop.scene, &task, settings.split, &id).await? {
        Ok(world) => world,
        Err(why) => return Ok(unopened(id, &task, why)),
    };
    let mut episode = world.begin(&task, id.clone())?;
    let mut sequence = OpenSequence::new(&workshop);
    let mut sampled = 0;
    let mut turn = 0;
    loop {
        let (append, max_new_tokens) = match episode.next_input() {
            NextInput::Continue {
                append,
                max_new_tokens,
            } => (append, max_new_tokens),
            NextInput::Restart {
                ids,
                max_new_tokens,
            } => {
                sequence = OpenSequence::new(&workshop);
                (ids, max_new_tokens)
            }
            NextInput::Finished => {
                world.judge(&mut episode, &task).await;
                return Ok(episode.finish());
            }
        };
        let Generated { ids, log_probs } = workshop
            .generator
            .generate(GenerateRequest {
                sequence: sequence.id,
                append,
                max_new_tokens,
                sampler: settings.sampler,
                key: DrawKey {
                    step: settings.step,
                    task: place.task_index,
                    sample: place.sample,
                    position: sampled,
                },
            })
            .await?;
        sampled += ids.len() as u64;
        let step = episode.push_sampled(ids, log_probs);
        let context = TurnContext {
            trajectory_id: id.clone(),
            turn,
            seed: settings.seed,
        };
        world.take(step, &context, &mut episode).await?;
        turn += 1;
    }
}
