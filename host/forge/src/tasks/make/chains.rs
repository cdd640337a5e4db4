//! The first stage: environments, their scenarios, and a chain of tools.

use std::collections::BTreeMap;

use rlf_dialogue::split::Split;
use rlf_random::{Key, Purpose};
use serde::{Deserialize, Serialize};

use super::Maker;
use crate::graph::GraphError;
use crate::sampling::{Draws, SamplingOptions, sample};
use crate::tasks::environment::whole;
use crate::tasks::record::Start;
use crate::tasks::rejection::{Reason, Rejection};

/// The beginning of a task: its environments and its chain of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its number, which decides all draws.
    pub number: u64,
    /// The environments, and how each begins.
    pub servers: BTreeMap<String, Start>,
    /// The sampled tools, `Server-name`, in order.
    pub chain: Vec<String>,
}

impl Candidate {
    /// The key of all draws of a kind.
    pub(in crate::tasks) fn key(&self, seed: u64, purpose: &str) -> Key {
        key(seed, self.number, purpose)
    }
}

fn key(seed: u64, number: u64, purpose: &str) -> Key {
    Key::new(seed, Purpose::Order)
        .named("forge tasks")
        .at(number)
        .named(purpose)
}

/// Probabilities of a second and of a third environment, if they are allowed.
const FURTHER_SERVERS: [f64; 2] = [0.25, 0.25];

/// Probability that held-out tools may be in a chain of environments of training.
const WITH_HELD_OUT: f64 = 0.2;

/// Samples the candidate of a number.
pub(super) fn candidate(
    maker: &Maker<'_>,
    number: u64,
) -> Result<Result<Candidate, Rejection>, GraphError> {
    let (suite, options) = (maker.suite, maker.options);
    let mut draws = Draws::new(key(options.seed, number, "servers"));
    let all = suite.environments();
    let first = &all[draws.index(all.len())];
    let split = maker.splits.environment(&first.name);
    let mut chosen = vec![first];
    for chance in FURTHER_SERVERS
        .into_iter()
        .take(options.max_servers.saturating_sub(1))
    {
        let others: Vec<_> = all
            .iter()
            .filter(|other| maker.splits.environment(&other.name) == split)
            .filter(|other| chosen.iter().all(|one| one.name != other.name))
            .collect();
        if !draws.chance(chance) {
            break;
        }
        let near: Vec<_> = others
            .iter()
            .copied()
            .filter(|other| other.domain == first.domain)
            .collect();
        let pool = if near.is_empty() { &others } else { &near };
        match draws.pick(pool) {
            Some(other) => chosen.push(other),
            None => break,
        }
    }
    let mut servers = BTreeMap::new();
    for environment in chosen {
        let wanted: Vec<&String> = environment
            .scenarios
            .iter()
            .filter(|name| options.scenarios.is_empty() || options.scenarios.contains(name))
            .collect();
        let Some(scenario) = draws.pick(&wanted) else {
            let detail = format!("{} has none of the scenarios", environment.name);
            return Ok(Err(Rejection::new(Reason::NoScenario, detail)));
        };
        let seed = key(options.seed, number, "state").named(&environment.name);
        let start = Start {
            scenario: scenario.clone(),
            seed: whole(seed),
        };
        servers.insert(environment.name.clone(), start);
    }
    // Most tasks in environments of training are for training, and sampled as if held-out tools were not there.
    let of_training = split == Split::Train && !draws.chance(WITH_HELD_OUT);
    let graph = maker.graph_of(servers.keys(), of_training)?;
    let sampling = SamplingOptions {
        tools: options.chain,
        max_servers: servers.len(),
        max_turn: options.max_turn_calls,
        ..SamplingOptions::default()
    };
    let Some(chain) = sample(&graph, options.sampling, &sampling, options.seed, number) else {
        let detail = "the environments have no tools";
        return Ok(Err(Rejection::new(Reason::InvalidChain, detail)));
    };
    if let Some(missing) = chain.missing.first() {
        let detail = format!(
            "step {}: nothing before it gives {}",
            missing.step + 1,
            missing.input
        );
        return Ok(Err(Rejection::new(Reason::InvalidChain, detail)));
    }
    let chain = chain
        .tools
        .iter()
        .map(|&tool| graph.tools()[tool].full_name());
    Ok(Ok(Candidate {
        number,
        servers,
        chain: chain.collect(),
    }))
}
