//! One reward plugin. It grades a whole group in one call, and everything that it returns is checked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{Ended, Fault};
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::bindings::{reward, types};
use rlf_plugins::convert::{ContractError, error_text, finite, metrics};
use rlf_plugins::counters::{CallCounters, CallCounts, Unhealthy};
use rlf_plugins::gates::{NestedCalls, Nesting};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::Stopped;
use serde::Serialize;

use crate::grading::{Grading, GradingRequest};
use crate::loader::grade;

/// One plugin's answer for a group: a score or a refusal for each trajectory, or the reason why the call failed.
pub(crate) type PluginAnswer = Result<Vec<Result<PluginScore, GradeError>>, GradeError>;

/// One plugin's score for one trajectory, checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PluginScore {
    /// Named terms, in the plugin's order.
    pub terms: Vec<(String, f64)>,
    /// Credit for single events: index of the event, term, value.
    pub per_event: Vec<(usize, String, f64)>,
    /// Numbers for logs.
    pub metrics: Vec<(String, f64)>,
}

/// The reason why a plugin gave no score.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GradeError {
    /// The call for the whole group failed, or could not be made.
    #[error("{0}")]
    Call(String),
    /// The plugin refused this trajectory, or could not grade it alone, or its score cannot be used.
    #[error("{0}")]
    Trajectory(String),
    /// The score of this trajectory is against the contract.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

/// Grades one trajectory with one plugin alone, as its author does to try it. `tools` are those that the plugin may call, if its grants open any.
pub async fn grade_alone(
    plugin: &Arc<Plugin>,
    tools: &(impl NestedCalls + Clone + 'static),
    task: &Task,
    trajectory: &Trajectory,
    grading: Grading,
) -> Result<PluginScore, GradeError> {
    let mut scores = grade_gradable(plugin, tools, task, &[trajectory], grading).await?;
    scores
        .pop()
        .unwrap_or_else(|| Err(GradeError::Call("it returned no score".to_owned())))
}

/// Grades trajectories of one task with one plugin alone. Returns for each, in order, a score or the reason why it has
/// none. As in a run, the plugin does not see trajectories that were excluded during the rollout.
pub async fn grade_group(
    plugin: &Arc<Plugin>,
    tools: &(impl NestedCalls + Clone + 'static),
    task: &Task,
    group: &[Trajectory],
    grading: Grading,
) -> Vec<Result<PluginScore, GradeError>> {
    let gradable: Vec<&Trajectory> = group.iter().filter(|t| t.excluded.is_none()).collect();
    let scores = if gradable.is_empty() {
        Ok(Vec::new())
    } else {
        grade_gradable(plugin, tools, task, &gradable, grading).await
    };
    let mut scores = match scores {
        Ok(scores) => scores.into_iter(),
        Err(error) => vec![Err(error); gradable.len()].into_iter(),
    };
    let no_score = || Err(GradeError::Call("it returned no score".to_owned()));
    group
        .iter()
        .map(|trajectory| match &trajectory.excluded {
            Some(reason) => Err(GradeError::Trajectory(reason.clone())),
            None => scores.next().unwrap_or_else(no_score),
        })
        .collect()
}

/// Grades trajectories that were not excluded. The outer error applies to all of them, and says how the call ended.
async fn grade_gradable(
    plugin: &Arc<Plugin>,
    tools: &(impl NestedCalls + Clone + 'static),
    task: &Task,
    group: &[&Trajectory],
    grading: Grading,
) -> Result<Vec<Result<PluginScore, GradeError>>, GradeError> {
    let reward = RewardPlugin::new(plugin).ok_or_else(|| {
        let kind = plugin.kind().with_article();
        GradeError::Call(format!(
            "plugin `{}` is {kind}, not a reward",
            plugin.name()
        ))
    })?;
    let request = Arc::new(GradingRequest::new(task, group, grading));
    let tools: Arc<dyn NestedCalls> = Arc::new(tools.clone());
    reward.grade(&request, Some(&tools)).await
}

impl PluginScore {
    pub(crate) fn term(&self, name: &str) -> Option<f64> {
        self.terms
            .iter()
            .find(|(term, _)| term == name)
            .map(|(_, value)| *value)
    }

    fn from_guest(score: reward::Score, events: usize) -> Result<Self, GradeError> {
        let mut seen = BTreeSet::new();
        let mut terms = Vec::with_capacity(score.terms.len());
        for reward::Term { name, value } in score.terms {
            check_term_name(&name)?;
            let value = finite(value, || format!("term `{name}`"))?;
            if !seen.insert(name.clone()) {
                let what = format!("term `{name}` was returned twice");
                return Err(GradeError::Trajectory(what));
            }
            terms.push((name, value));
        }
        let mut per_event = Vec::with_capacity(score.per_event.len());
        for (event, reward::Term { name, value }) in score.per_event {
            check_term_name(&name)?;
            let event = event as usize;
            if event >= events {
                let what = format!(
                    "term `{name}` is for event {event} of a trajectory with {events} events"
                );
                return Err(GradeError::Trajectory(what));
            }
            let value = finite(value, || format!("term `{name}` of event {event}"))?;
            per_event.push((event, name, value));
        }
        let metrics = metrics(score.metrics)?
            .into_iter()
            .map(|metric| (metric.name, metric.value))
            .collect();
        Ok(Self {
            terms,
            per_event,
            metrics,
        })
    }
}

fn check_term_name(name: &str) -> Result<(), GradeError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if (1..=64).contains(&name.len()) && name.chars().all(plain) {
        Ok(())
    } else {
        let shown: String = name.chars().take(64).collect();
        let what = format!("{shown:?} cannot name a term: write 1 to 64 of a-z A-Z 0-9 _ - . /");
        Err(GradeError::Trajectory(what))
    }
}

/// Checks a guest's scores for a group whose trajectories have these numbers of events.
pub(crate) fn check_scores(
    scores: Vec<Result<reward::Score, types::Error>>,
    events: &[usize],
) -> PluginAnswer {
    if scores.len() != events.len() {
        return Err(GradeError::Call(format!(
            "it returned {} scores for {} trajectories",
            scores.len(),
            events.len()
        )));
    }
    Ok(scores
        .into_iter()
        .zip(events)
        .map(|(score, events)| match score {
            Ok(score) => PluginScore::from_guest(score, *events),
            Err(error) => Err(GradeError::Trajectory(error_text(&error))),
        })
        .collect())
}

/// A loaded reward plugin with its counters.
#[derive(Debug)]
pub(crate) struct RewardPlugin {
    plugin: Arc<Plugin>,
    counters: CallCounters,
}

impl RewardPlugin {
    /// Wraps a reward plugin. Returns `None` if the plugin is of another kind.
    pub(crate) fn new(plugin: &Arc<Plugin>) -> Option<Self> {
        (plugin.kind() == PluginKind::Reward).then(|| Self {
            plugin: Arc::clone(plugin),
            counters: CallCounters::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.plugin.name()
    }

    pub(crate) fn counts(&self) -> CallCounts {
        self.counters.snapshot()
    }

    pub(crate) fn check_health(
        &self,
        earlier: &CallCounts,
        max_trap_share: f64,
    ) -> Result<(), Unhealthy> {
        self.counts().since(earlier).check_health(
            self.name(),
            max_trap_share,
            self.plugin.last_trap(),
        )
    }

    /// Grades a group. If the call for the whole group broke or exceeded a limit, each trajectory is graded alone, so
    /// that one expensive or harmful trajectory does not affect the others. If grading one trajectory alone exceeds the
    /// limits, that trajectory gets the score set in `[beyond_limits]` of the manifest, if there is one.
    ///
    /// `tools` are those that the plugin may call, if its grants open any.
    pub(crate) async fn grade(
        &self,
        request: &Arc<GradingRequest>,
        tools: Option<&Arc<dyn NestedCalls>>,
    ) -> PluginAnswer {
        let (answer, ended, fault) = self.grade_together(request, tools).await;
        let by_one = fault != Fault::Infrastructure && (is_limit(ended) || ended == Ended::Trap);
        if answer.is_ok() || !by_one {
            return answer;
        }
        // Whether the task can be graded within the limits. Asked at most once.
        let mut gradable = None;
        if request.group().len() < 2 {
            let blamed = self
                .beyond_limits(request, (ended, fault), tools, &mut gradable)
                .await;
            return blamed.map_or(answer, |score| Ok(vec![score]));
        }
        let mut scores = Vec::with_capacity(request.group().len());
        for index in 0..request.group().len() {
            let alone = Arc::new(request.alone(index));
            let (answer, ended, fault) = self.grade_together(&alone, tools).await;
            let score = match answer {
                Ok(mut scores) => scores
                    .pop()
                    .unwrap_or_else(|| Err(GradeError::Trajectory("it returned no score".into()))),
                Err(why) => self
                    .beyond_limits(&alone, (ended, fault), tools, &mut gradable)
                    .await
                    .unwrap_or_else(|| Err(GradeError::Trajectory(why.to_string()))),
            };
            scores.push(score);
        }
        Ok(scores)
    }

    /// The score that the manifest sets for a trajectory whose grading, alone, exceeds the limits. `None` if the
    /// manifest sets no score, if no limit ended the call, or if even an empty trajectory of the task exceeds the
    /// limits.
    async fn beyond_limits(
        &self,
        request: &GradingRequest,
        (ended, fault): (Ended, Fault),
        tools: Option<&Arc<dyn NestedCalls>>,
        gradable: &mut Option<bool>,
    ) -> Option<Result<PluginScore, GradeError>> {
        let terms = &self.plugin.manifest().beyond_limits;
        if terms.is_empty() || fault == Fault::Infrastructure || !is_limit(ended) {
            return None;
        }
        if gradable.is_none() {
            let (answer, ..) = self.grade_together(&Arc::new(request.idle()), tools).await;
            *gradable = Some(matches!(answer.as_deref(), Ok([Ok(_)])));
        }
        let terms = terms.iter().map(|(name, value)| reward::Term {
            name: name.clone(),
            value: *value,
        });
        let score = reward::Score {
            terms: terms.collect(),
            per_event: vec![],
            metrics: vec![types::Metric {
                name: "beyond_limits".to_owned(),
                value: 1.0,
            }],
        };
        (*gradable == Some(true)).then(|| PluginScore::from_guest(score, 0))
    }

    /// The reason why a call was stopped, with the key that an operator could change.
    fn stop_reason(&self, stopped: &Stopped) -> String {
        match &stopped.limit {
            Some(limit) => format!(
                "{stopped}; raise `{}` in [plugins.{}.limits], or make the group smaller",
                limit.name,
                self.name()
            ),
            None => stopped.to_string(),
        }
    }

    /// Makes one call for a group, and returns how it ended. A reward has no side effects, so a call that failed
    /// because something was unavailable is retried.
    async fn grade_together(
        &self,
        request: &Arc<GradingRequest>,
        tools: Option<&Arc<dyn NestedCalls>>,
    ) -> (PluginAnswer, Ended, Fault) {
        let started = Instant::now();
        let seed = request.seed(self.name());
        let mut attempt = 0;
        let (answer, ended, fault) = loop {
            let nesting = tools.filter(|_| self.plugin.calls_others()).map(|tools| {
                let task = &request.task().id;
                let turn = TurnContext {
                    trajectory_id: format!("{}: grade {task}", self.name()),
                    turn: 0,
                    seed,
                };
                let Grading { split, step, .. } = request.when();
                let call_id = format!("{}/{split}/{step}/{task}", self.name());
                let nesting = Nesting::new(Arc::clone(tools), turn, &call_id);
                Arc::new(nesting.for_group(request.group().len()))
            });
            let (error, end) = match grade(&self.plugin, request, seed, nesting).await {
                Ok(Ok(scores)) => {
                    let answer = check_scores(scores, request.events());
                    break match answer {
                        Ok(scores) => (Ok(scores), Ended::Ok, Fault::None),
                        Err(error) => (Err(error), Ended::Failed, Fault::Plugin),
                    };
                }
                Ok(Err(error)) => (error_text(&error), CallEnd::from_grading_error(&error)),
                Err(stopped) => (self.stop_reason(&stopped), CallEnd::from_stopped(&stopped)),
            };
            if end.may_be_retried() && attempt < self.plugin.grants().retries {
                attempt += 1;
                self.counters.count_retry();
                continue;
            }
            if end.ended == Ended::Trap {
                self.plugin.note_trap(&end);
            }
            break (Err(GradeError::Call(error)), end.ended, end.fault);
        };
        self.counters.count(ended, fault, started.elapsed());
        (answer, ended, fault)
    }
}

/// True if a call that ended like this needed more than its limits allow.
fn is_limit(ended: Ended) -> bool {
    matches!(
        ended,
        Ended::Timeout | Ended::MemoryLimit | Ended::OutputLimit
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlf_dialogue::split::Split;

    fn score(terms: &[(&str, f64)]) -> reward::Score {
        let terms = terms.iter().map(|(name, value)| reward::Term {
            name: (*name).into(),
            value: *value,
        });
        reward::Score {
            terms: terms.collect(),
            per_event: vec![],
            metrics: vec![],
        }
    }

    #[test]
    fn one_score_for_each_trajectory_in_order() {
        let scores = vec![
            Ok(score(&[("em", 1.0)])),
            Err(types::Error::Internal("no gold".into())),
        ];
        let answer = check_scores(scores, &[2, 2]).unwrap();
        assert_eq!(answer[0].as_ref().unwrap().term("em"), Some(1.0));
        assert_eq!(
            answer[1].as_ref().unwrap_err().to_string(),
            "internal: no gold"
        );
    }

    #[test]
    fn the_wrong_number_of_scores_is_refused() {
        assert_eq!(
            check_scores(vec![Ok(score(&[]))], &[1, 1])
                .unwrap_err()
                .to_string(),
            "it returned 1 scores for 2 trajectories"
        );
    }

    #[test]
    fn scores_that_are_not_finite_numbers_exclude_their_trajectory() {
        for (value, shown) in [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let answer = check_scores(
                vec![Ok(score(&[("em", value)])), Ok(score(&[("em", 0.0)]))],
                &[1, 1],
            );
            let answer = answer.unwrap();
            assert_eq!(
                answer[0].as_ref().unwrap_err().to_string(),
                format!("term `em` is {shown}, not a finite number")
            );
            assert!(answer[1].is_ok());
        }
    }

    #[test]
    fn terms_are_named_once_and_plainly() {
        let one = |score| check_scores(vec![Ok(score)], &[1]).unwrap().remove(0);
        assert_eq!(
            one(score(&[("a", 1.0), ("a", 2.0)]))
                .unwrap_err()
                .to_string(),
            "term `a` was returned twice"
        );
        assert!(
            one(score(&[("a b", 1.0)]))
                .unwrap_err()
                .to_string()
                .starts_with("\"a b\" cannot name a term")
        );
        assert!(one(score(&[("", 1.0)])).is_err());
        assert!(one(score(&[("step/em.strict", 1.0)])).is_ok());
    }

    #[test]
    fn credit_is_for_events_that_exist() {
        let mut beyond = score(&[]);
        beyond.per_event = vec![(
            2,
            reward::Term {
                name: "step".into(),
                value: 1.0,
            },
        )];
        assert_eq!(
            check_scores(vec![Ok(beyond)], &[2])
                .unwrap()
                .remove(0)
                .unwrap_err()
                .to_string(),
            "term `step` is for event 2 of a trajectory with 2 events"
        );
    }

    #[test]
    fn every_call_of_a_grading_has_a_seed_of_its_own() {
        let task = |id: &str| Task {
            id: id.into(),
            source: String::new(),
            prompt: vec![],
            tools: None,
            reference: serde_json::Value::Null,
            environment: None,
            setup: serde_json::Value::Null,
            extra: serde_json::Map::new(),
        };
        let seed = |id: &str, step: u64, plugin: &str| {
            let grading = Grading {
                split: Split::Train,
                step,
                steps: 10,
                seed: 1,
            };
            GradingRequest::new(&task(id), &[], grading).seed(plugin)
        };
        let one = seed("t1", 3, "em");
        assert_eq!(one, seed("t1", 3, "em"));
        assert!(
            [
                seed("t2", 3, "em"),
                seed("t1", 4, "em"),
                seed("t1", 3, "f1")
            ]
            .iter()
            .all(|s| *s != one)
        );
    }
}
