//! Composes environments from a library of archetypes, without a language model.
//!
//! An [archetype](archetypes) is a file: entities, operations with preconditions, effects and messages, invariants, and
//! options that add fields, rules and operations. Archetypes share roles: a booking is of an `item` by a `person`, both
//! of which other archetypes make. A business gives the roles their nouns, names the archetypes that fit, and brings its
//! own attributes and words. [`compose`] draws businesses, archetypes, options and limits from a seed, and puts a
//! [`Specification`] together. Environment number `i` does not depend on how many are asked for.
//!
//! A candidate is kept only if it passes all of these; every other one is [rejected](Rejected) with its reason:
//! the static checks of `rlf_specification` find nothing; it has from 4 to 20 tools; its [structure] differs from every
//! earlier one by at least [`MIN_DISTANCE`]; and on random walks from every scenario each operation succeeds in some
//! state, is refused in some state if anything can refuse it, and never breaks an invariant.
//!
//! | looking for | module |
//! |---|---|
//! | archetype files and their form | `archetype` |
//! | businesses of the seven domains, lists of words | `business` |
//! | nouns, articles, placeholders | `words` |
//! | words that are invented for each environment | `invented` |
//! | which archetypes and options an environment has | `plan` |
//! | from a plan to a specification | `assemble`, `draft`, `operation`, `parameters`, `postconditions` |
//! | what it means that two structures are the same | [`structure`] |
//! | figures of a composition | [`figures`] |
//!
//! ```
//! let composition = rlf_forge::compose::compose(7, 3);
//! for environment in &composition.environments {
//!     let operations = &environment.specification.operations;
//!     assert!((4..=20).contains(&operations.len()));
//! }
//! ```

mod archetype;
mod assemble;
mod business;
mod draft;
mod error;
pub mod figures;
pub(crate) mod invented;
mod operation;
mod parameters;
mod plan;
mod postconditions;
pub mod structure;
mod words;

pub use archetype::archetypes;
pub use business::domains;
pub use structure::{MIN_DISTANCE, Structure};

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::convert::Infallible;

use rlf_random::{Key, Purpose};
use rlf_specification::play::{Fault, Play};
use rlf_specification::{Program, Specification, check};
use serde::Serialize;

use self::business::{Business, businesses};
use self::plan::Plan;

/// Minimum and maximum number of tools of an environment.
pub const TOOLS: std::ops::RangeInclusive<usize> = 4..=20;
/// Maximum number of candidates for one business in one round.
const MAX_CANDIDATES: u64 = 12;
/// Number of calls of one walk.
const CALLS: u64 = 100;
/// Minimum and maximum number of walks from each scenario.
const WALKS: std::ops::Range<u64> = 2..10;
/// Number of further states of each scenario that are only opened.
const OPENED: u64 = 4;
/// Maximum number of rounds through all businesses without a new environment.
const MAX_FRUITLESS_ROUNDS: u64 = 2;

/// An environment that passed every check.
#[derive(Debug, Clone)]
pub struct Composed {
    /// The environment.
    pub specification: Specification,
    /// The domain of its business, such as `commerce`.
    pub domain: String,
    /// The archetypes that it is made of.
    pub archetypes: Vec<String>,
    /// Its structure.
    pub structure: Structure,
}

/// A candidate that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Name that it would have had.
    pub name: String,
    /// Number of the candidate for this business, from 0.
    pub candidate: u64,
    /// The check that it failed.
    pub check: Check,
    /// The reason why it was not kept.
    pub reason: String,
}

/// A check that every candidate has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The static checks find nothing.
    Static,
    /// The number of tools is one of [`TOOLS`].
    Tools,
    /// The structure is new.
    Structure,
    /// Random walks find no fault.
    Walk,
}

impl Check {
    /// The name in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Tools => "tools",
            Self::Structure => "structure",
            Self::Walk => "walk",
        }
    }
}

/// The result of [`compose`].
#[derive(Debug, Clone, Default)]
pub struct Composition {
    /// The environments, in order.
    pub environments: Vec<Composed>,
    /// The candidates that were not kept, in order.
    pub rejected: Vec<Rejected>,
}

/// The words of environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vocabulary {
    /// Nouns and names of real businesses.
    #[default]
    Real,
    /// Nouns and names that are invented for each environment, so that a policy can only act by reading them.
    Invented,
}

/// Composes `count` environments with real words. The first environments are the same for every `count`.
///
/// Fewer are made only if no further structure can be found.
pub fn compose(seed: u64, count: usize) -> Composition {
    match compose_with(seed, count, Vocabulary::Real, |_| Ok::<(), Infallible>(())) {
        Ok(composition) => composition,
        Err(never) => match never {},
    }
}

/// Composes environments like [`compose`], with real or invented words. Calls `keep` with each environment as soon as it
/// is composed, and ends with the first error of `keep`.
pub fn compose_with<E>(
    seed: u64,
    count: usize,
    vocabulary: Vocabulary,
    mut keep: impl FnMut(&Composed) -> Result<(), E>,
) -> Result<Composition, E> {
    let root = Key::new(seed, Purpose::Order).named("compose");
    let mut composition = Composition::default();
    let mut names = BTreeSet::new();
    let mut fruitless = 0;
    for round in 0.. {
        let before = composition.environments.len();
        let mut order: Vec<&Business> = businesses().iter().collect();
        root.named("order").at(round).shuffle(&mut order);
        for business in order {
            if composition.environments.len() == count {
                return Ok(composition);
            }
            let key = root.named(&business.name).at(round);
            let (business, name) = match vocabulary {
                Vocabulary::Real => (Cow::Borrowed(business), business.environment_name(round)),
                Vocabulary::Invented => {
                    let invented = invented::invent(business, key.named("invented"));
                    let name = invented.name.clone();
                    (Cow::Owned(invented), name)
                }
            };
            if !names.insert(name.clone()) {
                continue;
            }
            for candidate in 0..MAX_CANDIDATES {
                match attempt(
                    &business,
                    &name,
                    vocabulary,
                    key.at(candidate),
                    &composition.environments,
                ) {
                    Ok(composed) => {
                        keep(&composed)?;
                        composition.environments.push(composed);
                        break;
                    }
                    Err((check, reason)) => composition.rejected.push(Rejected {
                        name: name.clone(),
                        candidate,
                        check,
                        reason,
                    }),
                }
            }
        }
        fruitless = if composition.environments.len() == before {
            fruitless + 1
        } else {
            0
        };
        if fruitless == MAX_FRUITLESS_ROUNDS {
            break;
        }
    }
    Ok(composition)
}

/// Draws one candidate and checks it. The error is the check that it failed, and the reason.
fn attempt(
    business: &Business,
    name: &str,
    vocabulary: Vocabulary,
    key: Key,
    earlier: &[Composed],
) -> Result<Composed, (Check, String)> {
    let plan = Plan::draw(business, key.named("plan"));
    let mut specification = assemble::assemble(business, name, &plan, key.named("assemble"))
        .map_err(|error| (Check::Static, error.to_string()))?;
    if vocabulary == Vocabulary::Invented {
        for entity in &mut specification.entities {
            entity.key.random_start = true;
        }
    }
    let tools = specification.operations.len();
    if !TOOLS.contains(&tools) {
        return Err((Check::Tools, format!("it has {tools} tools")));
    }
    let checked = check(&specification);
    if let Some(finding) = checked.findings.first() {
        return Err((Check::Static, finding.to_string()));
    }
    let structure = Structure::new(&specification);
    let nearest = structure::nearest(&structure, earlier.iter().map(|other| &other.structure));
    if let Some((position, distance)) = nearest
        && distance < MIN_DISTANCE
    {
        let other = &earlier[position].specification.name;
        let reason = format!("its structure has a distance of {distance:.2} from {other}'s");
        return Err((Check::Structure, reason));
    }
    let program = checked
        .program
        .ok_or_else(|| (Check::Static, "it does not compile".to_owned()))?;
    if let Some(fault) = first_fault(&program, key.named("walk")) {
        return Err((Check::Walk, fault.to_string()));
    }
    Ok(Composed {
        specification,
        domain: business.domain.clone(),
        archetypes: plan
            .archetypes
            .iter()
            .map(|archetype| archetype.name.clone())
            .collect(),
        structure,
    })
}

/// Walks until every operation has succeeded, and has been refused if something can refuse it. Returns the first fault.
fn first_fault(program: &Program, key: Key) -> Option<Fault> {
    let mut play = Play::new(program, key);
    for state in 0..OPENED {
        play.round(WALKS.end + state, 0);
    }
    for round in 0..WALKS.end {
        // Some faults are rare.
        if round >= WALKS.start && play.has_seen_everything() {
            break;
        }
        play.round(round, CALLS);
    }
    play.into_faults().into_iter().next()
}
