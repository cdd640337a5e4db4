//! Drift of a judged score from a verified one.
//!
//! A policy that is rewarded by a judge may learn to please the judge. If a verifier grades the same trajectories, this
//! shows: the judged score rises, and the verified one does not. [`Drift`] compares the two over the last steps.

use std::collections::VecDeque;

use rlf_dialogue::group::Group;
use serde::{Deserialize, Serialize};

/// `[rewards.drift]` of a configuration: two terms to compare, each as `plugin.term`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftConfig {
    /// The term of the judge.
    pub judged: String,
    /// The term of the verifier.
    pub verified: String,
    /// Number of steps that are compared: the later half with the earlier half. Even, at least 6. Default 20.
    #[serde(default = "default_window")]
    pub window: usize,
}

fn default_window() -> usize {
    20
}

impl DriftConfig {
    /// Refuses values that cannot work: the key, and what to write.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.window < 6 || self.window % 2 == 1 {
            return Err((
                "window",
                format!("{}: write an even number, at least 6", self.window),
            ));
        }
        for (key, term) in [("judged", &self.judged), ("verified", &self.verified)] {
            if !term.contains('.') {
                return Err((key, format!("`{term}`: write `plugin.term`")));
            }
        }
        Ok(())
    }

    /// The keys, each with the name of its plugin.
    pub(crate) fn plugins(&self) -> [(&'static str, &str); 2] {
        [
            ("judged", self.judged.split('.').next().unwrap_or_default()),
            (
                "verified",
                self.verified.split('.').next().unwrap_or_default(),
            ),
        ]
    }
}

/// A rise of the judged score counts if it is more than so many standard errors.
const RISES: f64 = 3.0;
/// The verified score does not rise if its rise is less than so many standard errors.
const FLAT: f64 = 1.0;

/// The means of the two terms in a step: judged, verified.
type Means = (f64, f64);

/// Compares two terms over the last steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    config: DriftConfig,
    /// The latest steps, at most `window`.
    steps: VecDeque<Means>,
    /// True if the last step raised the alarm.
    alarmed: bool,
}

/// The state that a checkpoint keeps.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    steps: VecDeque<Means>,
    alarmed: bool,
}

/// The rise of a score from the earlier half of the steps to the later one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rise {
    rise: f64,
    standard_error: f64,
}

impl Drift {
    /// A comparison that has seen no step.
    pub fn new(config: DriftConfig) -> Self {
        Self {
            config,
            steps: VecDeque::new(),
            alarmed: false,
        }
    }

    /// The metrics of a step, `drift/..`, and the alarm in words if this step raises it. The step is not kept yet.
    pub fn measure(&self, groups: &[Group]) -> (Vec<(String, f64)>, Option<String>) {
        let pairs = self.pairs(groups);
        let Some(now) = means(&pairs) else {
            let is_scored = groups
                .iter()
                .flat_map(|group| &group.scores)
                .any(Result::is_ok);
            let DriftConfig {
                judged, verified, ..
            } = &self.config;
            let warning = is_scored.then(|| {
                format!(
                    "no trajectory has both {judged} and {verified}, which [rewards.drift] compares"
                )
            });
            return (Vec::new(), warning);
        };
        let mut metrics = vec![
            ("drift/judged".to_owned(), now.0),
            ("drift/verified".to_owned(), now.1),
            ("drift/agreement".to_owned(), correlation(&pairs)),
        ];
        let mut steps = self.steps.clone();
        push(&mut steps, now, self.config.window);
        let Some((judged, verified)) = self.rises(&steps) else {
            return (metrics, None);
        };
        let drifts = drifts(judged, verified);
        metrics.push(("drift/judged_rise".to_owned(), judged.rise));
        metrics.push(("drift/verified_rise".to_owned(), verified.rise));
        metrics.push(("drift/alarm".to_owned(), f64::from(u8::from(drifts))));
        let alarm = (drifts && !self.alarmed).then(|| {
            let DriftConfig {
                judged: judge,
                verified: verifier,
                window,
            } = &self.config;
            format!(
                "the judged score {judge} rose by {:.3} in the last {window} steps, and the verified score {verifier} did not \
                 ({:+.3}): the policy may be learning to please the judge; read trajectories, and give {verifier} more weight",
                judged.rise, verified.rise
            )
        });
        (metrics, alarm)
    }

    /// Keeps a step.
    pub fn learn(&mut self, groups: &[Group]) {
        let Some(now) = means(&self.pairs(groups)) else {
            return;
        };
        push(&mut self.steps, now, self.config.window);
        let rises = self.rises(&self.steps);
        self.alarmed = rises.is_some_and(|(judged, verified)| drifts(judged, verified));
    }

    /// The state that later steps depend on.
    pub fn state(&self) -> serde_json::Value {
        let (steps, alarmed) = (self.steps.clone(), self.alarmed);
        serde_json::json!(Kept { steps, alarmed })
    }

    /// Goes on from a state.
    pub fn resume(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error> {
        let Kept { steps, alarmed } = Kept::deserialize(state)?;
        (self.steps, self.alarmed) = (steps, alarmed);
        Ok(())
    }

    /// The values of the two terms, for each trajectory that has both.
    fn pairs(&self, groups: &[Group]) -> Vec<(f64, f64)> {
        let scores = groups.iter().flat_map(|group| &group.scores);
        let term = |terms: &[(String, f64)], name: &str| {
            let mut terms = terms.iter();
            terms
                .find(|(term, _)| term == name)
                .map(|(_, value)| *value)
        };
        scores
            .filter_map(|score| {
                let terms = &score.as_ref().ok()?.terms;
                let judged = term(terms, &self.config.judged)?;
                Some((judged, term(terms, &self.config.verified)?))
            })
            .collect()
    }

    /// The rises of both scores, once there are enough steps.
    fn rises(&self, steps: &VecDeque<Means>) -> Option<(Rise, Rise)> {
        if steps.len() < self.config.window {
            return None;
        }
        let half = steps.len() / 2;
        let rise = |of: fn(&Means) -> f64| {
            let earlier: Vec<f64> = steps.iter().take(half).map(of).collect();
            let later: Vec<f64> = steps.iter().skip(half).map(of).collect();
            let (before, now) = (Spread::of(&earlier), Spread::of(&later));
            Rise {
                rise: now.mean - before.mean,
                standard_error: (now.variance / later.len() as f64
                    + before.variance / earlier.len() as f64)
                    .sqrt(),
            }
        };
        Some((rise(|step| step.0), rise(|step| step.1)))
    }
}

fn drifts(judged: Rise, verified: Rise) -> bool {
    judged.rise > RISES * judged.standard_error
        && judged.rise > 0.0
        && verified.rise <= FLAT * verified.standard_error
}

fn push(steps: &mut VecDeque<Means>, now: Means, window: usize) {
    steps.push_back(now);
    while steps.len() > window {
        steps.pop_front();
    }
}

fn means(pairs: &[(f64, f64)]) -> Option<Means> {
    let count = pairs.len() as f64;
    let sum = pairs
        .iter()
        .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (!pairs.is_empty()).then(|| (sum.0 / count, sum.1 / count))
}

/// Mean and sample variance.
struct Spread {
    mean: f64,
    variance: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        let variance = squares.sum::<f64>() / (count - 1.0).max(1.0);
        Self { mean, variance }
    }
}

/// Pearson's correlation. NaN if one of the two does not vary, which metrics show as null.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let (judged, verified): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (a, b) = (Spread::of(&judged), Spread::of(&verified));
    let products = pairs.iter().map(|(x, y)| (x - a.mean) * (y - b.mean));
    let covariance = products.sum::<f64>() / (pairs.len() as f64 - 1.0).max(1.0);
    covariance / (a.variance * b.variance).sqrt()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rlf_dialogue::score::Score;

    use super::*;

    fn task() -> rlf_dialogue::task::Task {
        let task = serde_json::json!({"id": "t", "source": "s", "prompt": [], "reference": null});
        serde_json::from_value(task).unwrap()
    }

    fn groups(values: &[(f64, f64)]) -> Vec<Group> {
        let scores = values.iter().map(|(judged, verified)| {
            Ok(Score {
                terms: vec![
                    ("judge.score".into(), *judged),
                    ("exact.em".into(), *verified),
                ],
                ..Score::default()
            })
        });
        vec![Group {
            task: Arc::new(task()),
            trajectories: Vec::new(),
            scores: scores.collect(),
            baseline: None,
        }]
    }

    fn drift() -> Drift {
        Drift::new(DriftConfig {
            judged: "judge.score".into(),
            verified: "exact.em".into(),
            window: 8,
        })
    }

    /// Plays steps, and returns the numbers of those that raised the alarm.
    fn alarms(drift: &mut Drift, steps: impl Iterator<Item = (f64, f64)>) -> Vec<usize> {
        let mut raised = Vec::new();
        for (number, step) in steps.enumerate() {
            let groups = groups(&[step]);
            if drift.measure(&groups).1.is_some() {
                raised.push(number);
            }
            drift.learn(&groups);
        }
        raised
    }

    fn noise(step: usize) -> f64 {
        [0.01, -0.02, 0.015, -0.005][step % 4]
    }

    #[test]
    fn a_judged_score_that_rises_alone_raises_the_alarm_once() {
        let pleasing = |step| (0.3 + 0.02 * step as f64 + noise(step), 0.5 + noise(step));
        let mut alone = drift();
        let raised = alarms(&mut alone, (0..30).map(pleasing));
        assert_eq!(raised.len(), 1, "{raised:?}");
        let (metrics, _) = alone.measure(&groups(&[pleasing(30)]));
        assert!(
            metrics.contains(&("drift/alarm".to_owned(), 1.0)),
            "{metrics:?}"
        );

        let honest = |step| {
            (
                0.3 + 0.02 * step as f64,
                0.4 + 0.02 * step as f64 + noise(step),
            )
        };
        assert!(alarms(&mut drift(), (0..30).map(honest)).is_empty());
        let level = |step| (0.3 + noise(step), 0.5 - noise(step));
        assert!(alarms(&mut drift(), (0..30).map(level)).is_empty());
    }

    #[test]
    fn agreement_is_the_correlation_of_the_two() {
        let measured = |values: &[(f64, f64)]| {
            let (metrics, _) = drift().measure(&groups(values));
            metrics[2].1
        };
        assert!((measured(&[(0.1, 0.0), (0.9, 1.0), (0.2, 0.0)]) - 0.9934).abs() < 1e-3);
        assert!(measured(&[(0.1, 1.0), (0.9, 0.0)]) < -0.999);
        assert!(measured(&[(0.5, 1.0), (0.5, 0.0)]).is_nan());
    }

    #[test]
    fn a_term_that_nothing_has_is_named() {
        let misspelt = Drift::new(DriftConfig {
            judged: "judge.scor".into(),
            ..drift().config
        });
        let (_, warning) = misspelt.measure(&groups(&[(0.1, 1.0)]));
        let warning = warning.expect("a warning");
        assert!(
            warning.contains("both judge.scor and exact.em"),
            "{warning}"
        );
    }

    #[test]
    fn a_resumed_comparison_goes_on_as_if_it_had_not_stopped() {
        let step = |step| (0.3 + 0.02 * step as f64, 0.5);
        let mut whole = drift();
        alarms(&mut whole, (0..9).map(step));
        let mut half = drift();
        alarms(&mut half, (0..5).map(step));
        let mut resumed = drift();
        resumed.resume(&half.state()).unwrap();
        alarms(&mut resumed, (5..9).map(step));
        assert_eq!(resumed, whole);
    }
}
