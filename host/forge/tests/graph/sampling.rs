//! Chains: validity, the published parameters, and properties over seeds.

use std::collections::BTreeSet;

use rlf_forge::graph::{FromUser, InputId, ToolGraph, ValueType};
use rlf_forge::sampling::{SamplingOptions, Source, Strategy, missing, sample, sources};

use crate::{examples, from_user, graph, graph_of, input, key, optional, output, tool};

/// Login gives a token, search takes it and gives an item, buy takes both.
fn shop() -> ToolGraph {
    graph(vec![
        tool(
            "Shop",
            "login",
            vec![from_user("name", ValueType::Text)],
            vec![output("token", key("Shop.session"))],
        ),
        tool(
            "Shop",
            "search",
            vec![input("token", key("Shop.session"))],
            vec![output("item", key("Shop.item"))],
        ),
        tool(
            "Shop",
            "buy",
            vec![
                input("token", key("Shop.session")),
                input("item", key("Shop.item")),
                optional("gift", ValueType::Boolean),
            ],
            vec![],
        ),
    ])
}

fn chains(
    graph: &ToolGraph,
    strategy: Strategy,
    options: &SamplingOptions,
    count: u64,
) -> Vec<Vec<usize>> {
    (0..count)
        .map(|index| sample(graph, strategy, options, 1, index).unwrap().tools)
        .collect()
}

#[test]
fn a_chain_is_valid_if_every_required_input_has_a_source_before_it() {
    let graph = shop();
    assert_eq!(missing(&graph, &[0, 1, 2]), []);
    let wrong = missing(&graph, &[0, 2, 1]);
    assert_eq!(wrong.len(), 1);
    assert_eq!(
        (wrong[0].step, wrong[0].input.as_str()),
        (1, "Shop-buy.item")
    );
    assert_eq!(wrong[0].given_by, ["Shop-search"]);
    let names: Vec<String> = missing(&graph, &[2, 0, 1])
        .into_iter()
        .map(|one| one.input)
        .collect();
    assert_eq!(names, ["Shop-buy.token", "Shop-buy.item"]);
}

#[test]
fn all_sources_of_an_input_are_named() {
    let graph = shop();
    let token = InputId { tool: 2, input: 0 };
    let steps = [
        Source::Step { step: 0, output: 0 },
        Source::Step { step: 2, output: 0 },
    ];
    assert_eq!(sources(&graph, &[0, 1, 0], token), steps);
    assert_eq!(sources(&graph, &[1], token), []);
    assert_eq!(
        sources(&graph, &[], InputId { tool: 0, input: 0 }),
        [Source::User(FromUser::ByRule)]
    );
}

#[test]
fn priors_come_before_the_tool_and_before_each_other() {
    let graph = shop();
    let options = SamplingOptions {
        tools: 1,
        ..SamplingOptions::default()
    };
    let starts: BTreeSet<Vec<usize>> = chains(&graph, Strategy::Topology, &options, 100)
        .into_iter()
        .collect();
    // Whichever tool comes first, those that fill its inputs come before it. A chain of one tool can so have three. The
    // item of `buy` is filled by `search`, whose token is there already, or by `search` after `login`.
    let expected = [vec![0], vec![0, 1], vec![0, 1, 2]];
    assert_eq!(starts, expected.into_iter().collect());
}

#[test]
fn the_defaults_are_the_published_parameters() {
    let options = SamplingOptions::default();
    assert_eq!(
        (
            options.tools,
            options.max_servers,
            options.max_depth,
            options.max_turn
        ),
        (10, 3, 5, 5)
    );
    assert_eq!((options.skip_optional, options.skip_filled), (0.6, 0.9));
}

#[test]
fn inputs_are_skipped_with_the_probabilities_of_the_options() {
    // One tool with an optional input that only `give` fills, and one whose input the user knows as well.
    let skipped = |taken: rlf_forge::graph::Input| {
        let graph = graph(vec![
            tool("A", "give", vec![], vec![output("value", key("A.value"))]),
            tool("B", "take", vec![taken], vec![]),
        ]);
        let options = SamplingOptions {
            tools: 1,
            ..SamplingOptions::default()
        };
        let all = chains(&graph, Strategy::Topology, &options, 20_000);
        let of_take = all.iter().filter(|chain| chain.last() == Some(&1)).count();
        let alone = all.iter().filter(|chain| **chain == [1]).count();
        alone as f64 / of_take as f64
    };
    let share = skipped(optional("value", key("A.value")));
    // Four standard errors of a share of about 10,000.
    assert!((share - 0.6).abs() < 0.02, "{share}");
    let share = skipped(from_user("value", key("A.value")));
    assert!((share - 0.9).abs() < 0.013, "{share}");
    // An optional input that the user knows is skipped for either reason.
    let share = skipped(rlf_forge::graph::Input {
        required: false,
        ..from_user("value", key("A.value"))
    });
    assert!((share - (0.6 + 0.4 * 0.9)).abs() < 0.01, "{share}");
    assert_eq!(skipped(input("value", key("A.value"))), 0.0);
}

#[test]
fn priors_are_looked_for_to_the_depth_of_the_options() {
    // Tool n needs the output of tool n - 1.
    let line = (0..9).map(|place| {
        let inputs = if place == 0 {
            vec![]
        } else {
            vec![input("x", key(&format!("A.{}", place - 1)))]
        };
        tool(
            "A",
            &format!("t{place}"),
            inputs,
            vec![output("x", key(&format!("A.{place}")))],
        )
    });
    let graph = graph(line.collect());
    let options = SamplingOptions {
        tools: 1,
        ..SamplingOptions::default()
    };
    let all: BTreeSet<Vec<usize>> = chains(&graph, Strategy::Topology, &options, 300)
        .into_iter()
        .collect();
    let expected: BTreeSet<Vec<usize>> = (0..9_usize)
        .map(|last| (last.saturating_sub(5)..=last).collect())
        .collect();
    assert_eq!(all, expected);
    // The first of six has no source, because a sixth prior would be too deep.
    let chain = (0..).map(|index| sample(&graph, Strategy::Topology, &options, 1, index).unwrap());
    let deep = chain
        .into_iter()
        .find(|chain| chain.tools.last() == Some(&6))
        .unwrap();
    assert!(!deep.is_valid());
    assert_eq!(deep.missing[0].input, "A-t1.x");
}

#[test]
fn two_tools_that_fill_each_other_are_not_each_others_priors() {
    let graph = graph(vec![
        tool(
            "A",
            "a",
            vec![input("y", key("A.y"))],
            vec![output("x", key("A.x"))],
        ),
        tool(
            "A",
            "b",
            vec![input("x", key("A.x"))],
            vec![output("y", key("A.y"))],
        ),
    ]);
    let options = SamplingOptions {
        tools: 1,
        ..SamplingOptions::default()
    };
    let all: BTreeSet<Vec<usize>> = chains(&graph, Strategy::Topology, &options, 100)
        .into_iter()
        .collect();
    assert_eq!(all, [vec![0, 1], vec![1, 0]].into_iter().collect());
    assert!((0..100).all(|index| {
        !sample(&graph, Strategy::Topology, &options, 1, index)
            .unwrap()
            .is_valid()
    }));
}

#[test]
fn the_number_of_successors_is_uniform() {
    // `give` fills four tools that fill nothing.
    let mut tools = vec![tool("A", "give", vec![], vec![output("x", key("A.x"))])];
    tools.extend((0..4).map(|place| {
        tool(
            "A",
            &format!("t{place}"),
            vec![input("x", key("A.x"))],
            vec![],
        )
    }));
    let graph = graph(tools);
    // After `give`, a chain of six goes through its successors, then repeats tools of the server.
    let options = SamplingOptions {
        tools: 6,
        ..SamplingOptions::default()
    };
    let mut seen = [0_usize; 5];
    for chain in chains(&graph, Strategy::Topology, &options, 20_000) {
        if chain[0] == 0 && chain.len() == 6 {
            seen[chain[1]] += 1;
        }
    }
    // Each of the four is the first as often.
    let total: usize = seen[1..].iter().sum();
    assert!(
        seen[1..]
            .iter()
            .all(|&count| count.abs_diff(total / 4) * 20 < total),
        "{seen:?}"
    );
}

#[test]
fn no_chain_has_more_servers_than_allowed() {
    // Six servers whose tools fill each other's inputs.
    let tools = (0..6).flat_map(|server| {
        let name = format!("S{server}");
        [
            tool(
                &name,
                "give",
                vec![],
                vec![output("amount", ValueType::Integer)],
            ),
            tool(
                &name,
                "take",
                vec![input("amount", ValueType::Integer)],
                vec![output("amount", ValueType::Integer)],
            ),
        ]
    });
    let graph = graph(tools.collect());
    for max_servers in 1..=3 {
        let options = SamplingOptions {
            max_servers,
            tools: 15,
            ..SamplingOptions::default()
        };
        for strategy in [Strategy::Topology, Strategy::RandomWalk] {
            let mut most = 0;
            for chain in chains(&graph, strategy, &options, 500) {
                let servers: BTreeSet<&String> = chain
                    .iter()
                    .map(|&tool| &graph.tools()[tool].server)
                    .collect();
                assert!(servers.len() <= max_servers, "{strategy:?}: {servers:?}");
                most = most.max(servers.len());
            }
            assert_eq!(most, max_servers);
        }
    }
}

#[test]
fn chains_of_the_examples_are_valid_and_of_the_length_asked_for() {
    let all = graph_of(&examples());
    for length in [10, 15] {
        let options = SamplingOptions {
            tools: length,
            ..SamplingOptions::default()
        };
        for seed in 0..20 {
            for index in 0..50 {
                let chain = sample(&all, Strategy::Topology, &options, seed, index).unwrap();
                assert!(chain.is_valid(), "{:?}", chain.missing);
                // The last tool from the queue can bring priors along.
                assert!(
                    (length..length + 5).contains(&chain.tools.len()),
                    "{}",
                    chain.tools.len()
                );
                let servers: BTreeSet<&String> = chain
                    .tools
                    .iter()
                    .map(|&tool| &all.tools()[tool].server)
                    .collect();
                assert!(servers.len() <= 3);
                let walk = sample(&all, Strategy::RandomWalk, &options, seed, index).unwrap();
                assert_eq!(walk.tools.len(), length);
            }
        }
    }
}

#[test]
fn topology_aware_chains_are_valid_more_often_than_random_walks() {
    for specification in examples() {
        let graph = graph_of(std::slice::from_ref(&specification));
        let options = SamplingOptions::default();
        let valid = |strategy| {
            (0..1_000)
                .filter(|&index| {
                    sample(&graph, strategy, &options, 0, index)
                        .unwrap()
                        .is_valid()
                })
                .count()
        };
        let (aware, walks) = (valid(Strategy::Topology), valid(Strategy::RandomWalk));
        println!(
            "{}: {aware} of 1000 topology-aware chains are valid, {walks} random walks",
            specification.name
        );
        assert_eq!(aware, 1_000, "{}", specification.name);
        assert!(walks < 700, "{}: {walks}", specification.name);
    }
}

#[test]
fn a_seed_gives_the_same_chains_in_any_order_and_another_seed_others() {
    let graph = graph_of(&examples());
    let options = SamplingOptions::default();
    let one = |seed, index| sample(&graph, Strategy::Topology, &options, seed, index).unwrap();
    let forward: Vec<_> = (0..50).map(|index| one(3, index)).collect();
    let mut backward: Vec<_> = (0..50).rev().map(|index| one(3, index)).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    assert_ne!(forward[0], forward[1]);
    assert_ne!(one(3, 0), one(4, 0));
    let walk = sample(&graph, Strategy::RandomWalk, &options, 3, 0).unwrap();
    assert_ne!(walk.tools, forward[0].tools);
}

#[test]
fn turns_cover_the_chain_with_one_to_five_tools_each() {
    let graph = graph_of(&examples());
    let mut lengths = BTreeSet::new();
    for index in 0..200 {
        let chain = sample(
            &graph,
            Strategy::Topology,
            &SamplingOptions::default(),
            0,
            index,
        )
        .unwrap();
        let covered: Vec<usize> = chain.turns.iter().cloned().flatten().collect();
        assert_eq!(covered, (0..chain.tools.len()).collect::<Vec<_>>());
        lengths.extend(chain.turns.iter().map(ExactSizeIterator::len));
    }
    assert_eq!(lengths, (1..=5).collect());
}

#[test]
fn a_graph_without_tools_has_no_chains() {
    assert_eq!(
        sample(
            &graph(vec![]),
            Strategy::Topology,
            &SamplingOptions::default(),
            0,
            0
        ),
        None
    );
}
