//! A question with its decomposition: sub-questions, their answers, and the earlier answers that each of them needs.

use rlf_dialogue::split::Split;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::Target;
use super::options::Scenario;

/// A question that is decomposed into steps. This is the artefact of stage 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Unique in its file.
    pub id: String,
    /// Its scenario.
    pub scenario: Scenario,
    /// Its split.
    pub split: Split,
    /// The text that the policy reads.
    pub question: String,
    /// The final answer.
    pub answer: String,
    /// The sub-questions, each after those that it needs.
    pub steps: Vec<Step>,
}

/// One sub-question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its text. `#1` is the answer of the first step.
    pub question: String,
    /// Its answer.
    pub answer: String,
    /// The values that it needs: one for a look-up, several for a calculation.
    pub sources: Vec<Source>,
    /// The work that answers it.
    pub work: Work,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The question contains the value.
    Text(String),
    /// The value is the answer of this step, counted from 0.
    Step(usize),
}

/// The work that answers a sub-question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A fact about the source is looked up.
    Lookup(Lookup),
    /// The sources are computed with.
    Calculate(Operation),
}

/// The subject of a look-up, in the words that a tool's documentation needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookup {
    /// Identifier of the relation.
    pub relation: String,
    /// The kind of the subject, such as `city`.
    pub kind: String,
    /// The thing that is found, without naming a subject: `the mayor of a city`.
    pub about: String,
    /// The type of the answer.
    pub target: Target,
    /// Prefixes for the names of tools that look this up.
    pub tools: Vec<String>,
}

/// An operation on two or more numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// All numbers added.
    Sum,
    /// The difference between the largest and the smallest.
    Difference,
    /// All numbers multiplied.
    Product,
}

/// Every operation.
pub(crate) const OPERATIONS: [Operation; 3] =
    [Operation::Sum, Operation::Difference, Operation::Product];

impl Operation {
    /// The name in a tool's arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Difference => "difference",
            Self::Product => "product",
        }
    }

    /// The result. None if it does not fit into 64 bits, or there is no number.
    pub fn apply(self, numbers: &[i64]) -> Option<i64> {
        let (first, rest) = numbers.split_first()?;
        match self {
            Self::Sum => rest
                .iter()
                .try_fold(*first, |sum, number| sum.checked_add(*number)),
            Self::Difference => {
                let (least, most) = (numbers.iter().min()?, numbers.iter().max()?);
                most.checked_sub(*least)
            }
            Self::Product => rest
                .iter()
                .try_fold(*first, |product, number| product.checked_mul(*number)),
        }
    }
}

impl Question {
    /// The value of a source.
    pub fn value<'a>(&'a self, source: &'a Source) -> Option<&'a str> {
        match source {
            Source::Text(text) => Some(text),
            Source::Step(step) => self.steps.get(*step).map(|step| step.answer.as_str()),
        }
    }

    /// Everything that the question says and a step looks up.
    pub fn given(&self) -> Vec<&str> {
        let sources = self.steps.iter().flat_map(|step| &step.sources);
        sources
            .filter_map(|source| match source {
                Source::Text(text) => Some(text.as_str()),
                Source::Step(_) => None,
            })
            .collect()
    }
}
