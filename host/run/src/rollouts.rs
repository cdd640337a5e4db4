//! Provides training with rollouts: which tasks each step plays, in which order steps are played, and what is learnt
//! from them.

mod step_play;

use std::sync::Arc;

use rlf_dialogue::task::NumberedTask;
use rlf_policy::Model;
use rlf_rewards::drift::Drift;
use rlf_rollout::RolloutError;
use rlf_train::config::RlConfig;
use rlf_train::curriculum::{self, Curriculum, Draw};
use rlf_train::rollouts::{BoxError, Experience, Play, Rollouts};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::ConfigurationError;
use crate::parts::RunParts;
use crate::reporter::RunReporter;
use step_play::{StepPlay, StepSettings};

/// With staleness, the number of the first task that takes the place of another one. It is beyond the tasks of any
/// step, so these tasks come from epochs of their own.
const REPLACEMENTS: u64 = 1 << 40;

/// Plays the training tasks of each RL step.
pub(crate) struct PolicyRollouts {
    /// The run.
    parts: Arc<RunParts>,
    /// Receives alarms.
    reporter: Arc<dyn RunReporter>,
    settings: StepSettings,
    /// Number of steps that are played ahead.
    staleness: u64,
    /// Number of tasks that were taken, if steps take different numbers of them. With staleness, a step begins before
    /// it is known how many tasks the one before it takes, so each step has numbers of its own instead.
    taken: Option<u64>,
    /// Draws tasks by the policy's success on them, if the configuration asks for it. A step keeps the one that drew
    /// it.
    curriculum: Option<Arc<Curriculum>>,
    /// Compares a judge with a verifier, if the configuration asks for it.
    drift: Option<Drift>,
    /// End of the play that began last; none without staleness.
    last_play: Option<oneshot::Receiver<()>>,
}

impl PolicyRollouts {
    /// The rollouts of a run by its `[rl]`.
    pub(crate) fn new(
        parts: Arc<RunParts>,
        config: &RlConfig,
        reporter: Arc<dyn RunReporter>,
    ) -> Result<Self, ConfigurationError> {
        let curriculum = match &config.curriculum {
            None => None,
            Some(settings) => {
                let tasks = parts.tasks.all_training_tasks().ok_or_else(|| {
                    let problem = "[rl.curriculum] needs a limited number of tasks";
                    ConfigurationError::value("rl.curriculum", problem)
                })?;
                let tasks = tasks
                    .iter()
                    .map(|task| (task.id.clone(), curriculum::level(task)));
                let curriculum = Curriculum::new(settings.clone(), parts.config.seed, tasks);
                Some(Arc::new(curriculum))
            }
        };
        let drift = parts.config.rewards.drift.clone().map(Drift::new);
        Ok(Self {
            drift,
            reporter,
            parts,
            settings: StepSettings::new(config),
            staleness: config.staleness,
            taken: None,
            curriculum,
            last_play: None,
        })
    }

    /// Waits until nothing is played any more. A play that was broken off needs a moment to end.
    pub(crate) async fn ended(&self) {
        drop(self.parts.turn.lock().await);
    }

    /// The number of the first task of a step.
    fn first(&self, step: u64) -> u64 {
        let prompts = self.settings.prompts_per_step as u64;
        self.taken.unwrap_or(step * prompts)
    }

    /// The number of the first task that takes the place of another one in a step.
    fn replacements(&self, step: u64) -> u64 {
        let prompts = self.settings.prompts_per_step as u64;
        if self.staleness == 0 {
            return self.first(step) + prompts;
        }
        REPLACEMENTS + step * prompts * u64::from(self.settings.refill)
    }

    /// The tasks of a step, and how the curriculum drew them, if there is one.
    fn tasks(&self, step: u64) -> (Vec<NumberedTask>, Vec<Draw>) {
        let source = &self.parts.tasks;
        let count = self.settings.prompts_per_step;
        let (Some(curriculum), Some(all)) = (&self.curriculum, source.all_training_tasks()) else {
            let first = self.first(step);
            let tasks = source.training_tasks(first..first + count as u64);
            return (tasks, Vec::new());
        };
        let drawn = curriculum.draw(step, count);
        // A task that is drawn twice is sampled with other numbers.
        let first = step * count as u64;
        let tasks = drawn
            .iter()
            .map(|draw| all[draw.task].clone())
            .zip(first..)
            .map(|(task, number)| NumberedTask { number, task });
        (tasks.collect(), drawn)
    }

    /// Gives a play a task of its own, which goes on while nobody waits for it. It begins when the play before it is
    /// over. One at a time has the memory for its cache, and the earlier step is needed first.
    fn spawn(&mut self, play: Play) -> Play {
        let (over, is_over) = oneshot::channel::<()>();
        let before = self.last_play.replace(is_over);
        let task = PlayTask(tokio::spawn(async move {
            if let Some(before) = before {
                // Nothing is sent: the other end is dropped with the play.
                let _ = before.await;
            }
            let played = play.await;
            drop(over);
            played
        }));
        Box::pin(task.played())
    }
}

/// A play in a task of its own. Dropping it breaks the play off.
struct PlayTask(JoinHandle<Result<Experience, BoxError>>);

impl PlayTask {
    async fn played(mut self) -> Result<Experience, BoxError> {
        let played = (&mut self.0).await;
        played.unwrap_or_else(|error| Err(RolloutError::Task(error.to_string()).into()))
    }
}

impl Drop for PlayTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Rollouts for PolicyRollouts {
    fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play {
        let (tasks, drawn) = self.tasks(step);
        let play = StepPlay {
            parts: Arc::clone(&self.parts),
            settings: self.settings,
            step,
            policy,
            weights,
            tasks,
            replacements: self.replacements(step),
            curriculum: self.curriculum.clone(),
            drawn,
        };
        let play: Play = Box::pin(play.play());
        if self.staleness == 0 {
            return play;
        }
        self.spawn(play)
    }

    fn learn(&mut self, step: u64, experience: &mut Experience) -> Option<Value> {
        let curriculum = self.curriculum.as_mut().map(|curriculum| {
            let curriculum = Arc::make_mut(curriculum);
            curriculum.learn(step, &experience.groups);
            curriculum.state()
        });
        let drift = self.drift.as_mut().map(|drift| {
            let (measured, alarm) = drift.measure(&experience.groups);
            experience.metrics.extend(measured);
            if let Some(alarm) = alarm {
                self.reporter.warn(&format!("step {}: {alarm}", step + 1));
            }
            drift.learn(&experience.groups);
            drift.state()
        });
        let counts = self.staleness == 0 && self.settings.refill > 0;
        if counts || self.taken.is_some() {
            self.taken = Some(self.first(step) + experience.groups.len() as u64);
        }
        let taken = self.taken;
        let is_needed = curriculum.is_some() || drift.is_some() || taken.is_some();
        is_needed.then(|| {
            json!(State {
                curriculum,
                drift,
                taken
            })
        })
    }

    fn resume(&mut self, state: &Value) -> Result<(), BoxError> {
        let state = State::deserialize(state)
            .map_err(|error| format!("the state of rollouts in the checkpoint: {error}"))?;
        if let (Some(curriculum), Some(state)) = (&mut self.curriculum, &state.curriculum) {
            Arc::make_mut(curriculum)
                .resume(state)
                .map_err(|error| format!("the curriculum in the checkpoint: {error}"))?;
        }
        if let (Some(drift), Some(state)) = (&mut self.drift, &state.drift) {
            drift
                .resume(state)
                .map_err(|error| format!("the drift in the checkpoint: {error}"))?;
        }
        self.taken = state.taken.filter(|_| self.staleness == 0);
        Ok(())
    }
}

/// The state that later steps depend on, as checkpoints keep it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    curriculum: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drift: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<u64>,
}
