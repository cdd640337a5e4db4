//! What a world is made of, and how often each kind of question is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::draws::Draws;
use crate::kind::Kind;

/// How often each kind is asked: weights relative to their sum. A kind that is not named is never asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shares(BTreeMap<Kind, f64>);

impl Shares {
    /// From pairs of kind and weight.
    pub fn new(weights: impl IntoIterator<Item = (Kind, f64)>) -> Self {
        Self(weights.into_iter().collect())
    }

    /// The share of a kind, in `0..=1`.
    pub fn of(&self, kind: Kind) -> f64 {
        self.0.get(&kind).copied().unwrap_or(0.0) / self.0.values().sum::<f64>()
    }

    /// Every kind that is ever asked.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.0
            .iter()
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(kind, _)| *kind)
    }

    pub(crate) fn draw(&self, draws: &mut Draws) -> Kind {
        let mut rest = draws.unit() * self.0.values().sum::<f64>();
        let mut last = Kind::Lookup;
        for kind in self.kinds() {
            last = kind;
            rest -= self.0[&kind];
            if rest < 0.0 {
                break;
            }
        }
        last
    }

    fn check(&self, key: &'static str) -> Result<(), ConfigError> {
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if self.0.values().all(is_weight) && self.0.values().sum::<f64>() > 0.0 {
            Ok(())
        } else {
            Err(ConfigError::Shares { key })
        }
    }
}

/// The world of facts and its questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FactsConfig {
    /// Deals the countries into splits and makes the held-out questions. Kept apart from the run's seed so
    /// that runs of different seeds are tested on the same questions. Default 0.
    pub split_seed: u64,
    /// Share of the real countries that only validation asks about. Default 0.15.
    pub validation_share: f64,
    /// Share of the real countries that only the test asks about. Default 0.25.
    pub test_share: f64,
    /// How many entities are made up for training. Fewer than some thousands are learnt by heart instead of
    /// copying being learnt. Default 20,000.
    pub generated: usize,
    /// Share of training questions that are about real countries; the others are about generated ones. Default 0.1.
    pub real_share: f64,
    /// Kinds in demonstrations: single skills thoroughly, what puts them together hardly.
    ///
    /// Of the defaults, chains and scaling are shown in small part; what needs two calls in one turn once in
    /// 1,000 to 5,000 demonstrations, the scaling of chains never. Without any, reinforcement does not find
    /// ratios and comparisons with every seed; with one in 1,000 of each, SFT learns them by itself. Spelling and
    /// contrast take half, because names must be copied from every place in a question before anything else
    /// can be learnt.
    pub sft: Shares,
    /// Kinds in reinforcement learning: no demonstration, only the reward. Mostly what is not mastered yet.
    pub rl: Shares,
    /// Kinds in validation and test.
    pub eval: Shares,
}

impl Default for FactsConfig {
    fn default() -> Self {
        Self {
            split_seed: 0,
            validation_share: 0.15,
            test_share: 0.25,
            generated: 20_000,
            real_share: 0.1,
            sft: Shares::new([
                (Kind::Spell, 0.30),
                (Kind::Lookup, 0.25),
                (Kind::Contrast, 0.20),
                (Kind::Calculate, 0.1981),
                (Kind::Chain, 0.025),
                (Kind::Scale, 0.025),
                (Kind::Sum, 0.001),
                (Kind::CompareSums, 0.0005),
                (Kind::Ratio, 0.0002),
                (Kind::Compare, 0.0002),
            ]),
            rl: Shares::new([
                (Kind::Lookup, 0.05),
                (Kind::Calculate, 0.05),
                (Kind::Chain, 0.05),
                (Kind::Scale, 0.05),
                (Kind::Sum, 0.15),
                (Kind::ChainScale, 0.15),
                (Kind::Compare, 0.20),
                (Kind::Ratio, 0.15),
                (Kind::CompareSums, 0.15),
            ]),
            eval: Shares::new([
                (Kind::Lookup, 0.15),
                (Kind::Calculate, 0.10),
                (Kind::Chain, 0.10),
                (Kind::Scale, 0.10),
                (Kind::Sum, 0.05),
                (Kind::ChainScale, 0.10),
                (Kind::Compare, 0.20),
                (Kind::Ratio, 0.10),
                (Kind::CompareSums, 0.10),
            ]),
        }
    }
}

/// A setting that makes no world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Weights of kinds.
    #[error("`{key}`: weights must be finite and not negative, and one of them above 0")]
    Shares {
        /// The key.
        key: &'static str,
    },
    /// A share that is none.
    #[error("`{key}` = {value}: must be at least 0 and at most {most}")]
    Share {
        /// The key.
        key: &'static str,
        /// As given.
        value: String,
        /// The largest allowed.
        most: &'static str,
    },
    /// A split without enough countries to ask about.
    #[error(
        "the split `{split}` has {countries} countries with a neighbour; at least {least} are needed: raise its share"
    )]
    FewCountries {
        /// The split.
        split: &'static str,
        /// How many it has.
        countries: usize,
        /// How many it needs.
        least: usize,
    },
    /// More entities than make sense.
    #[error("`generated` = {generated}: at most {most}")]
    ManyGenerated {
        /// As given.
        generated: usize,
        /// The most allowed.
        most: usize,
    },
    /// Too few entities to train on.
    #[error(
        "`generated` = {generated}: at least {least} are needed, and some thousands for copying to be learnt"
    )]
    FewGenerated {
        /// As given.
        generated: usize,
        /// The least allowed.
        least: usize,
    },
}

pub(crate) const LEAST_GENERATED: usize = 100;
const MOST_GENERATED: usize = 1_000_000;

impl FactsConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (key, value, most, limit) in [
            ("validation_share", self.validation_share, "0.4", 0.4),
            ("test_share", self.test_share, "0.4", 0.4),
            ("real_share", self.real_share, "1", 1.0),
        ] {
            if !(0.0..=limit).contains(&value) {
                return Err(ConfigError::Share {
                    key,
                    value: value.to_string(),
                    most,
                });
            }
        }
        if self.generated < LEAST_GENERATED {
            return Err(ConfigError::FewGenerated {
                generated: self.generated,
                least: LEAST_GENERATED,
            });
        }
        if self.generated > MOST_GENERATED {
            return Err(ConfigError::ManyGenerated {
                generated: self.generated,
                most: MOST_GENERATED,
            });
        }
        self.sft.check("sft")?;
        self.rl.check("rl")?;
        self.eval.check("eval")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_held_out_questions_are_of_kinds_that_demonstrations_hardly_hold() {
        let config = FactsConfig::default();
        let rare = Kind::ALL
            .into_iter()
            .filter(|kind| config.sft.of(*kind) < 0.01);
        let share: f64 = rare.map(|kind| config.eval.of(kind)).sum();
        assert!((0.45..=0.6).contains(&share), "{share}");
    }

    #[test]
    fn unknown_keys_and_kinds_are_refused() {
        let read =
            |json: &str| serde_json::from_str::<FactsConfig>(json).map_err(|e| e.to_string());
        assert!(read(r#"{"generated": 500, "rl": {"sum": 1}}"#).is_ok());
        assert!(
            read(r#"{"generatd": 500}"#)
                .unwrap_err()
                .contains("generatd")
        );
        assert!(read(r#"{"rl": {"summ": 1}}"#).unwrap_err().contains("summ"));
    }

    #[test]
    fn settings_that_make_no_world_are_named() {
        let check = |change: fn(&mut FactsConfig)| {
            let mut config = FactsConfig::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(check(|c| c.test_share = 0.9).starts_with("`test_share` = 0.9"));
        assert!(check(|c| c.real_share = f64::NAN).starts_with("`real_share` = NaN"));
        assert!(check(|c| c.generated = 3).starts_with("`generated` = 3"));
        assert!(check(|c| c.rl = Shares::new([(Kind::Sum, 0.0)])).starts_with("`rl`"));
        assert!(check(|c| c.eval = Shares::new([(Kind::Sum, -1.0)])).starts_with("`eval`"));
    }
}
