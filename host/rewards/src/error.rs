//! Errors of a `[rewards]` table.

/// The reason why a `[rewards]` table cannot be used with a registry.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RewardsError {
    /// The stack has no entry.
    #[error("`rewards.stack` is empty: add a [[rewards.stack]] entry with a reward plugin")]
    Empty,
    /// The plugin is not in the registry.
    #[error("[[rewards.stack]] entry {entry}: there is no plugin `{plugin}`{hint}")]
    NoSuchPlugin {
        /// Number of the entry, from 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// The reason why it is missing, or the names that exist.
        hint: String,
    },
    /// The plugin is in the registry, but is not a reward.
    #[error("[[rewards.stack]] entry {entry}: plugin `{plugin}` is {kind}, not a reward")]
    NotAReward {
        /// Number of the entry, from 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// The plugin's kind, with an article.
        kind: &'static str,
    },
    /// Weights that contradict each other, or that are not finite numbers.
    #[error("[[rewards.stack]] entry {entry} (`{plugin}`): {source}")]
    BadWeights {
        /// Number of the entry, from 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// The mistake.
        source: WeightsError,
    },
    /// A wrong value in `[rewards.drift]`.
    #[error("rewards.drift.{key}: {reason}")]
    Drift {
        /// The key.
        key: &'static str,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// A condition about a plugin that is not in the stack.
    #[error(
        "{place} = \"{condition}\" is about plugin `{plugin}`, which is not in the stack; add a \
         [[rewards.stack]] entry with plugin = \"{plugin}\" and weight = 0 if it shall earn nothing"
    )]
    NotInStack {
        /// The key of the condition: `rewards.success`, or the gate of an entry.
        place: String,
        /// The condition.
        condition: String,
        /// The plugin that it names.
        plugin: String,
    },
}

/// The reason why the weights of an entry of the stack cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// One weight and several.
    #[error("`weights` stands beside `weight` or `term`; keep one of the two")]
    Both,
    /// The weight of a named term is infinite or not a number.
    #[error("the weight of `{term}` is {weight}; it must be a finite number")]
    OfTerm {
        /// The term.
        term: String,
        /// The weight of the term.
        weight: f64,
    },
    /// A range that is not two numbers, the smaller one first.
    #[error("the range of `{term}` is {range:?}; write two numbers, the smaller one first")]
    Range {
        /// The term.
        term: String,
        /// The range as it is written.
        range: Vec<f64>,
    },
    /// The weight is infinite or not a number.
    #[error("`weight` is {0}; it must be a finite number")]
    Weight(f64),
}
