//! `[rewards]` of a configuration: the reward plugins and the weights of their terms.
//!
//! ```
//! let config: rlf_rewards::rewards_config::RewardsConfig = rlf_config::parse(
//!     r#"
//! success = "exact-match.em >= 1"
//!
//! [[stack]]
//! plugin = "exact-match"
//! weights = { em = 1.0, f1 = 0.2 }
//! gate = "format.ok >= 1"      # nothing for an answer that is not well formed
//!
//! [[stack]]
//! plugin = "format"
//! weight = 0.1                 # of its first term
//! "#,
//!     "example.toml",
//! )?;
//! assert_eq!(config.stack.len(), 2);
//! # Ok::<(), rlf_config::ConfigError>(())
//! ```

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::drift::DriftConfig;
use crate::error::WeightsError;
use crate::expression::Condition;

/// The configuration of rewards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardsConfig {
    /// The condition under which a trajectory counts as a success, in metrics and evaluations. It compares one term,
    /// such as `"exact-match.em >= 1"`, never the weighted sum.
    pub success: Condition,
    /// The reward plugins. The reward is the sum of weight x term over all entries.
    pub stack: Vec<RewardEntry>,
    /// A comparison of a judge with a verifier, with an alarm. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftConfig>,
}

/// One part of the reward: terms of one plugin with their weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardEntry {
    /// The reward plugin, by its name in the registry. A plugin may have several entries; it is asked once.
    pub plugin: String,
    /// Weight of one term: of `term`, or else of the first term that the plugin returns. Default 1. With 0, the
    /// plugin's terms are logged and can be used in conditions, but add nothing to the reward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The term that `weight` applies to. Default: the first term that the plugin returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
    /// Weights of several terms, by name. Used instead of `weight` and `term`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// Weights of per-event terms, by name. They make the rewards of turns, for `rl.algorithm = "mt-grpo"` and `"ppo"`: a
    /// turn of the model has the events up to the next one, so a call belongs to the turn that made it. They add nothing to
    /// the reward of the trajectory, and no gate applies to them. A term that no event has counts 0. The run warns
    /// of it once, if its plugin gave credit in a group as other terms alone that are not weighed. `per_event` of the kept
    /// trajectories shows the terms that there are. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub turns: BTreeMap<String, f64>,
    /// The smallest and the largest value of terms, `[low, high]`, by name. A trajectory with another value is excluded, and its reason says
    /// so. A wrong plugin is found before it spoils a batch. Default: any number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<String, Vec<f64>>,
    /// A condition. If it is false for a trajectory, this entry adds 0. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Condition>,
}

/// A checked range of a term: its name, and its smallest and largest value.
pub(crate) type TermRange = (String, RangeInclusive<f64>);

/// The checked weights of one entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Weights {
    /// The weight of the first term, whatever its name.
    First(f64),
    /// The weights of these terms, each of which the plugin must return.
    Named(Vec<(String, f64)>),
}

impl RewardEntry {
    /// Checks the ranges of this entry.
    pub(crate) fn checked_ranges(&self) -> Result<Vec<TermRange>, WeightsError> {
        let checked = |(term, range): (&String, &Vec<f64>)| match range[..] {
            // False if one of them is no number.
            [low, high] if low <= high => Ok((term.clone(), low..=high)),
            _ => Err(WeightsError::Range {
                term: term.clone(),
                range: range.clone(),
            }),
        };
        self.ranges.iter().map(checked).collect()
    }

    /// Checks the weights of this entry.
    pub(crate) fn checked_weights(&self) -> Result<Weights, WeightsError> {
        if !self.weights.is_empty() && (self.weight.is_some() || self.term.is_some()) {
            return Err(WeightsError::Both);
        }
        let weight = self.weight.unwrap_or(1.0);
        let named = match &self.term {
            Some(term) => vec![(term.clone(), weight)],
            None => self
                .weights
                .iter()
                .map(|(term, weight)| (term.clone(), *weight))
                .collect(),
        };
        let weighed = named.iter().map(|(term, weight)| (term, weight));
        let mut weighed = weighed.chain(&self.turns);
        if let Some((term, weight)) = weighed.find(|(_, weight)| !weight.is_finite()) {
            return Err(WeightsError::OfTerm {
                term: term.clone(),
                weight: *weight,
            });
        }
        if !weight.is_finite() {
            return Err(WeightsError::Weight(weight));
        }
        Ok(if named.is_empty() {
            Weights::First(weight)
        } else {
            Weights::Named(named)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> RewardEntry {
        rlf_config::parse(text, "t.toml").unwrap()
    }

    #[test]
    fn weights_are_of_the_first_term_of_one_term_or_of_several() {
        let weights = |text: &str| entry(text).checked_weights().unwrap();
        assert_eq!(weights("plugin = \"a\""), Weights::First(1.0));
        assert_eq!(weights("plugin = \"a\"\nweight = 0"), Weights::First(0.0));
        assert_eq!(
            weights("plugin = \"a\"\nweight = 0.5\nterm = \"f1\""),
            Weights::Named(vec![("f1".into(), 0.5)])
        );
        assert_eq!(
            weights("plugin = \"a\"\nweights = { em = 1, f1 = -0.5 }"),
            Weights::Named(vec![("em".into(), 1.0), ("f1".into(), -0.5)])
        );
    }

    #[test]
    fn contradicting_or_infinite_weights_are_refused() {
        let refusal = |text: &str| entry(text).checked_weights().unwrap_err().to_string();
        assert_eq!(
            refusal("plugin = \"a\"\nweight = 1\nweights = { em = 1 }"),
            "`weights` stands beside `weight` or `term`; keep one of the two"
        );
        assert_eq!(
            refusal("plugin = \"a\"\nweight = inf"),
            "`weight` is inf; it must be a finite number"
        );
        assert_eq!(
            refusal("plugin = \"a\"\nturns = { step = inf }"),
            "the weight of `step` is inf; it must be a finite number"
        );
        for range in ["[1.0, 0.0]", "[nan, 1.0]", "[0.0]", "[0.0, 1.0, 2.0]"] {
            let entry = entry(&format!("plugin = \"a\"\nranges = {{ em = {range} }}"));
            let refusal = entry.checked_ranges().unwrap_err().to_string();
            assert!(refusal.starts_with("the range of `em` is ["), "{refusal}");
        }
        assert_eq!(
            refusal("plugin = \"a\"\nweights = { em = nan }"),
            "the weight of `em` is NaN; it must be a finite number"
        );
    }

    #[test]
    fn a_wrong_condition_or_key_is_found_where_it_stands() {
        let text = "success = \"em\"\nstack = []\n";
        let error = rlf_config::parse::<RewardsConfig>(text, "t.toml")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("t.toml:1:"), "{error}");
        assert!(error.contains("write `plugin.term OP number`"), "{error}");
        let text = "success = \"a.em >= 1\"\n[[stack]]\nplugin = \"a\"\nweigth = 1\n";
        let error = rlf_config::parse::<RewardsConfig>(text, "t.toml")
            .unwrap_err()
            .to_string();
        assert!(error.contains("did you mean `weight`?"), "{error}");
    }
}
