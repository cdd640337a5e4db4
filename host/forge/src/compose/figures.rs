//! Figures of a composition: tools, domains, archetypes, distances.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Check, Composition};

/// The minimum, the quartiles and the maximum of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The minimum.
    pub least: f64,
    /// The lower quartile: a quarter of the numbers are at most this.
    pub lower: f64,
    /// The median: half of the numbers are at most this.
    pub median: f64,
    /// The upper quartile: three quarters of the numbers are at most this.
    pub upper: f64,
    /// The maximum.
    pub most: f64,
}

impl Spread {
    /// The spread of some values. None if there are none.
    pub fn from_values(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = values.len().checked_sub(1)?;
            values.get((share * last as f64).round() as usize).copied()
        };
        Some(Self {
            least: at(0.0)?,
            lower: at(0.25)?,
            median: at(0.5)?,
            upper: at(0.75)?,
            most: at(1.0)?,
        })
    }
}

/// Figures of a composition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Number of environments.
    pub environments: usize,
    /// Number of tools of all environments.
    pub tools: usize,
    /// Number of tools per environment.
    pub tools_each: Option<Spread>,
    /// Number of environments by domain.
    pub domains: BTreeMap<String, usize>,
    /// Number of environments by archetype.
    pub archetypes: BTreeMap<String, usize>,
    /// Number of different structures.
    pub structures: usize,
    /// Distance from each environment to the one nearest to it, as [`super::structure`] measures it.
    pub nearest: Option<Spread>,
    /// Number of rejected candidates by the check that they failed.
    pub rejected: BTreeMap<Check, usize>,
}

/// Computes the figures of a composition.
pub fn figures(composition: &Composition) -> Figures {
    let environments = &composition.environments;
    let tools: Vec<usize> = environments
        .iter()
        .map(|one| one.specification.operations.len())
        .collect();
    let mut domains = BTreeMap::new();
    let mut archetypes = BTreeMap::new();
    for environment in environments {
        *domains.entry(environment.domain.clone()).or_default() += 1;
        for archetype in &environment.archetypes {
            *archetypes.entry(archetype.clone()).or_default() += 1;
        }
    }
    let mut rejected = BTreeMap::new();
    for candidate in &composition.rejected {
        *rejected.entry(candidate.check).or_default() += 1;
    }
    let mut hashes: Vec<&str> = environments
        .iter()
        .map(|one| one.structure.hash.as_str())
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let nearest = environments.iter().enumerate().filter_map(|(index, one)| {
        let others = environments
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index);
        let distances = others.map(|(_, other)| one.structure.distance(&other.structure));
        distances.min_by(f64::total_cmp)
    });
    Figures {
        environments: environments.len(),
        tools: tools.iter().sum(),
        tools_each: Spread::from_values(tools.iter().map(|tools| *tools as f64).collect()),
        domains,
        archetypes,
        structures: hashes.len(),
        nearest: Spread::from_values(nearest.collect()),
        rejected,
    }
}
