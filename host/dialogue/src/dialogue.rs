//! Everything that all trajectories of a run share: tokenizer, template, protocol and settings. A check at load makes
//! sure that they fit each other.

use std::sync::{Arc, OnceLock};

use crate::config::{DialogueConfig, InvalidDialogue};
use crate::history::TurnStyle;
use crate::message::{Message, Role};
use crate::observation::{ObservationFrame, ObservationRenderer, ObservationSource};
use crate::prefix::{self, PrefixReport};
use crate::protocol::{Protocol, ProtocolSpec};
use crate::template::{ChatTemplate, RenderInput, TemplateError};
use crate::tokenizer::{Piece, Tokenizer, TokenizerError};
use crate::tool::ToolCall;
use crate::trust::{ControlTokenGuard, GuardedText};

/// The reason why a dialogue cannot be set up, or an episode of it cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DialogueError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] InvalidDialogue),
    /// The template cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The template's form of calls is not known.
    #[error(
        "the chat template {origin} has the markers of no known tool-call protocol; set \
         dialogue.protocol to one of: {known}"
    )]
    NoProtocol {
        /// The template.
        origin: String,
        /// The known protocols.
        known: String,
    },
    /// No token ends the model's turn.
    #[error(
        "the chat template {origin} ends the model's turn with {found:?}, in which the tokenizer \
         knows no added token; template and tokenizer must come from the same model"
    )]
    NoEndOfTurn {
        /// The template.
        origin: String,
        /// The text that the template writes at the end of the model's turn.
        found: String,
    },
    /// A stop id that the tokenizer does not have.
    #[error(
        "stop id {id} is beyond the tokenizer's {size} ids; generation_config.json and the \
         tokenizer must come from the same model"
    )]
    StopId {
        /// The id.
        id: u32,
        /// Highest id + 1.
        size: usize,
    },
    /// A task without messages.
    #[error("task {task}: the prompt is empty; it needs at least one message")]
    EmptyPrompt {
        /// The task.
        task: String,
    },
    /// A prompt that leaves no room for the model's turn.
    #[error(
        "task {task}: the prompt has {tokens} tokens and dialogue.context is {context}; raise it, \
         shorten the prompt, or offer fewer tools"
    )]
    PromptTooLong {
        /// The task.
        task: String,
        /// Tokens of the rendered prompt.
        tokens: usize,
        /// The setting.
        context: u32,
    },
}

/// Frames for turns with fewer calls than this are cached.
const KEPT_FRAMES: usize = 9;

/// The tokenizer, template, protocol and settings of a run, checked against each other. Share it in an [`Arc`].
#[derive(Debug)]
pub struct Dialogue {
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    config: DialogueConfig,
    protocol: Protocol,
    guard: ControlTokenGuard,
    end_of_turn: u32,
    stop_ids: Vec<u32>,
    stop_texts: Vec<String>,
    style: TurnStyle,
    user_frame: Arc<ObservationFrame>,
    tool_frames: [OnceLock<Arc<ObservationFrame>>; KEPT_FRAMES],
    prefix_report: PrefixReport,
}

impl Dialogue {
    /// Checks that the parts fit together. `stop_ids` are those of the model's `generation_config.json`, or none. The
    /// token with which the template ends the model's turn is always a stop id.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        template: ChatTemplate,
        config: DialogueConfig,
        stop_ids: &[u32],
    ) -> Result<Self, DialogueError> {
        config.validate()?;
        let size = tokenizer.vocab_size();
        if let Some(id) = stop_ids.iter().find(|id| **id as usize >= size) {
            return Err(DialogueError::StopId { id: *id, size });
        }
        let protocol = config
            .protocol
            .or_else(|| Protocol::detect(template.source()));
        let protocol = protocol.ok_or_else(|| DialogueError::NoProtocol {
            origin: template.origin().to_owned(),
            known: Protocol::ALL.map(Protocol::as_str).join(", "),
        })?;
        let guard = ControlTokenGuard::new(&tokenizer, protocol.spec())?;
        let end_of_turn = end_of_turn(&template, &tokenizer)?;
        let mut stop_ids = stop_ids.to_vec();
        stop_ids.push(end_of_turn);
        stop_ids.sort_unstable();
        stop_ids.dedup();
        let stop_texts: Vec<String> = stop_ids.iter().map(|id| tokenizer.decode(&[*id])).collect();
        let style = turn_style(&template, protocol.spec());
        let end = tokenizer.decode(&[end_of_turn]);
        let prefix_report = prefix::check(&template, protocol, &style, &end);

        let ends: Vec<&str> = stop_texts.iter().map(String::as_str).collect();
        let renderer = ObservationRenderer {
            template: &template,
            tokenizer: &tokenizer,
            guard: &guard,
            enable_thinking: config.enable_thinking,
            ends: &ends,
        };
        let user_frame = Arc::new(ObservationFrame::new(renderer, ObservationSource::User)?);
        let first = Arc::new(ObservationFrame::new(
            renderer,
            ObservationSource::Tools(1),
        )?);
        let tool_frames = [const { OnceLock::new() }; KEPT_FRAMES];
        tool_frames[1].get_or_init(|| first);
        Ok(Self {
            tokenizer,
            template,
            config,
            protocol,
            guard,
            end_of_turn,
            stop_ids,
            stop_texts,
            style,
            user_frame,
            tool_frames,
            prefix_report,
        })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// The template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The settings.
    pub fn config(&self) -> &DialogueConfig {
        &self.config
    }

    /// The protocol in use, set or recognised.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The token that ends the model's turn in the template.
    pub fn end_of_turn(&self) -> u32 {
        self.end_of_turn
    }

    /// The ids that stop generation: the end of the turn and the model's other stop ids.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    /// The kinds of earlier turns that the template renders unchanged.
    pub fn prefix_report(&self) -> &PrefixReport {
        &self.prefix_report
    }

    pub(crate) fn style(&self) -> &TurnStyle {
        &self.style
    }

    /// Calls `f` with the renderer of observations.
    pub(crate) fn with_observation_renderer<T>(
        &self,
        f: impl FnOnce(ObservationRenderer) -> T,
    ) -> T {
        let ends: Vec<&str> = self.stop_texts.iter().map(String::as_str).collect();
        f(ObservationRenderer {
            template: &self.template,
            tokenizer: &self.tokenizer,
            guard: &self.guard,
            enable_thinking: self.config.enable_thinking,
            ends: &ends,
        })
    }

    pub(crate) fn frame(
        &self,
        source: ObservationSource,
    ) -> Result<Arc<ObservationFrame>, TemplateError> {
        let slot = match source {
            ObservationSource::User => return Ok(Arc::clone(&self.user_frame)),
            ObservationSource::Tools(count) => self.tool_frames.get(count),
        };
        if let Some(frame) = slot.and_then(OnceLock::get) {
            return Ok(Arc::clone(frame));
        }
        let frame = Arc::new(
            self.with_observation_renderer(|renderer| ObservationFrame::new(renderer, source))?,
        );
        Ok(match slot {
            Some(slot) => Arc::clone(slot.get_or_init(|| frame)),
            None => frame,
        })
    }

    pub(crate) fn render(&self, input: &RenderInput) -> Result<GuardedText, TemplateError> {
        self.guard.render(&self.template, input)
    }

    /// True if the generation prompt at the end of a rendering leaves a think block open.
    pub(crate) fn ends_in_think(&self, rendered: &GuardedText) -> bool {
        self.with_observation_renderer(|renderer| rendered.ends_in_think(renderer.ends))
    }
}

fn end_of_turn(template: &ChatTemplate, tokenizer: &Tokenizer) -> Result<u32, DialogueError> {
    let messages = [
        Message::text(Role::User, "qzaskqz"),
        Message::text(Role::Assistant, "qzsaidqz"),
    ];
    let text = template.render(&RenderInput {
        messages: &messages,
        tools: &[],
        enable_thinking: None,
        add_generation_prompt: false,
    })?;
    let found = text.rsplit_once("qzsaidqz").map_or("", |(_, after)| after);
    let added = tokenizer
        .pieces(found)
        .into_iter()
        .find_map(|piece| match piece {
            Piece::Added(id) => Some(id),
            Piece::Plain(_) => None,
        });
    added.ok_or_else(|| DialogueError::NoEndOfTurn {
        origin: template.origin().to_owned(),
        found: found.to_owned(),
    })
}

fn turn_style(template: &ChatTemplate, protocol: &ProtocolSpec) -> TurnStyle {
    let call = ToolCall {
        call_id: String::new(),
        name: "qzcallqz".into(),
        arguments: serde_json::Value::Object(serde_json::Map::new()),
    };
    let said = Message {
        tool_calls: vec![call],
        ..Message::text(Role::Assistant, "qzsaidqz")
    };
    let text = template.render(&RenderInput {
        messages: &[Message::text(Role::User, "qzaskqz"), said],
        tools: &[],
        enable_thinking: None,
        add_generation_prompt: false,
    });
    // Some templates cannot render this conversation (one call and no text, for example). They have no separator.
    let text = text.unwrap_or_default();
    let between = text
        .split_once("qzsaidqz")
        .and_then(|(_, after)| after.split_once(protocol.open));
    let between = between.map_or("", |(between, _)| between);
    let separator = if between.trim().is_empty() {
        between.to_owned()
    } else {
        String::new()
    };
    TurnStyle {
        separator,
        reasoning_apart: !template.writes_reasoning_inside(),
    }
}
