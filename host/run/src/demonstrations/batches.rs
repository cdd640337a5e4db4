//! The batches of SFT: demonstrations, played against the real tools while the step before is trained on.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::trajectory::{MaskedTokens, TrainingSequence, Trajectory};
use rlf_rollout::RolloutEngine;
use rlf_rollout::demonstrate::demonstrate;
use rlf_train::rollouts::{BoxError, DemonstrationSource};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::{RunFailure, TasksError};

use super::{DemonstrationSet, SftDemonstration};

/// Number of batches prepared ahead of training.
const AHEAD: usize = 3;
/// Maximum number of demonstrations that are played before a run begins.
const MAX_REHEARSED: u64 = 256;

type Batch = Result<Vec<MaskedTokens>, RunFailure>;

/// Makes the batches of SFT in the background, in the order of steps.
pub(crate) struct DemonstrationBatches {
    engine: Arc<RolloutEngine>,
    set: Arc<dyn DemonstrationSet>,
    seed: u64,
    /// Marks the tokens of calls, if they have weights of their own.
    marker: Option<Arc<Dialogue>>,
    /// Number of steps of an earlier phase, whose demonstrations are not repeated.
    skip: u64,
    /// The receiver and task of the batches in preparation, with the step of the next one.
    making: Option<(u64, mpsc::Receiver<Batch>, JoinHandle<()>)>,
}

impl DemonstrationBatches {
    pub(crate) fn new(
        engine: Arc<RolloutEngine>,
        set: Arc<dyn DemonstrationSet>,
        seed: u64,
    ) -> Self {
        Self {
            engine,
            set,
            seed,
            marker: None,
            skip: 0,
            making: None,
        }
    }

    /// Marks the tokens of calls.
    pub(crate) fn marking_calls(mut self, dialogue: Arc<Dialogue>) -> Self {
        self.marker = Some(dialogue);
        self
    }

    /// Continues after the demonstrations of the first `steps` steps.
    pub(crate) fn after(mut self, steps: u64) -> Self {
        self.skip = steps;
        self
    }

    fn start(&self, first: u64, size: usize) -> (mpsc::Receiver<Batch>, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let first = first + self.skip;
        let (engine, set, seed) = (self.engine.clone(), self.set.clone(), self.seed);
        let marker = self.marker.clone();
        let maker = tokio::spawn(async move {
            for step in first.. {
                let mut batch = make(&engine, &set, seed, step, size).await;
                if let (Some(marker), Ok(batch)) = (&marker, &mut batch) {
                    for tokens in batch {
                        tokens.calls = marker.call_tokens(tokens);
                    }
                }
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        (receiver, maker)
    }
}

impl Drop for DemonstrationBatches {
    fn drop(&mut self) {
        if let Some((_, _, maker)) = &self.making {
            maker.abort();
        }
    }
}

#[async_trait]
impl DemonstrationSource for DemonstrationBatches {
    async fn batch(&mut self, step: u64, size: usize) -> Result<Vec<MaskedTokens>, BoxError> {
        let mut making = match self.making.take() {
            Some((next, receiver, maker)) if next == step => (next, receiver, maker),
            stale => {
                if let Some((_, _, maker)) = stale {
                    maker.abort();
                }
                let (receiver, maker) = self.start(step, size);
                (step, receiver, maker)
            }
        };
        let batch = making.1.recv().await;
        let batch = batch.ok_or(RunFailure::Bug("the demonstrations' task ended".into()))?;
        making.0 = step + 1;
        self.making = Some(making);
        Ok(batch?)
    }
}

/// Plays the demonstrations that SFT will use in `steps` steps of `size` each, but at most [`MAX_REHEARSED`]. This
/// finds a wrong demonstration before a run begins.
pub(crate) async fn rehearse_demonstrations(
    engine: &Arc<RolloutEngine>,
    set: &Arc<dyn DemonstrationSet>,
    seed: u64,
    steps: u64,
    size: usize,
) -> Result<(), RunFailure> {
    let drawn = steps.saturating_mul(size as u64);
    let count = drawn.min(set.per_epoch()).min(MAX_REHEARSED);
    for first in (0..count).step_by(size.max(1)) {
        let numbers = first..count.min(first + size as u64);
        play(engine, set, seed, numbers).await?;
    }
    Ok(())
}

async fn make(
    engine: &Arc<RolloutEngine>,
    set: &Arc<dyn DemonstrationSet>,
    seed: u64,
    step: u64,
    size: usize,
) -> Batch {
    let first = step * size as u64;
    let trajectories = play(engine, set, seed, first..first + size as u64).await?;
    let sequences = trajectories
        .iter()
        .flat_map(|trajectory| &trajectory.sequences);
    let masked = sequences.map(TrainingSequence::masked);
    Ok(masked
        .collect::<Result<_, _>>()
        .map_err(TasksError::NotTrainable)?)
}

/// Plays the demonstrations of these numbers, all at once. If several fail, only the first error is returned.
async fn play(
    engine: &Arc<RolloutEngine>,
    set: &Arc<dyn DemonstrationSet>,
    seed: u64,
    numbers: Range<u64>,
) -> Result<Vec<Trajectory>, RunFailure> {
    let mut plays = JoinSet::new();
    for number in numbers {
        let (engine, set) = (engine.clone(), set.clone());
        plays.spawn(async move { (number, play_one(&engine, &*set, seed, number).await) });
    }
    let mut done = Vec::with_capacity(plays.len());
    while let Some(joined) = plays.join_next().await {
        done.push(
            joined.map_err(|error| {
                RunFailure::Bug(format!("a demonstration's task failed: {error}"))
            })?,
        );
    }
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, played)| played).collect()
}

async fn play_one(
    engine: &RolloutEngine,
    set: &dyn DemonstrationSet,
    seed: u64,
    number: u64,
) -> Result<Trajectory, RunFailure> {
    Ok(match set.get(number)? {
        SftDemonstration::Played(task, mut demonstrator) => {
            demonstrate(engine, &task, demonstrator.as_mut(), seed).await?
        }
        SftDemonstration::Written(written) => {
            rlf_import::play(&engine.context.dialogue, &written).map_err(TasksError::Play)?
        }
    })
}
