//! From a trajectory to the words of a user: the mention of each argument, what is left out, and the sentences.
//!
//! | looking for | module |
//! |---|---|
//! | the mention of each argument, and refinement | `describe` |
//! | facts that tell an entity from others | `facts` |
//! | a mention as a noun phrase | `mention` |
//! | the clause that asks for a tool | `clause`, `tokens`, `details` |
//! | sentences and what stands around them | `sentences` |
//! | words and values kept apart, so that templates are known | `phrase` |
//! | names as ordinary words | `words` |

mod clause;
mod describe;
mod details;
mod facts;
mod mention;
mod phrase;
mod sentences;
mod tokens;
mod words;

pub(super) use clause::openings;
pub use phrase::spoken;
pub(super) use words::{is_plural, singular};
pub use words::{noun, spaced};

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::make::{Candidate, Maker, Trajectory};
use super::record::Implicit;
use super::rejection::{Reason, Rejection};
use super::request::Request;

/// Maximum number of wordings that are tried to find one that is not used too often.
const MAX_WORDINGS: u64 = 24;

/// The words of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// One query for each turn.
    pub turns: Vec<QueryTurn>,
}

impl Query {
    /// The words of all turns with `<>` in place of every value.
    pub fn template(&self) -> String {
        let turns: Vec<&str> = self
            .turns
            .iter()
            .map(|turn| turn.template.as_str())
            .collect();
        turns.join("\n")
    }
}

/// The words of a turn, and what they mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryTurn {
    /// The words of the user.
    pub text: String,
    /// The words with `<>` in place of every value.
    pub template: String,
    /// The requests in the words.
    pub requests: Vec<Request>,
    /// The kinds of refinement that were applied.
    pub implicit: Vec<Implicit>,
}

/// Number of uses of each template.
#[derive(Debug, Clone, Default)]
pub struct Templates(HashMap<String, usize>);

impl Templates {
    /// Counts the template of a query.
    pub fn count(&mut self, query: &Query) {
        *self.0.entry(query.template()).or_default() += 1;
    }

    fn used(&self, template: &str) -> usize {
        self.0.get(template).copied().unwrap_or_default()
    }
}

/// Writes the query of a trajectory. The template is used less often than the limit allows.
pub fn query(
    maker: &Maker<'_>,
    candidate: &Candidate,
    trajectory: &Trajectory,
    templates: &Templates,
) -> Result<Query, Rejection> {
    let meant = describe::requests(maker, candidate, trajectory)?;
    let limit = maker.options.template_limit();
    let key = candidate.key(maker.options.seed, "words");
    for wording in 0..MAX_WORDINGS {
        let mut words = sentences::Words::new(maker, key.at(wording));
        let turns: Vec<_> = meant
            .iter()
            .enumerate()
            .map(|(turn, (requests, _))| words.turn(turn, requests))
            .collect();
        let template: Vec<String> = turns.iter().map(phrase::Phrase::template).collect();
        let template = template.join("\n");
        if templates.used(&template) >= limit {
            continue;
        }
        let turns = turns
            .iter()
            .zip(meant)
            .map(|(phrase, (requests, implicit))| QueryTurn {
                text: phrase.text(),
                template: phrase.template(),
                requests,
                implicit,
            });
        return Ok(Query {
            turns: turns.collect(),
        });
    }
    let detail = format!("{MAX_WORDINGS} wordings were used {limit} times each");
    Err(Rejection::new(Reason::Template, detail))
}
