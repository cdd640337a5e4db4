//! Places of tools and edges in the drawing.
//!
//! A server is a band over the whole width, one below the other in the order of the graph. In a band, a tool's column is
//! its rank: tools that the user alone can call are in the first, tools that need results of those in the second, and
//! so on; tools that can never be called are in the last. A column keeps the order of the graph. So a tool that is added to a server
//! moves only what is below it.

use crate::graph::{Link, Tool, ToolGraph};

/// Width of a tool's card.
pub(super) const CARD_WIDTH: f64 = 310.0;
/// Height of a card's title.
pub(super) const TITLE_HEIGHT: f64 = 28.0;
/// Height of a line with an input and an output.
pub(super) const ROW_HEIGHT: f64 = 18.0;
/// Space below the last line of a card.
const CARD_FOOT: f64 = 6.0;
/// Space between columns, in which edges run.
const COLUMN_GAP: f64 = 120.0;
/// Space between the cards of a column.
const CARD_GAP: f64 = 16.0;
/// Space between a band's border and its cards.
const BAND_PADDING: f64 = 24.0;
/// Height of a band's title.
pub(super) const BAND_TITLE: f64 = 34.0;
/// Space between bands.
const BAND_GAP: f64 = 22.0;

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The places of everything.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// The card of each tool.
    pub(super) cards: Vec<Area>,
    /// The band of each server, in the order of [`ToolGraph::servers`].
    pub(super) bands: Vec<Area>,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Layout {
    pub(super) fn new(graph: &ToolGraph) -> Self {
        let columns_of = |tools: &[usize]| columns(graph, tools);
        let servers: Vec<Vec<Vec<usize>>> = graph
            .servers()
            .iter()
            .map(|(_, tools)| columns_of(tools))
            .collect();
        let most = servers.iter().map(Vec::len).max().unwrap_or(0).max(1) as f64;
        let width = 2.0 * BAND_PADDING + most * CARD_WIDTH + (most - 1.0) * COLUMN_GAP;
        let nowhere = Area {
            x: 0.0,
            y: 0.0,
            width: 0.0,
            height: 0.0,
        };
        let mut layout = Self {
            cards: vec![nowhere; graph.tools().len()],
            bands: Vec::new(),
            width,
            height: 0.0,
        };
        for columns in servers {
            let top = layout.height;
            let mut bottom = top + BAND_TITLE;
            for (place, column) in columns.iter().enumerate() {
                let x = BAND_PADDING + place as f64 * (CARD_WIDTH + COLUMN_GAP);
                let mut y = top + BAND_TITLE;
                for &tool in column {
                    let height = card_height(&graph.tools()[tool]);
                    layout.cards[tool] = Area {
                        x,
                        y,
                        width: CARD_WIDTH,
                        height,
                    };
                    bottom = f64::max(bottom, y + height);
                    y += height + CARD_GAP;
                }
            }
            let height = bottom + BAND_PADDING - top;
            layout.bands.push(Area {
                x: 0.0,
                y: top,
                width,
                height,
            });
            layout.height = top + height + BAND_GAP;
        }
        layout.height = f64::max(layout.height - BAND_GAP, 0.0);
        layout
    }

    /// The point at the left of a card where an edge enters the input of this number.
    pub(super) fn input(&self, tool: usize, input: usize) -> (f64, f64) {
        let card = self.cards[tool];
        (card.x, row(card, input))
    }

    /// The point at the right of a card where an edge leaves the output of this number.
    pub(super) fn output(&self, tool: usize, output: usize) -> (f64, f64) {
        let card = self.cards[tool];
        (card.x + card.width, row(card, output))
    }

    /// The curve of an edge as an SVG path: it leaves to the right and enters from the left.
    pub(super) fn curve(&self, link: &Link) -> String {
        let (x1, y1) = self.output(link.from.tool, link.from.output);
        let (x2, y2) = self.input(link.to.tool, link.to.input);
        let forward = x2 - x1;
        // An edge back goes around its cards in the gaps between columns.
        let reach = if forward > 0.0 {
            forward / 2.0
        } else {
            COLUMN_GAP * 0.9
        };
        format!(
            "M{x1:.1} {y1:.1}C{:.1} {y1:.1} {:.1} {y2:.1} {x2:.1} {y2:.1}",
            x1 + reach,
            x2 - reach
        )
    }
}

/// The middle of a card's line.
fn row(card: Area, line: usize) -> f64 {
    card.y + TITLE_HEIGHT + (line as f64 + 0.5) * ROW_HEIGHT
}

fn card_height(tool: &Tool) -> f64 {
    TITLE_HEIGHT + tool.inputs.len().max(tool.outputs.len()).max(1) as f64 * ROW_HEIGHT + CARD_FOOT
}

/// Tools by rank. Ranks that no tool of the server has make no column.
fn columns(graph: &ToolGraph, tools: &[usize]) -> Vec<Vec<usize>> {
    let mut ranks: Vec<usize> = tools
        .iter()
        .map(|&tool| graph.rank(tool).unwrap_or(usize::MAX))
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut columns = vec![Vec::new(); ranks.len()];
    for &tool in tools {
        let rank = graph.rank(tool).unwrap_or(usize::MAX);
        if let Ok(column) = ranks.binary_search(&rank) {
            columns[column].push(tool);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Input, InputId, Lexical, Output, OutputId, Reason, ValueType};

    /// Three servers of several ranks, with tools of different heights.
    fn graph() -> ToolGraph {
        let tool = |server: &str, place: usize| Tool {
            server: server.into(),
            name: format!("t{place}"),
            description: String::new(),
            inputs: (0..place % 4)
                .map(|input| Input {
                    name: format!("{server}{}", place - 1 - input % place.max(1)),
                    kind: ValueType::Text,
                    description: String::new(),
                    required: true,
                    from_user: None,
                })
                .collect(),
            outputs: vec![Output {
                name: format!("{server}{place}"),
                kind: ValueType::Text,
                description: String::new(),
            }],
        };
        let tools = ["A", "B", "C"]
            .iter()
            .flat_map(|server| (0..9).map(|place| tool(server, place)));
        ToolGraph::new(tools.collect(), &Lexical::default()).unwrap()
    }

    #[test]
    fn cards_are_in_their_bands_and_overlap_nowhere() {
        let graph = graph();
        let layout = Layout::new(&graph);
        assert!(
            layout
                .cards
                .iter()
                .map(|card| card.x as i64)
                .collect::<std::collections::BTreeSet<_>>()
                .len()
                > 2
        );
        for (place, (_, tools)) in graph.servers().iter().enumerate() {
            let band = layout.bands[place];
            for &tool in tools {
                let card = layout.cards[tool];
                assert!(card.x >= band.x && card.x + card.width <= band.x + band.width);
                assert!(
                    card.y >= band.y + BAND_TITLE && card.y + card.height <= band.y + band.height
                );
            }
        }
        for (one, a) in layout.cards.iter().enumerate() {
            for b in &layout.cards[..one] {
                let apart = a.x + a.width <= b.x
                    || b.x + b.width <= a.x
                    || a.y + a.height <= b.y
                    || b.y + b.height <= a.y;
                assert!(apart, "{a:?} {b:?}");
            }
        }
        let last = layout.bands[2];
        assert_eq!(
            (layout.width, layout.height),
            (last.width, last.y + last.height)
        );
    }

    #[test]
    fn edges_begin_and_end_at_the_border_of_their_cards() {
        let graph = graph();
        let layout = Layout::new(&graph);
        let link = Link {
            from: OutputId { tool: 0, output: 0 },
            to: InputId { tool: 3, input: 2 },
            reason: Reason::Type,
        };
        let (from, to) = (layout.cards[0], layout.cards[3]);
        assert_eq!(
            layout.output(0, 0),
            (
                from.x + from.width,
                from.y + TITLE_HEIGHT + ROW_HEIGHT / 2.0
            )
        );
        assert_eq!(
            layout.input(3, 2),
            (to.x, to.y + TITLE_HEIGHT + 2.5 * ROW_HEIGHT)
        );
        let curve = layout.curve(&link);
        assert!(curve.starts_with(&format!("M{:.1} ", from.x + from.width)));
        assert!(curve.ends_with(&format!("{:.1} {:.1}", to.x, layout.input(3, 2).1)));
    }

    #[test]
    fn a_tool_that_is_added_moves_nothing_above_it() {
        let graph = graph();
        let mut tools = graph.tools().to_vec();
        let mut added = tools[20].clone();
        added.name = "added".into();
        tools.push(added);
        let larger = ToolGraph::new(tools, &Lexical::default()).unwrap();
        assert_eq!(
            Layout::new(&larger).cards[..18],
            Layout::new(&graph).cards[..18]
        );
    }
}
