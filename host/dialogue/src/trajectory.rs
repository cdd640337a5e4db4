//! The trajectory: its events, its token sequences for training, and the loss mask.
//!
//! A trajectory is append-only. Its [`LossMask`] is derived only from the provenance of each [`Segment`], and is true
//! exactly on model tokens. It cannot be built by hand.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Message;
use crate::tool::{CallOutcome, ToolCall, ToolDefinition};

/// The reason why a trajectory ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model answered, or it took a turn with neither a call nor an answer and the configuration ends the episode
    /// then. In the second case the trajectory's `answer` is `None`.
    Answered,
    /// The environment ended the episode.
    Terminated,
    /// The last allowed turn was used.
    MaxTurns,
    /// The context or a token budget was full.
    Length,
    /// The host failed, or the run was stopped.
    Aborted,
}

impl Finish {
    /// The name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Terminated => "terminated",
            Self::MaxTurns => "max-turns",
            Self::Length => "length",
            Self::Aborted => "aborted",
        }
    }
}

/// An attempted tool call that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedCall {
    /// The text of the attempted call.
    pub text: String,
    /// One of the parser's diagnostics, such as `bad-json`.
    pub diagnostic: String,
}

/// One turn of the model, parsed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTurn {
    /// The text exactly as decoded, special tokens included.
    pub text: String,
    /// The text inside think blocks, if there was one.
    pub reasoning: Option<String>,
    /// The text outside think blocks and calls.
    pub visible: String,
    /// Well-formed calls, in order.
    pub calls: Vec<ToolCall>,
    /// Malformed calls, in order.
    pub malformed: Vec<MalformedCall>,
    /// Number of tokens that the model produced.
    pub tokens: u32,
    /// The environment's feedback on a turn that called no tool, in order: on the text itself and, if the environment's
    /// user then left, on their leaving. Named `heard` in JSON.
    #[serde(rename = "heard", default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<EnvironmentFeedback>,
}

/// An environment's feedback on something that was said to it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EnvironmentFeedback {
    /// The environment's own reward for it.
    pub step_reward: Option<f64>,
    /// Hash of the environment's state after it, as in [`CallOutcome::state`].
    pub state: Option<String>,
}

/// Something that happened in a trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The model spoke.
    Turn(ModelTurn),
    /// A call ended.
    Outcome(CallOutcome),
    /// A user, or the host instead of a user, said something.
    User(Message),
}

/// An environment's judgement of a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// True if the task was solved.
    pub success: bool,
    /// Between 0 and 1, both included.
    pub score: f64,
    /// Explanation for people.
    pub reason: String,
}

/// Tokens of the model, with their origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelSegment {
    /// Sampled by the policy, with one log-probability per id, of the distribution that was sampled from.
    Sampled {
        /// Exactly the sampled ids.
        ids: Vec<u32>,
        /// Natural logarithms, same length as `ids`.
        log_probs: Vec<f32>,
    },
    /// Written by a demonstrator.
    Demonstrated {
        /// The demonstrated ids.
        ids: Vec<u32>,
        /// False for a turn that is read and not imitated, such as a mistake that later turns mend.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        imitated: bool,
    },
    /// Text from an endpoint that returns no ids.
    Text(String),
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_true(value: &bool) -> bool {
    *value
}

/// A run of tokens with one provenance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segment {
    /// Text of the template before the first model token, or re-rendered history.
    Prompt(Vec<u32>),
    /// A turn of the model.
    Model(ModelSegment),
    /// Text between two turns of the model.
    Observation(Vec<u32>),
}

/// The token ids that a policy read and wrote, from its first prompt on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<Segment>", into = "Vec<Segment>")]
pub struct TrainingSequence {
    segments: Vec<Segment>,
}

impl From<TrainingSequence> for Vec<Segment> {
    fn from(sequence: TrainingSequence) -> Self {
        sequence.segments
    }
}

/// The error of a sampled segment whose numbers of ids and log-probabilities differ. They would not match the mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sampled segment has {ids} ids and {log_probs} log-probabilities")]
pub struct UnevenSegment {
    /// Number of ids.
    pub ids: usize,
    /// Number of log-probabilities.
    pub log_probs: usize,
}

impl TryFrom<Vec<Segment>> for TrainingSequence {
    type Error = UnevenSegment;

    fn try_from(segments: Vec<Segment>) -> Result<Self, UnevenSegment> {
        for segment in &segments {
            if let Segment::Model(ModelSegment::Sampled { ids, log_probs }) = segment
                && ids.len() != log_probs.len()
            {
                return Err(UnevenSegment {
                    ids: ids.len(),
                    log_probs: log_probs.len(),
                });
            }
        }
        Ok(Self { segments })
    }
}

/// The loss mask of a sequence: true exactly on the tokens that the model produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossMask(Vec<bool>);

impl LossMask {
    /// One entry per token.
    pub fn as_slice(&self) -> &[bool] {
        &self.0
    }

    /// Number of tokens that count in the loss.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|seen| **seen).count()
    }
}

/// The reason why a sequence cannot be used for the requested training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTrainable {
    /// A segment was demonstrated, so it lacks the log-probabilities that policy gradients need.
    #[error("a demonstrated segment has no sampling log-probabilities, so it trains SFT only")]
    Demonstrated,
    /// A segment is text without ids. Any ids for it would be a guess.
    #[error("a segment came as text without token ids; ids are never re-derived from text")]
    Text,
}

/// A sequence for policy gradients. All three fields have one entry per token.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledTokens {
    /// Token ids.
    pub ids: Vec<u32>,
    /// True on model tokens.
    pub mask: LossMask,
    /// Log-probability when sampled; 0 where the mask is false.
    pub log_probs: Vec<f32>,
}

/// A sequence for supervised fine-tuning. All fields but the last have one entry per token.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedTokens {
    /// Token ids.
    pub ids: Vec<u32>,
    /// True on model tokens, sampled or demonstrated, that are to be imitated.
    pub mask: LossMask,
    /// True on model tokens that are not to be imitated.
    pub left_out: Vec<bool>,
    /// The part of a call that each token belongs to. Empty if it is not asked for.
    pub calls: Vec<CallToken>,
}

/// The part of a call that a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallToken {
    /// None: reasoning, an answer, tags, or what is not the model's.
    #[default]
    Outside,
    /// A tool's name.
    Name,
    /// The arguments, as an object.
    Arguments,
}

impl TrainingSequence {
    /// The segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Number of model tokens; text segments count none.
    pub fn model_tokens(&self) -> usize {
        self.segments
            .iter()
            .map(|s| {
                if let Segment::Model(m) = s {
                    m.len()
                } else {
                    0
                }
            })
            .sum()
    }

    /// Number of observation tokens.
    pub fn observation_tokens(&self) -> usize {
        let count = |s: &Segment| {
            if let Segment::Observation(ids) = s {
                ids.len()
            } else {
                0
            }
        };
        self.segments.iter().map(count).sum()
    }

    /// The sequence for policy gradients. Fails unless every model segment was sampled.
    pub fn sampled(&self) -> Result<SampledTokens, NotTrainable> {
        let (mut ids, mut mask, mut log_probs) = (Vec::new(), Vec::new(), Vec::new());
        for segment in &self.segments {
            match segment {
                Segment::Prompt(new) | Segment::Observation(new) => {
                    ids.extend_from_slice(new);
                    log_probs.resize(ids.len(), 0.0);
                    mask.resize(ids.len(), false);
                }
                Segment::Model(ModelSegment::Sampled {
                    ids: new,
                    log_probs: new_log_probs,
                }) => {
                    ids.extend_from_slice(new);
                    log_probs.extend_from_slice(new_log_probs);
                    mask.resize(ids.len(), true);
                }
                Segment::Model(ModelSegment::Demonstrated { .. }) => {
                    return Err(NotTrainable::Demonstrated);
                }
                Segment::Model(ModelSegment::Text(_)) => return Err(NotTrainable::Text),
            }
        }
        Ok(SampledTokens {
            ids,
            mask: LossMask(mask),
            log_probs,
        })
    }

    /// The sequence for supervised fine-tuning, from sampled and demonstrated segments. Fails on text without ids.
    pub fn masked(&self) -> Result<MaskedTokens, NotTrainable> {
        let (mut ids, mut mask, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for segment in &self.segments {
            let (new, [seen, unwanted]) = match segment {
                Segment::Prompt(new) | Segment::Observation(new) => (new, [false, false]),
                Segment::Model(ModelSegment::Sampled { ids: new, .. }) => (new, [true, false]),
                Segment::Model(ModelSegment::Demonstrated { ids: new, imitated }) => {
                    (new, [*imitated, !imitated])
                }
                Segment::Model(ModelSegment::Text(_)) => return Err(NotTrainable::Text),
            };
            ids.extend_from_slice(new);
            mask.resize(ids.len(), seen);
            left_out.resize(ids.len(), unwanted);
        }
        Ok(MaskedTokens {
            ids,
            mask: LossMask(mask),
            left_out,
            calls: Vec::new(),
        })
    }
}

impl ModelSegment {
    /// Number of token ids; 0 for text.
    pub fn len(&self) -> usize {
        match self {
            Self::Sampled { ids, .. } | Self::Demonstrated { ids, .. } => ids.len(),
            Self::Text(_) => 0,
        }
    }

    /// True if the segment has no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A finished episode: its events, and the token sequences that generation saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// Unique within a run.
    pub id: String,
    /// Id of its task.
    pub task: String,
    /// The tools the model was offered.
    pub tools: Vec<ToolDefinition>,
    /// The events, in order.
    pub events: Vec<Event>,
    /// One sequence, or several if `history = "template"` changed the prefix.
    pub sequences: Vec<TrainingSequence>,
    /// The answer, extracted from the model's own text outside think blocks.
    pub answer: Option<String>,
    /// The reason why it ended.
    pub finish: Finish,
    /// Set if the trajectory must not be scored: the infrastructure failure, in words.
    pub excluded: Option<String>,
    /// Number of turns that the host closed, because they did not end with the end-of-turn token.
    pub closed_turns: u32,
    /// The environment's final state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_state: Option<Value>,
    /// The environment's judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The reason why the environment reported no state or no judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
}

impl Trajectory {
    /// Number of tokens that the model produced, each counted once.
    pub fn model_tokens(&self) -> usize {
        self.sequences
            .iter()
            .map(TrainingSequence::model_tokens)
            .sum()
    }

    /// Number of tokens between the model's turns, each counted once.
    pub fn observation_tokens(&self) -> usize {
        self.sequences
            .iter()
            .map(TrainingSequence::observation_tokens)
            .sum()
    }

    /// The model's turns, in order.
    pub fn turns(&self) -> impl Iterator<Item = &ModelTurn> {
        self.events.iter().filter_map(|e| {
            if let Event::Turn(t) = e {
                Some(t)
            } else {
                None
            }
        })
    }

    /// The outcomes of the calls, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = &CallOutcome> {
        self.events.iter().filter_map(|e| {
            if let Event::Outcome(o) = e {
                Some(o)
            } else {
                None
            }
        })
    }
}
