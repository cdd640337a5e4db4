//! `[tasks.facts]` of a configuration: sizes, splits, and how often each kind of question is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::draws::Draws;
use super::kind::QuestionKind;

/// Shares of the kinds of questions, as weights relative to their sum. A kind without a weight is never asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KindShares(BTreeMap<QuestionKind, f64>);

impl KindShares {
    /// Makes shares from pairs of kind and weight.
    pub fn new(weights: impl IntoIterator<Item = (QuestionKind, f64)>) -> Self {
        Self(weights.into_iter().collect())
    }

    /// The share of a kind, in `0..=1`.
    pub fn share(&self, kind: QuestionKind) -> f64 {
        self.0.get(&kind).copied().unwrap_or(0.0) / self.0.values().sum::<f64>()
    }

    /// Every kind with a weight above 0.
    pub fn kinds(&self) -> impl Iterator<Item = QuestionKind> {
        self.0
            .iter()
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(kind, _)| *kind)
    }

    pub(crate) fn draw(&self, draws: &mut Draws) -> QuestionKind {
        let mut rest = draws.unit() * self.0.values().sum::<f64>();
        let mut last = QuestionKind::Lookup;
        for kind in self.kinds() {
            last = kind;
            rest -= self.0[&kind];
            if rest < 0.0 {
                break;
            }
        }
        last
    }

    fn check(&self, key: &'static str) -> Result<(), CountriesConfigError> {
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if self.0.values().all(is_weight) && self.0.values().sum::<f64>() > 0.0 {
            Ok(())
        } else {
            Err(CountriesConfigError::KindShares { key })
        }
    }
}

/// Settings of the countries and their questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CountriesConfig {
    /// Seed that deals the countries into splits and makes the held-out questions. It is separate from the run's
    /// seed, so that runs of different seeds are tested on the same questions. Default 0.
    pub split_seed: u64,
    /// Share of the real countries that only validation asks about. Default 0.15.
    pub validation_share: f64,
    /// Share of the real countries that only the test asks about. Default 0.25.
    pub test_share: f64,
    /// Number of made-up countries for training. A model learns fewer than a few thousand by heart instead of
    /// learning to copy. Default 20,000.
    pub generated: usize,
    /// Share of training questions about real countries; the others are about made-up ones. Default 0.1.
    pub real_share: f64,
    /// Kinds in demonstrations: single skills often, combinations of them rarely.
    ///
    /// By default a small share are chains and scaling. Kinds with several calls in one turn appear once in 1,000 to 2,000
    /// demonstrations, and the scaling of chains never. With fewer, reinforcement learning finds ratios, comparisons and sums
    /// only with some seeds, because a kind that never succeeds gives it nothing to learn from; with more, SFT learns them by
    /// itself. Spelling and contrast take half, because a model must copy names from every place in a question before it can
    /// learn anything else.
    pub sft: KindShares,
    /// Kinds in reinforcement learning, which has no demonstration, only the reward. Mostly those not mastered yet.
    pub rl: KindShares,
    /// Shares of the kinds of question in validation and test.
    pub eval: KindShares,
}

impl Default for CountriesConfig {
    fn default() -> Self {
        Self {
            split_seed: 0,
            validation_share: 0.15,
            test_share: 0.25,
            generated: 20_000,
            real_share: 0.1,
            sft: KindShares::new([
                (QuestionKind::Spell, 0.30),
                (QuestionKind::Lookup, 0.25),
                (QuestionKind::Contrast, 0.20),
                (QuestionKind::Calculate, 0.197),
                (QuestionKind::Chain, 0.025),
                (QuestionKind::Scale, 0.025),
                (QuestionKind::Sum, 0.001),
                (QuestionKind::CompareSums, 0.001),
                (QuestionKind::Ratio, 0.0005),
                (QuestionKind::Compare, 0.0005),
            ]),
            rl: KindShares::new([
                (QuestionKind::Lookup, 0.05),
                (QuestionKind::Calculate, 0.05),
                (QuestionKind::Chain, 0.05),
                (QuestionKind::Scale, 0.05),
                (QuestionKind::Sum, 0.15),
                (QuestionKind::ChainScale, 0.15),
                (QuestionKind::Compare, 0.20),
                (QuestionKind::Ratio, 0.15),
                (QuestionKind::CompareSums, 0.15),
            ]),
            eval: KindShares::new([
                (QuestionKind::Lookup, 0.15),
                (QuestionKind::Calculate, 0.10),
                (QuestionKind::Chain, 0.10),
                (QuestionKind::Scale, 0.10),
                (QuestionKind::Sum, 0.05),
                (QuestionKind::ChainScale, 0.10),
                (QuestionKind::Compare, 0.20),
                (QuestionKind::Ratio, 0.10),
                (QuestionKind::CompareSums, 0.10),
            ]),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountriesConfigError {
    /// Weights of kinds.
    #[error("`{key}`: weights must be finite and not negative, and one of them above 0")]
    KindShares {
        /// The key.
        key: &'static str,
    },
    /// A share out of range.
    #[error("`{key}` = {value}: must be at least 0 and at most {most}")]
    Share {
        /// The key.
        key: &'static str,
        /// The configured value.
        value: String,
        /// The maximum that is allowed.
        most: &'static str,
    },
    /// A split without enough countries to ask about.
    #[error(
        "the split `{split}` has {countries} countries with a neighbour; at least {least} are needed: raise its share"
    )]
    FewCountries {
        /// The split.
        split: &'static str,
        /// Number of such countries.
        countries: usize,
        /// Number that it needs.
        least: usize,
    },
    /// Too many made-up countries.
    #[error("`generated` = {generated}: at most {most}")]
    ManyGenerated {
        /// The configured value.
        generated: usize,
        /// The maximum that is allowed.
        most: usize,
    },
    /// Too few made-up countries to train on.
    #[error(
        "`generated` = {generated}: at least {least} are needed, and some thousands for copying to be learnt"
    )]
    FewGenerated {
        /// The configured value.
        generated: usize,
        /// The minimum that is allowed.
        least: usize,
    },
}

impl CountriesConfigError {
    /// The key that is wrong.
    pub fn key(&self) -> &'static str {
        match self {
            Self::KindShares { key } | Self::Share { key, .. } => key,
            Self::FewCountries { .. } => "test_share",
            Self::ManyGenerated { .. } | Self::FewGenerated { .. } => "generated",
        }
    }
}

pub(crate) const MIN_GENERATED: usize = 100;
const MAX_GENERATED: usize = 1_000_000;

impl CountriesConfig {
    /// Refuses settings with which no questions can be made.
    pub fn validate(&self) -> Result<(), CountriesConfigError> {
        for (key, value, most, limit) in [
            ("validation_share", self.validation_share, "0.4", 0.4),
            ("test_share", self.test_share, "0.4", 0.4),
            ("real_share", self.real_share, "1", 1.0),
        ] {
            if !(0.0..=limit).contains(&value) {
                return Err(CountriesConfigError::Share {
                    key,
                    value: value.to_string(),
                    most,
                });
            }
        }
        if self.generated < MIN_GENERATED {
            return Err(CountriesConfigError::FewGenerated {
                generated: self.generated,
                least: MIN_GENERATED,
            });
        }
        if self.generated > MAX_GENERATED {
            return Err(CountriesConfigError::ManyGenerated {
                generated: self.generated,
                most: MAX_GENERATED,
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
        let config = CountriesConfig::default();
        let rare = QuestionKind::ALL
            .into_iter()
            .filter(|kind| config.sft.share(*kind) < 0.01);
        let share: f64 = rare.map(|kind| config.eval.share(kind)).sum();
        assert!((0.45..=0.6).contains(&share), "{share}");
    }

    #[test]
    fn unknown_keys_and_kinds_are_refused() {
        let read =
            |json: &str| serde_json::from_str::<CountriesConfig>(json).map_err(|e| e.to_string());
        assert!(read(r#"{"generated": 500, "rl": {"sum": 1}}"#).is_ok());
        assert!(
            read(r#"{"generatd": 500}"#)
                .unwrap_err()
                .contains("generatd")
        );
        assert!(read(r#"{"rl": {"summ": 1}}"#).unwrap_err().contains("summ"));
    }

    #[test]
    fn settings_that_cannot_be_used_are_named() {
        let check = |change: fn(&mut CountriesConfig)| {
            let mut config = CountriesConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(check(|c| c.test_share = 0.9).starts_with("`test_share` = 0.9"));
        assert!(check(|c| c.real_share = f64::NAN).starts_with("`real_share` = NaN"));
        assert!(check(|c| c.generated = 3).starts_with("`generated` = 3"));
        assert!(check(|c| c.rl = KindShares::new([(QuestionKind::Sum, 0.0)])).starts_with("`rl`"));
        assert!(
            check(|c| c.eval = KindShares::new([(QuestionKind::Sum, -1.0)])).starts_with("`eval`")
        );
    }
}
