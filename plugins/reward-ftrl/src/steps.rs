//! A trajectory turn by turn: the sub-answers that its calls solved, and the value of each turn.

use std::collections::BTreeMap;

use rlf_plugin::{CallResult, Event, ModelTurn, Trajectory};

use crate::Config;
use crate::reference::{Reference, Tool};

/// One turn of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    /// Index of the turn among the trajectory's events.
    pub(crate) event: u32,
    /// True if it made a call, even one that the host did not run.
    pub(crate) acted: bool,
    calls: usize,
    solved: usize,
    pub(crate) reward: f64,
}

/// All turns of a trajectory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Episode {
    pub(crate) steps: Vec<Step>,
    /// Number of sub-answers at the start.
    pub(crate) sub_answers: usize,
}

impl Episode {
    pub(crate) fn new(trajectory: &Trajectory, reference: &Reference, config: &Config) -> Self {
        let outcomes: BTreeMap<&str, &CallResult> = trajectory
            .outcomes()
            .map(|outcome| (outcome.call_id.as_str(), outcome))
            .collect();
        let turns: Vec<(u32, &ModelTurn)> = (0..)
            .zip(&trajectory.events)
            .filter_map(|(index, event)| match event {
                Event::Turn(turn) => Some((index, turn)),
                _ => None,
            })
            .collect();
        let mut unsolved = reference.unsolved.clone();
        let sub_answers = left(&unsolved);
        let mut steps = Vec::with_capacity(turns.len());
        for (number, &(event, turn)) in (1..).zip(&turns) {
            let before = left(&unsolved);
            let ended = turn.calls.iter().filter_map(|call| {
                let outcome = outcomes.get(call.call_id.as_str())?;
                Some((call.name.as_str(), config.matching.observed(outcome)))
            });
            let (mut calls, mut solved) = (unknown_tools(turn), 0);
            let acted = !turn.calls.is_empty() || calls > 0;
            for (name, observed) in ended {
                calls += 1;
                solved += usize::from(solves(&mut unsolved, name, observed.as_deref()));
            }
            let reward = if calls > 0 {
                config.step.value(calls, solved)
            } else if acted {
                0.0
            } else {
                let taken = trajectory
                    .answer
                    .as_deref()
                    .filter(|_| number == turns.len());
                silent(turn, taken, reference, before, config)
            };
            steps.push(Step {
                event,
                acted,
                calls,
                solved,
                reward,
            });
        }
        Self { steps, sub_answers }
    }

    pub(crate) fn calls(&self) -> usize {
        self.steps.iter().map(|step| step.calls).sum()
    }

    pub(crate) fn solved(&self) -> usize {
        self.steps.iter().map(|step| step.solved).sum()
    }

    pub(crate) fn solve_p(&self) -> f64 {
        share(self.solved(), self.calls())
    }

    pub(crate) fn solve_r(&self) -> f64 {
        share(self.solved(), self.sub_answers)
    }

    pub(crate) fn solve_f1(&self) -> f64 {
        share(2 * self.solved(), self.calls() + self.sub_answers)
    }

    /// The reward of the last turn if `is` accepts it, else 0.
    pub(crate) fn last(&self, is: impl Fn(&Step) -> bool) -> f64 {
        let last = self.steps.last().filter(|step| is(step));
        last.map_or(0.0, |step| step.reward)
    }

    pub(crate) fn mean(&self) -> f64 {
        let sum: f64 = self.steps.iter().map(|step| step.reward).sum();
        sum / self.steps.len().max(1) as f64
    }
}

/// A share of nothing is 1.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

fn left(unsolved: &[Tool]) -> usize {
    unsolved.iter().map(|tool| tool.left.len()).sum()
}

/// Well-formed calls of tools that do not exist: FTRL runs them, and they fail.
fn unknown_tools(turn: &ModelTurn) -> usize {
    let unknown = |diagnostic: &str| diagnostic == "unknown-tool";
    let malformed = turn.malformed.iter();
    malformed.filter(|call| unknown(&call.diagnostic)).count()
}

/// Removes the first remaining sub-answer of this tool that the observation contains.
fn solves(unsolved: &mut [Tool], name: &str, observed: Option<&str>) -> bool {
    let (Some(tool), Some(observed)) =
        (unsolved.iter_mut().find(|tool| tool.name == name), observed)
    else {
        return false;
    };
    let holds = |parts: &Vec<String>| parts.iter().all(|part| observed.contains(part.as_str()));
    let Some(first) = tool.left.iter().position(holds) else {
        return false;
    };
    tool.left.remove(first);
    true
}

/// The reward of a turn without a call, in the order of FTRL's checks.
fn silent(
    turn: &ModelTurn,
    taken: Option<&str>,
    reference: &Reference,
    left: usize,
    config: &Config,
) -> f64 {
    let matching = config.matching;
    let right = |sought: &str| matching.is_right(turn, taken, sought);
    if matching.is_empty(turn) {
        -0.5
    } else if matching.is_broken(turn) {
        -0.3
    } else if reference.answer.as_deref().is_some_and(right) {
        1.0 / (1.0 + left as f64)
    } else if left == 0 {
        0.5
    } else {
        0.0
    }
}
