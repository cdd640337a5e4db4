//! Errors of a `[rewards]` table.

/// The reason why a `[rewards]` table cannot be used with a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewardsError {
    /// Nothing to grade with.
    #[error("`rewards.stack` is empty: add a [[rewards.stack]] entry with a reward plugin")]
    Empty,
    /// Not in the registry.
    #[error("[[rewards.stack]] entry {entry}: there is no plugin `{plugin}`{hint}")]
    NoSuchPlugin {
        /// From 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// The reason why it is missing, or the names that exist.
        hint: String,
    },
    /// In the registry, but no reward.
    #[error("[[rewards.stack]] entry {entry}: plugin `{plugin}` is {kind}, not a reward")]
    NotAReward {
        /// From 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// Its kind, with an article.
        kind: &'static str,
    },
    /// Weights that contradict each other or are not numbers.
    #[error("[[rewards.stack]] entry {entry} (`{plugin}`): {what}")]
    BadWeights {
        /// From 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// The problem, in words.
        what: String,
    },
    /// A condition over a plugin that does not grade.
    #[error(
        "{place} = \"{condition}\" is about plugin `{plugin}`, which is not in the stack; add a \
         [[rewards.stack]] entry with plugin = \"{plugin}\" and weight = 0 if it shall earn nothing"
    )]
    NotInStack {
        /// `rewards.success` or the gate of an entry.
        place: String,
        /// The condition.
        condition: String,
        /// The plugin it names.
        plugin: String,
    },
}
