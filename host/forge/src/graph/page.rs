//! The page that draws a graph: one HTML file without external resources.

mod drawing;
mod layout;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{FromUser, Input, InputId, Link, Reason, ToolGraph};
use drawing::reason_name;
use layout::Layout;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// The content security policy of the page: nothing is loaded from anywhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

impl ToolGraph {
    /// The graph as a page to read and search: a drawing with a search box, and all inputs, outputs and edges of the
    /// tool that was clicked on, each edge with its reason.
    pub fn to_html(&self, title: &str) -> String {
        let layout = Layout::new(self);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { (title) }
                        input type="search" placeholder="Search tools, inputs and outputs" aria-label="Search" autocomplete="off";
                        " " span #found .muted aria-live="polite" {}
                        (legend())
                    }
                    main { (drawing::drawing(self, &layout)) }
                    aside {
                        (start(self))
                        @for tool in 0..self.tools().len() { (tool_section(self, tool)) }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

fn legend() -> Markup {
    html! {
        p .legend .muted {
            span { span .swatch style="border-color:var(--key)" {} "same declared key" }
            span { span .swatch style="border-color:var(--type);border-top-style:dashed" {} "same values" }
            span { span .swatch style="border-color:var(--similarity);border-top-style:dotted" {} "similar" }
            span { span .dot style="background:#f5b301" {} "the user provides it" }
            span { span .dot style="background:#b3261e" {} "nothing can fill it" }
            span { "grey name: optional" }
        }
    }
}

/// The text at the side before a tool is chosen.
fn start(graph: &ToolGraph) -> Markup {
    let counts = graph.counts();
    let (similarity, threshold) = graph.similarity();
    let rows = [
        ("servers", counts.servers),
        ("tools", counts.tools),
        ("inputs", counts.inputs),
        (
            "… that the user provides, as declared",
            counts.from_user_declared,
        ),
        (
            "… that the user provides, by rule",
            counts.from_user_by_rule,
        ),
        ("outputs", counts.outputs),
        ("edges by the same declared key", counts.by_key),
        ("edges by the same values", counts.by_type),
        ("edges by similarity", counts.by_similarity),
        ("edges between tools", counts.depends),
    ];
    html! {
        section #start {
            h2 { "The whole graph" }
            p .muted {
                "Inputs are at the left of a tool, outputs at the right. An edge leads from an output to an input that it can fill. "
                "Tools in the first column need nothing but what the user provides. Click on a tool to see its edges; Esc shows all."
            }
            @if !graph.unfillable().is_empty() {
                h3 .bad { "Nothing can fill" }
                ul {
                    @for one in graph.unfillable() {
                        li { (tool_link(one.input.tool, &one.name)) @if !one.required { " (optional)" } ": " (one.why.text()) }
                    }
                }
            }
            table { @for (name, count) in rows { tr { td { (name) } td { (count) } } } }
            p .muted {
                "Similarity: " (similarity) ", at least " (threshold) "."
                @for (name, value) in graph.similarity_details() { " " (name) ": " (value) "." }
            }
            details {
                summary { "All tools" }
                @for (server, tools) in graph.servers() {
                    h3 { (server) }
                    ul { @for tool in tools { li { (tool_link(tool, &graph.tools()[tool].name)) } } }
                }
            }
        }
    }
}

fn tool_section(graph: &ToolGraph, number: usize) -> Markup {
    let tool = &graph.tools()[number];
    html! {
        section id=(format!("tool-{number}")) {
            h2 { (tool.full_name()) }
            p { (tool.description) }
            @if graph.rank(number).is_none() { p .bad { "It can never be called: nothing fills a required input." } }
            h3 { "Inputs" }
            @if tool.inputs.is_empty() { p .muted { "none" } }
            table {
                @for (place, input) in tool.inputs.iter().enumerate() {
                    tr {
                        td { code { (input.name) } br; span .muted { (input.kind) @if !input.required { ", optional" } } }
                        td { (input.description) (filled_by(graph, InputId { tool: number, input: place }, input)) }
                    }
                }
            }
            h3 { "Outputs" }
            @if tool.outputs.is_empty() { p .muted { "none" } }
            table {
                @for (place, output) in tool.outputs.iter().enumerate() {
                    tr {
                        td { code { (output.name) } br; span .muted { (output.kind) } }
                        td {
                            (output.description)
                            @let leaving = graph.links().iter().filter(|link| (link.from.tool, link.from.output) == (number, place));
                            ul {
                                @for link in leaving {
                                    @let to = &graph.tools()[link.to.tool];
                                    li { "fills " (end_link(graph, number, link.to.tool, &to.inputs[link.to.input].name)) " " (reason(link)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The sources of an input.
fn filled_by(graph: &ToolGraph, id: InputId, input: &Input) -> Markup {
    let unfillable = graph.unfillable().iter().find(|one| one.input == id);
    html! {
        ul {
            @match input.from_user {
                Some(FromUser::Declared) => li { "from the user, as declared" },
                Some(FromUser::ByRule) => li { "from the user, because it is no key" },
                None => {}
            }
            @for link in graph.links_to(id) {
                @let from = &graph.tools()[link.from.tool];
                li { "from " (end_link(graph, id.tool, link.from.tool, &from.outputs[link.from.output].name)) " " (reason(link)) }
            }
            @if let Some(one) = unfillable { li .bad { (one.why.text()) } }
        }
    }
}

fn reason(link: &Link) -> Markup {
    let Link { reason, .. } = link;
    let text = match reason {
        Reason::Key { .. } => "same key".to_owned(),
        other => other.to_string(),
    };
    html! { span .{"why " (reason_name(reason))} { "(" (text) ")" } }
}

fn tool_link(number: usize, text: &str) -> Markup {
    html! { a href=(format!("#tool-{number}")) { (text) } }
}

/// A link to the tool at the other end of an edge. It names the server if that is another.
fn end_link(graph: &ToolGraph, here: usize, there: usize, parameter: &str) -> Markup {
    let tools = graph.tools();
    let name = if tools[here].server == tools[there].server {
        tools[there].name.clone()
    } else {
        tools[there].full_name()
    };
    tool_link(there, &format!("{name}.{parameter}"))
}
