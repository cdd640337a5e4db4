//! Groups of trajectories: all of them in flight at once, each group graded when it is complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rlf_dialogue::group::Group;
use rlf_dialogue::score::ExclusionCause;
use rlf_dialogue::task::NumberedTask;
use rlf_dialogue::trajectory::Trajectory;
use rlf_rewards::grading::Grading;
use tokio::task::JoinSet;

use crate::engine::RolloutEngine;
use crate::error::RolloutError;
use crate::settings::{RolloutSettings, TrajectoryIndex};

/// Plays `samples` trajectories of each task and grades them group by group.
///
/// There is no barrier: a trajectory waits for its own tools only. A group is graded as soon as its
/// last trajectory ends, while others still run. Groups come back in the order of `tasks`.
pub fn rollout<'a>(
    engine: &'a Arc<RolloutEngine>,
    tasks: &'a [NumberedTask],
    samples: usize,
    settings: &'a RolloutSettings,
) -> BoxFuture<'a, Result<Vec<Group>, RolloutError>> {
    Box::pin(async move {
        let mut groups = JoinSet::new();
        for (place, task) in tasks.iter().enumerate() {
            let group = play_group(engine.clone(), task.clone(), samples, settings.clone());
            groups.spawn(async move { (place, group.await) });
        }
        let mut done = BTreeMap::new();
        while let Some(joined) = groups.join_next().await {
            let (place, group) = joined.map_err(|error| RolloutError::Task(error.to_string()))?;
            done.insert(place, group?);
        }
        Ok(done.into_values().collect())
    })
}

async fn play_group(
    engine: Arc<RolloutEngine>,
    NumberedTask { number, task }: NumberedTask,
    samples: usize,
    settings: RolloutSettings,
) -> Result<Group, RolloutError> {
    let mut plays = JoinSet::new();
    for sample in 0..samples as u64 {
        let index = TrajectoryIndex {
            task: number,
            sample,
        };
        let (engine, settings, task) = (engine.clone(), settings.clone(), task.clone());
        plays.spawn(async move {
            let played = engine.player.play(&engine.context, settings, task, index);
            (sample, played.await)
        });
    }
    let mut done = BTreeMap::new();
    while let Some(joined) = plays.join_next().await {
        let (sample, trajectory) = joined.map_err(|error| RolloutError::Task(error.to_string()))?;
        done.insert(sample, trajectory?);
    }
    let trajectories: Vec<Trajectory> = done.into_values().collect();
    let grading = Grading {
        split: settings.split,
        step: settings.step,
        steps: settings.steps,
        seed: settings.seed,
    };
    let scores = engine.rewards.grade(&task, &trajectories, &grading).await;
    // A wrong configuration excludes every trajectory of every step, so it ends the rollout.
    let misconfigured = scores
        .iter()
        .filter_map(|graded| graded.as_ref().err())
        .find(|excluded| excluded.cause == ExclusionCause::Config);
    if let Some(excluded) = misconfigured {
        return Err(RolloutError::Rewards(excluded.reason.clone()));
    }
    Ok(Group {
        task,
        trajectories,
        scores,
        baseline: None,
    })
}
