//! The kinds of questions. Success is reported for each.

use serde::{Deserialize, Serialize};

/// A kind of question. Single skills come first; every other kind combines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// Write the names in a question of another kind: no tool. The model learns to copy names from every place where
    /// they occur, such as the third name of a long question, without seeing how such a question is answered.
    Spell,
    /// One column of one country: one call.
    Lookup,
    /// Like `Lookup`, after names that are not asked about: copying from anywhere in the question.
    Contrast,
    /// Arithmetic in words: one call.
    Calculate,
    /// A column of the neighbour: two calls, one after the other.
    Chain,
    /// A column, then arithmetic with given numbers: two calls, one after the other.
    Scale,
    /// A column of the neighbour, then arithmetic with given numbers: three calls, one after the other.
    ChainScale,
    /// Two countries added or subtracted: two calls in one turn, then the calculation.
    Sum,
    /// The larger or smaller of two countries: two calls in one turn, then the calculation.
    Compare,
    /// The whole quotient of two countries' values: two calls in one turn, then the calculation.
    Ratio,
    /// The larger or smaller of a sum of two countries and a third: three calls in one turn, then the
    /// calculation.
    CompareSums,
}

impl QuestionKind {
    /// All kinds, single skills first.
    pub const ALL: [Self; 11] = [
        Self::Spell,
        Self::Lookup,
        Self::Contrast,
        Self::Calculate,
        Self::Chain,
        Self::Scale,
        Self::ChainScale,
        Self::Sum,
        Self::Compare,
        Self::Ratio,
        Self::CompareSums,
    ];

    /// The kinds that [`QuestionKind::Spell`] takes names from. Those with many names are listed more often.
    pub(crate) const SPELT: [Self; 8] = [
        Self::Lookup,
        Self::Chain,
        Self::ChainScale,
        Self::Sum,
        Self::Compare,
        Self::Ratio,
        Self::CompareSums,
        Self::CompareSums,
    ];

    /// The name in `extra.kind`, in the configuration and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spell => "spell",
            Self::Lookup => "lookup",
            Self::Contrast => "contrast",
            Self::Calculate => "calculate",
            Self::Chain => "chain",
            Self::Scale => "scale",
            Self::ChainScale => "chain-scale",
            Self::Sum => "sum",
            Self::Compare => "compare",
            Self::Ratio => "ratio",
            Self::CompareSums => "compare-sums",
        }
    }
}

impl std::fmt::Display for QuestionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
