//! The text between two turns of the model, from the end of its turn to the start of its next one, as the template
//! writes it.
//!
//! It is rendered on a stand-in conversation, so that nothing of the real one can change it, and cut after the
//! stand-in's turn. If the template inserts bodies unchanged, which is checked, the text around them is tokenised once
//! for all trajectories.

use crate::message::{Content, Message, Role};
use crate::template::{ChatTemplate, RenderInput, TemplateError};
use crate::tokenizer::{Piece, Tokenizer};
use crate::tool::ToolCall;
use crate::trust::{ControlTokenGuard, GuardedText};

/// The origin of the text between two turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObservationSource {
    /// The results of this number of tool calls, together.
    Tools(usize),
    /// A user, or the host instead of a user.
    User,
}

/// A form of conversation in which a template shows the results of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// An assistant message with all calls, then one tool message each.
    CallsAndResults,
    /// An assistant message with one call, then one tool message each.
    OneCall,
    /// One call and one tool message that holds all bodies.
    OneResult,
    /// A user message that holds all bodies, for templates without a tool role.
    UserMessage,
}

const SHAPES: [Shape; 4] = [
    Shape::CallsAndResults,
    Shape::OneCall,
    Shape::OneResult,
    Shape::UserMessage,
];

/// The text around the bodies of one kind of observation.
#[derive(Debug)]
pub(crate) struct ObservationFrame {
    source: ObservationSource,
    shape: Shape,
    /// None if the template changes bodies: then every observation is rendered.
    chunks: Option<Vec<Chunk>>,
    /// Tokens of the frame alone; an observation never has fewer.
    pub(crate) fixed_tokens: usize,
    /// True if the generation prompt leaves a think block open.
    pub(crate) in_think: bool,
}

#[derive(Debug)]
enum Chunk {
    /// Added tokens, and text that is not next to a body.
    Ids(Vec<u32>),
    /// Text between two added tokens with bodies in it, encoded as one piece, as transformers does.
    Run(Vec<Fill>),
}

#[derive(Debug)]
enum Fill {
    Text(String),
    /// A stand-in for the body with this index.
    Body(usize),
}

/// Renders observations: a template, its guard, and the texts that end turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservationRenderer<'a> {
    pub(crate) template: &'a ChatTemplate,
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) guard: &'a ControlTokenGuard,
    pub(crate) enable_thinking: bool,
    /// The texts of all tokens that end a turn.
    pub(crate) ends: &'a [&'a str],
}

/// Bodies that a template might change: white space, tags, braces, quotes, texts like numbers.
const PROBES: [&str; 7] = [
    "",
    " a\tb ",
    "\n\nc\n\n",
    "<tool_response>d</tool_response>",
    "{\"e\": [1.50]}",
    "</think>\n\nf",
    "'g'\\",
];

impl ObservationFrame {
    pub(crate) fn new(
        renderer: ObservationRenderer,
        source: ObservationSource,
    ) -> Result<Self, TemplateError> {
        let count = match source {
            ObservationSource::Tools(count) => count,
            ObservationSource::User => 1,
        };
        let stand_ins: Vec<String> = (0..count).map(|index| format!("qzbody{index}qz")).collect();
        let shapes: &[Shape] = if source == ObservationSource::User {
            &[Shape::UserMessage]
        } else {
            &SHAPES
        };
        let mut refused = None;
        for shape in shapes {
            let guarded = match renderer.render(source, *shape, &stand_ins) {
                Ok(Some(guarded)) => guarded,
                Ok(None) => continue,
                Err(error) => {
                    refused = refused.or(Some(error));
                    continue;
                }
            };
            let Some(fills) = cut_out(&guarded.plain(), &stand_ins) else {
                continue;
            };
            let chunks = renderer.chunks(&fills);
            let fixed_tokens = {
                let mut ids = Vec::new();
                fill(
                    &chunks,
                    &vec![String::new(); count],
                    renderer.tokenizer,
                    &mut ids,
                );
                ids.len()
            };
            let in_think = guarded.ends_in_think(renderer.ends);
            let mut frame = Self {
                source,
                shape: *shape,
                chunks: None,
                fixed_tokens,
                in_think,
            };
            if renderer.keeps_bodies(&frame, &fills, count) {
                frame.chunks = Some(chunks);
            }
            return Ok(frame);
        }
        Err(refused.unwrap_or_else(|| TemplateError::Render {
            origin: renderer.template.origin().to_owned(),
            message: "it does not show what tools and users say after the model's turn".into(),
        }))
    }

    /// Ids of an observation.
    pub(crate) fn encode(
        &self,
        renderer: ObservationRenderer,
        bodies: &[String],
        ids: &mut Vec<u32>,
    ) -> Result<(), TemplateError> {
        if let Some(chunks) = &self.chunks {
            fill(chunks, bodies, renderer.tokenizer, ids);
            return Ok(());
        }
        let guarded = renderer.render(self.source, self.shape, bodies)?;
        let guarded = guarded.ok_or_else(|| TemplateError::Render {
            origin: renderer.template.origin().to_owned(),
            message: "the end of the model's turn is missing from an observation".into(),
        })?;
        ids.extend(guarded.encode(renderer.tokenizer));
        Ok(())
    }
}

impl ObservationRenderer<'_> {
    /// Renders `bodies` in the stand-in conversation. Returns the text after the stand-in's turn, or `None` if the
    /// template does not end that turn.
    fn render(
        &self,
        source: ObservationSource,
        shape: Shape,
        bodies: &[String],
    ) -> Result<Option<GuardedText>, TemplateError> {
        // A body must not contain the text by which the stand-in's turn is found.
        let mut anchor = String::from("qzturnqz");
        while bodies.iter().any(|body| body.contains(&anchor)) {
            anchor.push_str("turnqz");
        }
        let joined = [bodies.join("\n")];
        let bodies = if matches!(shape, Shape::OneResult | Shape::UserMessage) {
            &joined
        } else {
            bodies
        };
        let calls = match (source, shape) {
            (ObservationSource::User, _) | (_, Shape::UserMessage) => 0,
            (ObservationSource::Tools(count), Shape::CallsAndResults) => count,
            _ => 1,
        };
        let role = if calls == 0 { Role::User } else { Role::Tool };
        let call = ToolCall {
            call_id: String::new(),
            name: anchor.clone(),
            arguments: serde_json::json!({ anchor.clone(): anchor.clone() }),
        };
        let mut messages = vec![
            Message::text(Role::User, "qzaskqz"),
            Message {
                tool_calls: vec![call; calls],
                ..Message::text(Role::Assistant, anchor.as_str())
            },
        ];
        messages.extend(bodies.iter().map(|body| Message::text(role, body.as_str())));
        let input = RenderInput {
            messages: &messages,
            tools: &[],
            enable_thinking: Some(self.enable_thinking),
            add_generation_prompt: true,
        };
        Ok(self
            .guard
            .render(self.template, &input)?
            .after_turn(&anchor, self.ends))
    }

    fn chunks(&self, fills: &[Fill]) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut run = Vec::new();
        for fill in fills {
            let text = match fill {
                Fill::Body(index) => {
                    run.push(Fill::Body(*index));
                    continue;
                }
                Fill::Text(text) => text,
            };
            for piece in self.tokenizer.pieces(text) {
                match piece {
                    Piece::Plain(text) => run.push(Fill::Text(text.to_owned())),
                    Piece::Added(id) => {
                        self.end_run(&mut run, &mut chunks);
                        push_ids(&[id], &mut chunks);
                    }
                }
            }
        }
        self.end_run(&mut run, &mut chunks);
        chunks
    }

    fn end_run(&self, run: &mut Vec<Fill>, chunks: &mut Vec<Chunk>) {
        if run.iter().any(|fill| matches!(fill, Fill::Body(_))) {
            chunks.push(Chunk::Run(std::mem::take(run)));
            return;
        }
        let mut text = String::new();
        fill_text(run, &[], &mut text);
        push_ids(&self.tokenizer.encode_untrusted(&text), chunks);
        run.clear();
    }

    /// True if the template shows every body unchanged, in every position.
    fn keeps_bodies(&self, frame: &ObservationFrame, fills: &[Fill], count: usize) -> bool {
        (0..PROBES.len()).all(|first| {
            let bodies: Vec<String> = (0..count)
                .map(|at| PROBES[(first + at) % PROBES.len()].to_owned())
                .collect();
            let mut expected = String::new();
            fill_text(fills, &bodies, &mut expected);
            match self.render(frame.source, frame.shape, &bodies) {
                Ok(Some(guarded)) => guarded.plain() == expected,
                _ => false,
            }
        })
    }
}

fn push_ids(ids: &[u32], chunks: &mut Vec<Chunk>) {
    match chunks.last_mut() {
        _ if ids.is_empty() => {}
        Some(Chunk::Ids(known)) => known.extend_from_slice(ids),
        _ => chunks.push(Chunk::Ids(ids.to_vec())),
    }
}

fn fill_text(fills: &[Fill], bodies: &[String], out: &mut String) {
    for fill in fills {
        match fill {
            Fill::Text(text) => out.push_str(text),
            Fill::Body(index) => out.push_str(bodies.get(*index).map_or("", String::as_str)),
        }
    }
}

fn fill(chunks: &[Chunk], bodies: &[String], tokenizer: &Tokenizer, ids: &mut Vec<u32>) {
    let mut text = String::new();
    for chunk in chunks {
        match chunk {
            Chunk::Ids(fixed) => ids.extend_from_slice(fixed),
            Chunk::Run(fills) => {
                text.clear();
                fill_text(fills, bodies, &mut text);
                tokenizer.encode_untrusted_into(&text, ids);
            }
        }
    }
}

/// Cuts the text at its stand-ins, if each occurs once and in order.
fn cut_out(text: &str, stand_ins: &[String]) -> Option<Vec<Fill>> {
    let mut fills = Vec::new();
    let mut rest = text;
    for (index, stand_in) in stand_ins.iter().enumerate() {
        let (before, after) = rest.split_once(stand_in.as_str())?;
        fills.extend([Fill::Text(before.to_owned()), Fill::Body(index)]);
        rest = after;
    }
    fills.push(Fill::Text(rest.to_owned()));
    let missing = |fill: &Fill| match fill {
        Fill::Text(text) => stand_ins
            .iter()
            .all(|stand_in| !text.contains(stand_in.as_str())),
        Fill::Body(_) => true,
    };
    fills.iter().all(missing).then_some(fills)
}

/// The body of an observation, ready to be put between two turns: tags escaped, and its middle left out if it has more
/// than `max_tokens` tokens.
pub(crate) fn body(
    content: &[Content],
    renderer: ObservationRenderer,
    max_tokens: usize,
) -> String {
    let text = renderer
        .guard
        .escape_tags(crate::message::plain_text(content));
    shorten(text, renderer.tokenizer, max_tokens)
}

fn shorten(text: String, tokenizer: &Tokenizer, max_tokens: usize) -> String {
    // A token is at least one byte.
    if text.len() <= max_tokens {
        return text;
    }
    let ids = tokenizer.encode_untrusted(&text);
    if ids.len() <= max_tokens {
        return text;
    }
    let detailed = format!("\n[... {} tokens left out ...]\n", ids.len() - max_tokens);
    let long = tokenizer.encode_untrusted(&detailed).len();
    let marker = if long * 4 <= max_tokens {
        detailed
    } else {
        "[...]".to_owned()
    };
    let mut room = max_tokens.saturating_sub(tokenizer.encode_untrusted(&marker).len());
    loop {
        // If a cut is inside a character, head and tail lose that character.
        let cut = |ids: &[u32]| tokenizer.decode(ids);
        let head = cut(&ids[..room - room / 2]);
        let tail = cut(&ids[ids.len() - room / 2..]);
        let head = head.trim_end_matches('\u{fffd}');
        let tail = tail.trim_start_matches('\u{fffd}');
        let shortened = format!("{head}{marker}{tail}");
        let length = tokenizer.encode_untrusted(&shortened).len();
        if length <= max_tokens || room == 0 {
            return shortened;
        }
        // Pieces merge differently at the cuts, so try with a token or two less.
        room = room.saturating_sub(length - max_tokens);
    }
}
