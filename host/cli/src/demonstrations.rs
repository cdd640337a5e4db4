//! Demonstrations for SFT, played against the real tools while the step before is trained on.

use std::sync::Arc;

use anyhow::Context;
use rlf_dialogue::trajectory::{MaskedTokens, TrainingSequence};
use rlf_rollout::Workshop;
use rlf_rollout::demonstrate::demonstrate;
use rlf_train::rollouts::{BoxError, DemonstrationSource};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::tasks::{Demonstration, DemonstrationSet};

/// Batches that wait to be trained on.
const AHEAD: usize = 3;

type Batch = anyhow::Result<Vec<MaskedTokens>>;

/// Plays demonstrations in the background, in the order of steps.
pub(crate) struct Demonstrations {
    workshop: Arc<Workshop>,
    set: Arc<DemonstrationSet>,
    seed: u64,
    /// Steps of an earlier phase whose demonstrations are not to come again.
    skip: u64,
    /// The batches being made, with the step of the next one.
    making: Option<(u64, mpsc::Receiver<Batch>, JoinHandle<()>)>,
}

impl Demonstrations {
    pub(crate) fn new(workshop: Arc<Workshop>, set: Arc<DemonstrationSet>, seed: u64) -> Self {
        Self {
            workshop,
            set,
            seed,
            skip: 0,
            making: None,
        }
    }

    /// Goes on behind the demonstrations of the first `steps` steps.
    pub(crate) fn after(mut self, steps: u64) -> Self {
        self.skip = steps;
        self
    }

    fn start(&self, first: u64, size: usize) -> (mpsc::Receiver<Batch>, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let first = first + self.skip;
        let (workshop, set, seed) = (self.workshop.clone(), self.set.clone(), self.seed);
        let maker = tokio::spawn(async move {
            for step in first.. {
                let batch = make(&workshop, &set, seed, step, size).await;
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        (receiver, maker)
    }
}

impl Drop for Demonstrations {
    fn drop(&mut self) {
        if let Some((_, _, maker)) = &self.making {
            maker.abort();
        }
    }
}

impl DemonstrationSource for Demonstrations {
    fn batch(&mut self, step: u64, size: usize) -> Result<Vec<MaskedTokens>, BoxError> {
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
        let batch = tokio::task::block_in_place(|| making.1.blocking_recv())
            .context("the demonstrations' task ended; this is a bug, please report it")?;
        making.0 = step + 1;
        self.making = Some(making);
        Ok(batch?)
    }
}

async fn make(
    workshop: &Arc<Workshop>,
    set: &Arc<DemonstrationSet>,
    seed: u64,
    step: u64,
    size: usize,
) -> Batch {
    let mut plays = JoinSet::new();
    for place in 0..size as u64 {
        let (workshop, set) = (workshop.clone(), set.clone());
        plays.spawn(async move {
            let demonstration = set.get(step * size as u64 + place)?;
            let trajectory = match demonstration {
                Demonstration::Played(task, mut demonstrator) => {
                    demonstrate(&workshop, &task, demonstrator.as_mut(), seed).await?
                }
                Demonstration::Written(written) => {
                    rlf_import::play(&workshop.scene.dialogue, &written)?
                }
            };
            let sequences: Result<Vec<MaskedTokens>, _> = trajectory
                .sequences
                .iter()
                .map(TrainingSequence::masked)
                .collect();
            Ok::<_, anyhow::Error>((place, sequences?))
        });
    }
    let mut done = Vec::with_capacity(size);
    while let Some(joined) = plays.join_next().await {
        done.push(joined.context("a demonstration's task failed")??);
    }
    done.sort_by_key(|(place, _)| *place);
    Ok(done
        .into_iter()
        .flat_map(|(_, sequences)| sequences)
        .collect())
}
