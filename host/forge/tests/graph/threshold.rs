//! The threshold of the lexical measure has the highest F1 on the examples, whose pairs are labelled.

use std::collections::BTreeSet;

use rlf_dialogue::tool::{Hints, ToolDefinition};
use rlf_forge::graph::{Lexical, Reason, Tool, ToolGraph, defined_tool};
use rlf_specification::Specification;

use crate::{examples, graph_of, shown};

/// Pairs that are no keys and mean the same: a sensible plan passes the output as the input. Read in the examples by hand.
const SAME: [&str; 12] = [
    "Clinic-list_appointments.day -> Clinic-book_appointment.day",
    "Clinic-list_appointments.owed -> Clinic-pay_appointment.amount",
    "Clinic-book_appointment.price -> Clinic-pay_appointment.amount",
    "LendingLibrary-find_member.fine -> LendingLibrary-pay_fine.cents",
    "LendingLibrary-return_book.fine -> LendingLibrary-pay_fine.cents",
    "LendingLibrary-list_loans.title -> LendingLibrary-find_books.text",
    "Warehouse-search_products.free -> Warehouse-add_line.pieces",
    "Warehouse-show_order.pieces -> Warehouse-receive_goods.pieces",
    "Warehouse-show_order.pieces -> Warehouse-add_line.pieces",
    "Warehouse-list_orders.customer -> Warehouse-create_order.customer",
    "Warehouse-search_products.tags -> Warehouse-set_tags.tags",
    "Warehouse-set_tags.label -> Warehouse-search_products.text",
];

/// The tools of a specification as JSON schemas have them: a key is a text.
fn plain_tools(specification: &Specification) -> Vec<Tool> {
    let definition = |operation: &rlf_specification::model::Operation| ToolDefinition {
        name: operation.name.clone(),
        description: operation.description.clone(),
        input_schema: operation.input_schema(),
        output_schema: Some(operation.result.schema()),
        hints: Hints::default(),
        extra: Vec::new(),
    };
    let operations = specification.operations.iter();
    operations
        .map(|operation| defined_tool(&specification.name, &definition(operation)))
        .collect()
}

/// A pair of an output and an input whose types fit.
struct Pair {
    name: String,
    score: f64,
    same: bool,
}

/// All pairs of the examples, read as plain schemas, with the labels that declared keys and [`SAME`] give.
fn pairs() -> Vec<Pair> {
    let declared = shown(&graph_of(&examples()));
    let mut same: BTreeSet<&str> = declared
        .iter()
        .filter_map(|edge| edge.split_once(": key of "))
        .map(|(pair, _)| pair)
        .collect();
    same.extend(SAME);
    let tools = examples().iter().flat_map(plain_tools).collect();
    let graph = ToolGraph::new(tools, &Lexical { threshold: 0.0 }).unwrap();
    let names = shown(&graph);
    let mut labelled = 0;
    let pairs = graph.links().iter().zip(&names).map(|(link, name)| {
        let (name, _) = name.split_once(": ").unwrap();
        let same = same.contains(name);
        labelled += usize::from(same);
        let score = match link.reason {
            Reason::Similarity { score } => score,
            _ => 1.0,
        };
        Pair {
            name: name.to_owned(),
            score,
            same,
        }
    });
    let pairs = pairs.collect();
    assert_eq!(labelled, same.len(), "every label is a pair");
    pairs
}

#[test]
fn no_threshold_finds_the_pairs_that_mean_the_same_better() {
    let pairs = pairs();
    let mean_the_same = pairs.iter().filter(|pair| pair.same).count();
    println!(
        "{} pairs, of which {mean_the_same} mean the same",
        pairs.len()
    );
    println!("threshold  found  right  precision  recall     F1");
    let f1 = |threshold: f64| {
        let found = pairs.iter().filter(|pair| pair.score >= threshold);
        let (found, right) = found.fold((0, 0), |(found, right), pair| {
            (found + 1, right + usize::from(pair.same))
        });
        let (precision, recall) = (
            f64::from(found).recip() * right as f64,
            right as f64 / mean_the_same as f64,
        );
        let f1 = 2.0 * right as f64 / (f64::from(found) + mean_the_same as f64);
        println!(
            "{threshold:>9.2}  {found:>5}  {right:>5}  {precision:>9.3}  {recall:>6.3}  {f1:>5.3}"
        );
        f1
    };
    let scores: Vec<f64> = (10..=20).map(|step| f1(f64::from(step) / 20.0)).collect();
    let chosen = f1(Lexical::THRESHOLD);
    for pair in pairs
        .iter()
        .filter(|pair| pair.same != (pair.score >= Lexical::THRESHOLD))
    {
        let what = if pair.same { "missed" } else { "wrong " };
        println!("{what} {}", pair.name);
    }
    assert!(scores.iter().all(|&other| other <= chosen));
    assert!(chosen > 0.8, "{chosen}");
}
