//! The formula that turns terms into a reward: weights, gates and the condition of success. It is separate from the
//! plugins that return the terms, so that it can be read and tested alone.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::score::{EventCredit, Excluded, ExclusionCause, Graded, Score};
use rlf_dialogue::trajectory::Event;

use crate::error::RewardsError;
use crate::expression::Condition;
use crate::reward::{PluginAnswer, PluginScore};
use crate::rewards_config::{RewardsConfig, TermRange, Weights};

/// One checked entry.
#[derive(Debug, Clone)]
struct Part {
    /// Index into `plugins`.
    plugin: usize,
    weights: Weights,
    ranges: Vec<TermRange>,
    gate: Option<Condition>,
}

/// The checked `[rewards]` of a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Formula {
    /// The plugins, each once, in order of first mention.
    pub(crate) names: Vec<String>,
    parts: Vec<Part>,
    /// Weights of per-event terms in the rewards of turns, by `plugin.term`.
    pub(crate) turns: BTreeMap<String, f64>,
    pub(crate) success: Condition,
}

impl Formula {
    pub(crate) fn new(config: &RewardsConfig) -> Result<Self, RewardsError> {
        if config.stack.is_empty() {
            return Err(RewardsError::Empty);
        }
        let mut names: Vec<String> = Vec::new();
        let mut parts = Vec::new();
        let mut turns: BTreeMap<String, f64> = BTreeMap::new();
        for (index, entry) in config.stack.iter().enumerate() {
            let plugin = names
                .iter()
                .position(|name| *name == entry.plugin)
                .unwrap_or_else(|| {
                    names.push(entry.plugin.clone());
                    names.len() - 1
                });
            let bad = |source| RewardsError::BadWeights {
                entry: index + 1,
                plugin: entry.plugin.clone(),
                source,
            };
            let weights = entry.checked_weights().map_err(bad)?;
            let ranges = entry.checked_ranges().map_err(bad)?;
            for (term, weight) in &entry.turns {
                *turns.entry(format!("{}.{term}", entry.plugin)).or_default() += weight;
            }
            parts.push(Part {
                plugin,
                weights,
                ranges,
                gate: entry.gate.clone(),
            });
        }
        let formula = Self {
            names,
            parts,
            turns,
            success: config.success.clone(),
        };
        formula.check_condition("rewards.success", &config.success)?;
        for entry in &config.stack {
            if let Some(gate) = &entry.gate {
                formula.check_condition(&format!("the gate of `{}`", entry.plugin), gate)?;
            }
        }
        Ok(formula)
    }

    fn check_condition(&self, place: &str, condition: &Condition) -> Result<(), RewardsError> {
        if self.names.contains(&condition.plugin) {
            return Ok(());
        }
        Err(RewardsError::NotInStack {
            place: place.into(),
            condition: condition.to_string(),
            plugin: condition.plugin.clone(),
        })
    }

    /// Computes one result for each of `count` trajectories, from the answers of all plugins in order.
    pub(crate) fn scores(&self, answers: &[PluginAnswer], count: usize) -> Vec<Graded> {
        // After a failed call, no trajectory of the group can have a score.
        let failed: Vec<String> = self
            .names
            .iter()
            .zip(answers)
            .filter_map(|(name, answer)| {
                answer
                    .as_ref()
                    .err()
                    .map(|error| format!("reward `{name}` failed: {error}"))
            })
            .collect();
        (0..count)
            .map(|index| {
                if !failed.is_empty() {
                    let reason = failed.join("; ");
                    return Err(Excluded {
                        reason,
                        cause: ExclusionCause::RewardCall,
                    });
                }
                let of_one: Result<Vec<&PluginScore>, Excluded> = self
                    .names
                    .iter()
                    .zip(answers)
                    .map(
                        |(name, answer)| match answer.as_ref().map(|all| &all[index]) {
                            Ok(Ok(score)) => Ok(score),
                            Ok(Err(error)) | Err(error) => Err(Excluded {
                                reason: format!("reward `{name}` gave no score: {error}"),
                                cause: ExclusionCause::Reward,
                            }),
                        },
                    )
                    .collect();
                self.score(&of_one?)
            })
            .collect()
    }

    /// Computes the score of one trajectory from the scores of all plugins.
    fn score(&self, scores: &[&PluginScore]) -> Graded {
        let mut reward = 0.0;
        for part in &self.parts {
            let name = &self.names[part.plugin];
            let score = scores[part.plugin];
            for (term, range) in &part.ranges {
                let value =
                    (score.term(term)).ok_or_else(|| unknown_term(name, Some(term), score))?;
                if !range.contains(&value) {
                    return Err(Excluded {
                        reason: format!(
                            "reward `{name}` returned {term} = {value}, and its range is {} to {}",
                            range.start(),
                            range.end()
                        ),
                        cause: ExclusionCause::Reward,
                    });
                }
            }
            let open = match &part.gate {
                Some(gate) => self.holds(gate, scores)?,
                None => true,
            };
            let mut sum = 0.0;
            match &part.weights {
                Weights::First(weight) => {
                    if let Some((_, value)) = score.terms.first() {
                        sum += weight * value;
                    } else if *weight != 0.0 {
                        return Err(unknown_term(name, None, score));
                    }
                }
                Weights::Named(named) => {
                    for (term, weight) in named {
                        sum += weight
                            * score
                                .term(term)
                                .ok_or_else(|| unknown_term(name, Some(term), score))?;
                    }
                }
            }
            if open {
                reward += sum;
            }
        }
        let success = self.holds(&self.success, scores)?;
        let labelled = |pairs: fn(&PluginScore) -> &[(String, f64)]| -> Vec<(String, f64)> {
            let all = self.names.iter().zip(scores);
            all.flat_map(|(name, score)| {
                pairs(score)
                    .iter()
                    .map(move |(term, value)| (format!("{name}.{term}"), *value))
            })
            .collect()
        };
        let per_event = self.names.iter().zip(scores).flat_map(|(name, score)| {
            score
                .per_event
                .iter()
                .map(move |(event, term, value)| EventCredit {
                    event: *event,
                    term: format!("{name}.{term}"),
                    value: *value,
                })
        });
        Ok(Score {
            reward,
            success,
            terms: labelled(|score| &score.terms),
            per_event: per_event.collect(),
            metrics: labelled(|score| &score.metrics),
            turn_rewards: None,
        })
    }

    /// The rewards of a trajectory's turns, from the credit of its events; none if no weights ask for them.
    pub(crate) fn turn_rewards(
        &self,
        credits: &[EventCredit],
        events: &[Event],
    ) -> Option<Vec<f64>> {
        if self.turns.is_empty() {
            return None;
        }
        // The turn of each event. What happens before the model speaks is no turn's.
        let mut turns = 0;
        let of_event: Vec<Option<usize>> = events
            .iter()
            .map(|event| {
                turns += usize::from(matches!(event, Event::Turn(turn) if turn.tokens > 0));
                turns.checked_sub(1)
            })
            .collect();
        let mut rewards = vec![0.0; turns];
        for credit in credits {
            let weight = self.turns.get(&credit.term);
            let turn = of_event.get(credit.event).copied().flatten();
            if let (Some(weight), Some(turn)) = (weight, turn) {
                rewards[turn] += weight * credit.value;
            }
        }
        Some(rewards)
    }

    fn holds(&self, condition: &Condition, scores: &[&PluginScore]) -> Result<bool, Excluded> {
        let at = self.names.iter().position(|name| *name == condition.plugin);
        let score = at.map_or_else(|| unreachable!("checked in `new`"), |at| scores[at]);
        match score.term(&condition.term) {
            Some(value) => Ok(condition.holds(value)),
            None => Err(unknown_term(
                &condition.plugin,
                Some(&condition.term),
                score,
            )),
        }
    }
}

fn unknown_term(plugin: &str, term: Option<&str>, score: &PluginScore) -> Excluded {
    let returned: BTreeSet<&str> = score.terms.iter().map(|(name, _)| name.as_str()).collect();
    let near = term.and_then(|term| rlf_config::nearest(term, returned.iter().copied()));
    let hint = near.map_or_else(String::new, |near| {
        format!("; did you mean `{plugin}.{near}`?")
    });
    let returned = if returned.is_empty() {
        "no terms at all".to_owned()
    } else {
        returned
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let reason = match term {
        Some(term) => format!(
            "[rewards] names the term `{plugin}.{term}`, but plugin `{plugin}` returns {returned}{hint}"
        ),
        None => format!("[rewards] weighs plugin `{plugin}`, which returns {returned}"),
    };
    Excluded {
        reason,
        cause: ExclusionCause::Config,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reward::GradeError;

    fn formula(text: &str) -> Result<Formula, RewardsError> {
        Formula::new(&rlf_config::parse(text, "t.toml").unwrap())
    }

    fn plugin(terms: &[(&str, f64)]) -> PluginScore {
        PluginScore {
            terms: terms
                .iter()
                .map(|(name, value)| ((*name).into(), *value))
                .collect(),
            per_event: vec![(3, "step".into(), 0.25)],
            metrics: vec![("tokens".into(), 7.0)],
        }
    }

    const STACK: &str = r#"
success = "em.em >= 1"
[[stack]]
plugin = "em"
weights = { em = 1.0, f1 = 0.5 }
gate = "format.ok >= 1"
[[stack]]
plugin = "format"
weight = 0.1
"#;

    #[test]
    fn the_reward_is_the_weighted_sum_of_terms() {
        let em = plugin(&[("em", 1.0), ("f1", 0.5)]);
        let format = plugin(&[("ok", 1.0), ("calls", 0.0)]);
        let score = formula(STACK).unwrap().score(&[&em, &format]).unwrap();
        assert_eq!(score.reward, 1.0 + 0.5 * 0.5 + 0.1);
        assert!(score.success);
        let terms: Vec<(&str, f64)> = score.terms.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        assert_eq!(
            terms,
            [
                ("em.em", 1.0),
                ("em.f1", 0.5),
                ("format.ok", 1.0),
                ("format.calls", 0.0)
            ]
        );
        assert_eq!(
            score.per_event[1],
            EventCredit {
                event: 3,
                term: "format.step".into(),
                value: 0.25
            }
        );
        assert_eq!(score.metrics[0], ("em.tokens".into(), 7.0));
    }

    #[test]
    fn a_term_outside_its_range_excludes_instead_of_scoring() {
        let stack =
            "success = \"em.em >= 1\"\n[[stack]]\nplugin = \"em\"\nranges = { em = [0.0, 1.0] }\n";
        let formula = formula(stack).unwrap();
        for (value, is_in) in [(0.0, true), (1.0, true), (1.01, false), (-0.1, false)] {
            let graded = formula.score(&[&plugin(&[("em", value)])]);
            assert_eq!(graded.is_ok(), is_in, "{value}");
            if let Err(excluded) = graded {
                assert_eq!(excluded.cause, ExclusionCause::Reward);
                assert!(excluded.reason.contains("range is 0 to 1"), "{excluded:?}");
            }
        }
        let misspelt = formula.score(&[&plugin(&[("me", 0.5)])]).unwrap_err();
        assert_eq!(misspelt.cause, ExclusionCause::Config);
    }

    #[test]
    fn a_turn_has_the_credit_of_its_events() {
        let stack = "success = \"em.em >= 1\"\n[[stack]]\nplugin = \"em\"\n";
        let turn = |tokens: u32| {
            let json = json!({ "turn": {
                "text": "", "reasoning": null, "visible": "", "calls": [], "malformed": [], "tokens": tokens,
            }});
            serde_json::from_value::<Event>(json).unwrap()
        };
        let user = || {
            serde_json::from_value::<Event>(
                json!({ "user": { "role": "user", "content": "Go on." }}),
            )
        };
        // A turn without tokens is no turn of the model's.
        let events = [
            user().unwrap(),
            turn(3),
            user().unwrap(),
            turn(0),
            turn(2),
            user().unwrap(),
        ];
        let credit = |event: usize, term: &str, value: f64| EventCredit {
            event,
            term: term.into(),
            value,
        };
        let credits = [
            credit(0, "em.step", 100.0),
            credit(1, "em.step", 1.0),
            credit(2, "em.step", 0.5),
            credit(3, "em.step", 0.25),
            credit(5, "em.step", 8.0),
            credit(5, "em.other", 100.0),
        ];
        assert_eq!(
            formula(stack).unwrap().turn_rewards(&credits, &events),
            None
        );
        let graded = format!("{stack}turns = {{ step = 2.0 }}\n");
        let rewards = formula(&graded).unwrap().turn_rewards(&credits, &events);
        assert_eq!(rewards, Some(vec![3.5, 16.0]));
    }

    #[test]
    fn a_gate_that_does_not_hold_takes_its_entry_and_nothing_else() {
        let em = plugin(&[("em", 1.0), ("f1", 1.0)]);
        let format = plugin(&[("ok", 0.5)]);
        let score = formula(STACK).unwrap().score(&[&em, &format]).unwrap();
        assert_eq!(score.reward, 0.1 * 0.5);
        assert!(
            score.success,
            "success is its own condition, not the weighted sum"
        );
    }

    #[test]
    fn a_term_that_does_not_exist_is_named_beside_those_that_do() {
        let em = plugin(&[("em", 1.0)]);
        let format = plugin(&[("ok", 1.0)]);
        let excluded = formula(STACK).unwrap().score(&[&em, &format]).unwrap_err();
        assert_eq!(excluded.cause, ExclusionCause::Config);
        assert_eq!(
            excluded.reason,
            "[rewards] names the term `em.f1`, but plugin `em` returns `em`"
        );
        let em = plugin(&[("em", 1.0), ("f1", 1.0)]);
        let excluded = formula(STACK)
            .unwrap()
            .score(&[&em, &plugin(&[("valid", 1.0), ("extra", 1.0)])]);
        assert_eq!(
            excluded.unwrap_err().reason,
            "[rewards] names the term `format.ok`, but plugin `format` returns `extra`, `valid`"
        );
        let excluded = formula(STACK)
            .unwrap()
            .score(&[&em, &plugin(&[("okk", 1.0)])]);
        assert_eq!(
            excluded.unwrap_err().reason,
            "[rewards] names the term `format.ok`, but plugin `format` returns `okk`; did you mean `format.okk`?"
        );
    }

    #[test]
    fn a_plugin_in_two_entries_is_asked_once() {
        let text = r#"
success = "em.em >= 1"
[[stack]]
plugin = "em"
term = "em"
[[stack]]
plugin = "em"
term = "f1"
weight = 0.5
gate = "em.em < 1"
"#;
        let formula = formula(text).unwrap();
        assert_eq!(formula.names, ["em"]);
        let right = formula
            .score(&[&plugin(&[("em", 1.0), ("f1", 1.0)])])
            .unwrap();
        let near = formula
            .score(&[&plugin(&[("em", 0.0), ("f1", 0.8)])])
            .unwrap();
        assert_eq!((right.reward, near.reward), (1.0, 0.4));
        assert_eq!((right.success, near.success), (true, false));
    }

    #[test]
    fn a_refusal_excludes_one_and_a_failed_call_excludes_all() {
        let formula = formula(STACK).unwrap();
        let ok = || plugin(&[("em", 1.0), ("f1", 1.0)]);
        let format = || Ok(vec![Ok(plugin(&[("ok", 1.0)])), Ok(plugin(&[("ok", 1.0)]))]);

        let refused = GradeError::Trajectory("no gold".into());
        let answers = [Ok(vec![Err(refused), Ok(ok())]), format()];
        let scores = formula.scores(&answers, 2);
        let excluded = scores[0].as_ref().unwrap_err();
        assert_eq!(excluded.reason, "reward `em` gave no score: no gold");
        assert_eq!(excluded.cause, ExclusionCause::Reward);
        assert!(scores[1].is_ok());

        let scores = formula.scores(
            &[Err(GradeError::Call("timeout: too slow".into())), format()],
            2,
        );
        for score in scores {
            let excluded = score.unwrap_err();
            assert_eq!(excluded.reason, "reward `em` failed: timeout: too slow");
            assert_eq!(excluded.cause, ExclusionCause::RewardCall);
        }
    }

    #[test]
    fn conditions_are_over_plugins_of_the_stack() {
        let text = "success = \"judge.ok >= 1\"\n[[stack]]\nplugin = \"em\"\n";
        assert_eq!(
            formula(text).unwrap_err().to_string(),
            "rewards.success = \"judge.ok >= 1\" is about plugin `judge`, which is not in the \
             stack; add a [[rewards.stack]] entry with plugin = \"judge\" and weight = 0 if it \
             shall earn nothing"
        );
        let text =
            "success = \"em.em >= 1\"\n[[stack]]\nplugin = \"em\"\ngate = \"format.ok > 0\"\n";
        assert!(
            formula(text)
                .unwrap_err()
                .to_string()
                .starts_with("the gate of `em` = ")
        );
        assert_eq!(
            formula("success = \"em.em >= 1\"\nstack = []\n").unwrap_err(),
            RewardsError::Empty
        );
    }
}
