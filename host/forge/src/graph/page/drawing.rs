//! The drawing as SVG.

use maud::{Markup, PreEscaped, html};

use super::layout::{BAND_TITLE, CARD_WIDTH, Layout, TITLE_HEIGHT};
use crate::graph::{Input, InputId, Reason, ToolGraph};

/// Style of the drawing. It is in the SVG, so that a copy of it looks the same elsewhere.
const STYLE: &str = include_str!("drawing.css");

/// Maximum number of characters that are shown of an input's or output's name. The whole name is a tooltip.
const MAX_NAME: usize = 22;

/// The SVG.
pub(super) fn drawing(graph: &ToolGraph, layout: &Layout) -> Markup {
    let (width, height) = (layout.width + 2.0, layout.height + 2.0);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("-1 -1 {width} {height}")) role="img" aria-label="Tools and edges" {
            style { (PreEscaped(STYLE)) }
            @for ((server, _), band) in graph.servers().iter().zip(&layout.bands) {
                rect .band x=(band.x) y=(band.y) width=(band.width) height=(band.height) rx="8" {}
                text .server x=(band.x + 24.0) y=(band.y + BAND_TITLE - 11.0) { (server) }
            }
            @for link in graph.links() {
                path .{"edge " (reason_name(&link.reason))} d=(layout.curve(link)) data-from=(link.from.tool) data-to=(link.to.tool) {}
            }
            @for tool in 0..graph.tools().len() { (card(graph, layout, tool)) }
        }
    }
}

/// The CSS class of edges with this reason.
pub(super) fn reason_name(reason: &Reason) -> &'static str {
    match reason {
        Reason::Key { .. } => "key",
        Reason::Type => "type",
        Reason::Similarity { .. } => "similarity",
    }
}

fn card(graph: &ToolGraph, layout: &Layout, tool: usize) -> Markup {
    let area = layout.cards[tool];
    let description = &graph.tools()[tool];
    let names = description.inputs.iter().map(|input| &input.name);
    let names = names.chain(description.outputs.iter().map(|output| &output.name));
    let words = names.fold(
        format!("{} {}", description.full_name(), description.description),
        |text, name| format!("{text} {name}"),
    );
    let callable = graph.rank(tool).is_some();
    html! {
        g .card data-tool=(tool) data-words=(words.to_lowercase()) {
            a href=(format!("#tool-{tool}")) {
                rect x=(area.x) y=(area.y) width=(area.width) height=(area.height) rx="5" {}
                text .name .unfillable[!callable] x=(area.x + 10.0) y=(area.y + TITLE_HEIGHT - 9.0) {
                    (short(&description.name, 40))
                    title { (description.description) }
                }
                @for (place, input) in description.inputs.iter().enumerate() {
                    @let (x, y) = layout.input(tool, place);
                    @let state = state(graph, InputId { tool, input: place }, input);
                    circle .{"port " (state)} cx=(x) cy=(y) r="4" {}
                    text .{(state)} .optional[!input.required] x=(x + 9.0) y=(y + 4.0) {
                        (short(&input.name, MAX_NAME))
                        title { (input.name) " (" (input.kind) "): " (input.description) }
                    }
                }
                @for (place, output) in description.outputs.iter().enumerate() {
                    @let (x, y) = layout.output(tool, place);
                    circle .port cx=(x) cy=(y) r="4" {}
                    text .right x=(x - 9.0) y=(y + 4.0) {
                        (short(&output.name, MAX_NAME))
                        title { (output.name) " (" (output.kind) "): " (output.description) }
                    }
                }
            }
        }
    }
}

/// The CSS class of an input: `user`, `unfillable` or neither.
fn state(graph: &ToolGraph, id: InputId, input: &Input) -> &'static str {
    if input.from_user.is_some() {
        "user"
    } else if graph
        .unfillable()
        .iter()
        .any(|unfillable| unfillable.input == id)
    {
        "unfillable"
    } else {
        "tool"
    }
}

/// A name that fits, cut if it must be.
fn short(name: &str, most: usize) -> String {
    debug_assert!(
        most as f64 * 6.5 < CARD_WIDTH,
        "the name must fit on the card"
    );
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let start: String = name.chars().take(most - 1).collect();
    format!("{start}…")
}
