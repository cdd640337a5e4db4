//! The tool graph and the chains sampled from it: small graphs by hand, and the shipped examples.

#[path = "graph/edges.rs"]
mod edges;
#[path = "graph/embedded.rs"]
mod embedded;
#[path = "graph/page.rs"]
mod page;
#[path = "graph/sampling.rs"]
mod sampling;
#[path = "graph/threshold.rs"]
mod threshold;

use std::path::PathBuf;

use rlf_forge::graph::{
    FromUser, Input, Lexical, Output, Tool, ToolGraph, ValueType, specified_tools,
};
use rlf_specification::{Format, Specification, read};

/// The shipped examples in the order of their names.
fn examples() -> Vec<Specification> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/specified/examples");
    let names = ["Clinic", "LendingLibrary", "Warehouse"];
    let text = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    names
        .iter()
        .map(|name| read(&text(name), Format::Toml).unwrap())
        .collect()
}

/// The graph of one specification or several.
fn graph_of(specifications: &[Specification]) -> ToolGraph {
    let tools = specifications.iter().flat_map(specified_tools).collect();
    ToolGraph::new(tools, &Lexical::default()).unwrap()
}

/// A tool without descriptions.
fn tool(server: &str, name: &str, inputs: Vec<Input>, outputs: Vec<Output>) -> Tool {
    Tool {
        server: server.into(),
        name: name.into(),
        description: String::new(),
        inputs,
        outputs,
    }
}

/// A required input that the user does not know.
fn input(name: &str, kind: ValueType) -> Input {
    Input {
        name: name.into(),
        kind,
        description: String::new(),
        required: true,
        from_user: None,
    }
}

fn optional(name: &str, kind: ValueType) -> Input {
    Input {
        required: false,
        ..input(name, kind)
    }
}

fn from_user(name: &str, kind: ValueType) -> Input {
    Input {
        from_user: Some(FromUser::ByRule),
        ..input(name, kind)
    }
}

fn output(name: &str, kind: ValueType) -> Output {
    Output {
        name: name.into(),
        kind,
        description: String::new(),
    }
}

fn key(entity: &str) -> ValueType {
    ValueType::Key(entity.into())
}

fn graph(tools: Vec<Tool>) -> ToolGraph {
    ToolGraph::new(tools, &Lexical::default()).unwrap()
}

/// The edges of a graph in words.
fn shown(graph: &ToolGraph) -> Vec<String> {
    let tools = graph.tools();
    let links = graph.links().iter().map(|link| {
        let (from, to) = (&tools[link.from.tool], &tools[link.to.tool]);
        let (output, input) = (
            &from.outputs[link.from.output].name,
            &to.inputs[link.to.input].name,
        );
        format!(
            "{}.{output} -> {}.{input}: {}",
            from.full_name(),
            to.full_name(),
            link.reason
        )
    });
    links.collect()
}
