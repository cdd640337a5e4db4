//! Short episodes by which the environments are checked: walks over operations, with arguments from the state.

use rlf_plugin::environment::Scenario;
use rlf_plugin::serde_json::{Map, Value, json};
use rlf_random::Key;
use rlf_specification::walk::arguments;
use rlf_specification::{Program, Size};

use crate::servers::Servers;

/// Calls of one episode.
const CALLS: u64 = 8;

/// Maximum number of episodes. They are played when the plugin is loaded, in one call.
const MAX_EPISODES: usize = 256;

/// One episode for each scenario of each specification. If these are more than [`MAX_EPISODES`], as many at equal
/// distances.
pub(crate) fn all(servers: &Servers) -> Vec<Scenario> {
    let scenarios = servers.programs.iter().flat_map(|(name, program)| {
        let scenarios = program.specification().scenarios.iter();
        scenarios.map(move |scenario| (name, program, scenario.size))
    });
    let scenarios: Vec<_> = scenarios.collect();
    let played = spread(&scenarios, MAX_EPISODES);
    played
        .filter_map(|(name, program, size)| episode(name, program, *size))
        .collect()
}

/// At most `most` of the items, at equal distances.
pub(crate) fn spread<T>(items: &[T], most: usize) -> impl Iterator<Item = &T> {
    let kept = items.len().min(most);
    (0..kept).map(move |index| &items[index * items.len() / kept])
}

fn episode(name: &str, program: &Program, size: Size) -> Option<Scenario> {
    let seed = 1;
    let mut state = program
        .open(size, Key::from_value(seed).named(name).value())
        .ok()?;
    let mut calls = Vec::new();
    let key = Key::from_value(seed).named("walk");
    for number in 0..CALLS {
        let key = key.at(number);
        let operations = &program.specification().operations;
        let operation = operations.get(key.below(0, operations.len() as u64) as usize)?;
        let arguments: Map<String, Value> = arguments(program, &state, operation, key.at(1));
        // A refusal is a part of the episode.
        let _ = program.call(&mut state, &operation.name, &arguments);
        calls.push((
            format!("{name}-{}", operation.name),
            Value::Object(arguments),
        ));
    }
    Some(Scenario {
        id: format!("{name}-{}", size.name()),
        task: json!({ "servers": { name: { "scenario": size.name() } } }),
        seed,
        calls,
        expect: json!({ name: program.state_json(&state) }),
    })
}
