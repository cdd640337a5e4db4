//! Demonstrations: episodes with turns that a demonstrator writes, played against the real tools.

use std::error::Error;

use futures_util::future::BoxFuture;
use rlf_dialogue::episode::{Episode, NextInput, Step};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::score::{ExclusionCause, Score};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Ended};
use rlf_dialogue::trajectory::{Event, Finish, Trajectory};
use rlf_plugins::turn::TurnContext;
use rlf_rewards::grading::Grading;

use crate::engine::RolloutEngine;
use crate::error::RolloutError;
use crate::task_environment::{SetupError, TaskEnvironment};

/// Maximum number of characters of an observation or a reference in an error.
const MAX_SHOWN_CHARS: usize = 300;

/// The reason why a demonstrator cannot continue.
pub type DemonstratorError = Box<dyn Error + Send + Sync>;

/// Writes the turns of one episode, one after the other.
pub trait Demonstrator: Send {
    /// The next turn of `episode`, as [`Episode::write_turn`] writes it.
    ///
    /// `observations` are the observations of the previous turn's calls, in call order; empty at
    /// first.
    fn next_turn(
        &mut self,
        episode: &Episode,
        observations: &[String],
    ) -> Result<String, DemonstratorError>;
}

/// Plays `task` with the turns of `demonstrator` against the real tools.
///
/// Fails unless the real rewards call the trajectory a success: a demonstration is correct by
/// execution, never by assumption. In a task without an environment it also fails if a call did not end well, because there
/// no verdict judges what the calls did.
pub fn demonstrate<'a>(
    engine: &'a RolloutEngine,
    task: &'a Task,
    demonstrator: &'a mut dyn Demonstrator,
    seed: u64,
) -> BoxFuture<'a, Result<Trajectory, RolloutError>> {
    Box::pin(async move {
        let id = format!("demonstration/{}", task.id);
        let wrong = |what: String| RolloutError::Demonstration {
            task: task.id.clone(),
            what,
        };
        let entered = TaskEnvironment::enter(&engine.context, task, Split::Train, &id).await;
        let (mut environment, mut episode) = entered.map_err(|error| match error {
            SetupError::Excluded(why) => wrong(why),
            SetupError::Rollout(error) => error,
        })?;
        let mut observations = Vec::new();
        // Counted from 0 for plugins, and from 1 for people.
        let mut turn = 0;
        while !matches!(episode.next_input(), NextInput::Finished) {
            let text = demonstrator
                .next_turn(&episode, &observations)
                .map_err(|why| {
                    let tools: Vec<&str> = episode.tools().iter().map(|tool| &*tool.name).collect();
                    let tools = tools.join(", ");
                    if observations.is_empty() {
                        return wrong(format!("{why}; the task's tools are: {tools}"));
                    }
                    wrong(format!(
                        "after {observations:?}: {why}; the task's tools are: {tools}"
                    ))
                })?;
            observations.clear();
            let step = episode.push_demonstrated(&text);
            if step == Step::Continue {
                let malformed = episode.events().iter().rev().find_map(|event| match event {
                    Event::Turn(said) => said.malformed.first(),
                    Event::Outcome(_) | Event::User(_) => None,
                });
                let what = malformed.map_or_else(
                    || "neither call nor answer".to_owned(),
                    |call| format!("a call that cannot be made ({})", call.diagnostic),
                );
                let tools: Vec<&str> = episode.tools().iter().map(|tool| &*tool.name).collect();
                return Err(wrong(format!(
                    "turn {} is {what}: {text:?}; there are: {}",
                    turn + 1,
                    tools.join(", ")
                )));
            }
            let context = TurnContext {
                trajectory_id: id.clone(),
                turn,
                seed,
            };
            let outcomes = environment.act(step, &context, &mut episode).await?;
            let failed = outcomes.iter().find(|outcome| outcome.ended != Ended::Ok);
            if let Some(failed) = failed.filter(|_| task.environment.is_none()) {
                return Err(wrong(format!("turn {}: {}", turn + 1, ended_badly(failed))));
            }
            observations.extend(outcomes.iter().map(|outcome| {
                outcome
                    .observation
                    .as_ref()
                    .map_or_else(String::new, |seen| plain_text(&seen.content))
            }));
            turn += 1;
        }
        environment.judge(&mut episode, task).await;
        let trajectory = episode.finish();
        let grading = Grading {
            split: Split::Train,
            step: 0,
            steps: 0,
            seed,
        };
        let mut scores = engine
            .rewards
            .grade(task, std::slice::from_ref(&trajectory), &grading)
            .await;
        match scores.pop() {
            Some(Ok(score)) if score.success => Ok(trajectory),
            Some(Ok(score)) => Err(wrong(not_a_success(engine, task, &trajectory, &score))),
            Some(Err(excluded)) if excluded.cause == ExclusionCause::Config => {
                Err(RolloutError::Rewards(excluded.reason))
            }
            Some(Err(excluded)) => Err(wrong(format!(
                "it could not be graded: {}",
                excluded.reason
            ))),
            None => Err(wrong("it was not graded".into())),
        }
    })
}

/// Says how a call ended that did not end well.
fn ended_badly(outcome: &CallOutcome) -> String {
    let seen = outcome.observation.as_ref();
    let seen = seen.map_or_else(String::new, |seen| plain_text(&seen.content));
    let seen: String = seen.chars().take(MAX_SHOWN_CHARS).collect();
    format!(
        "a call of {} ended as {}: {seen:?}",
        outcome.name,
        outcome.ended.as_str()
    )
}

/// The reason why a trajectory that was played is not a demonstration.
fn not_a_success(
    engine: &RolloutEngine,
    task: &Task,
    trajectory: &Trajectory,
    score: &Score,
) -> String {
    let config = engine.context.dialogue.config();
    let turns = trajectory.turns().count();
    let ended = match trajectory.finish {
        Finish::MaxTurns => format!(
            "it was cut off after {turns} turns; raise dialogue.max_turns ({})",
            config.max_turns
        ),
        Finish::Length => format!(
            "it was cut off where the context was full; raise dialogue.context ({})",
            config.context
        ),
        _ => match &trajectory.answer {
            Some(answer) => format!("it answers {answer:?}"),
            None => format!("it ends without an answer after {turns} turns"),
        },
    };
    let judged = match (&trajectory.verdict, &trajectory.unjudged) {
        (Some(verdict), _) if !verdict.reason.is_empty() => {
            format!("; its environment says: {}", verdict.reason)
        }
        (_, Some(unjudged)) => format!("; its environment judges nothing: {unjudged}"),
        _ => String::new(),
    };
    let failed = trajectory
        .outcomes()
        .find(|outcome| outcome.ended != Ended::Ok);
    let failed = failed.map_or_else(String::new, |failed| format!("; {}", ended_badly(failed)));
    let terms = score.terms.iter();
    let terms: Vec<String> = terms
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let reference: String = task
        .reference
        .to_string()
        .chars()
        .take(MAX_SHOWN_CHARS)
        .collect();
    format!(
        "{ended}{failed}{judged}; it is graded {}, which is no success, against {reference}",
        terms.join(", ")
    )
}
