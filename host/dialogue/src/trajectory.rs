//! The trajectory: what happened, and the token sequences that training sees.
//!
//! A trajectory is append-only. Its loss mask is derived from the provenance of each segment
//! and from nothing else; there is no way to build one by hand.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Message;
use crate::tool::{CallOutcome, ToolCall, ToolDefinition};

/// Why a trajectory ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model gave its answer; or, where the configuration ends an episode at a turn with neither a call
    /// nor an answer, what would have been one: then the trajectory's `answer` is none.
    Answered,
    /// The environment ended the episode.
    Terminated,
    /// The last allowed turn was spent.
    MaxTurns,
    /// The context or a token budget was full.
    Length,
    /// Something of the host's broke, or the run was stopped.
    Aborted,
}

/// The text a model produced where a tool call could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedCall {
    /// The text of the attempted call.
    pub text: String,
    /// One of the parser's diagnostics, such as `bad-json`.
    pub diagnostic: String,
}

/// One turn of the model, parsed once and for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTurn {
    /// Exactly as decoded, special tokens included.
    pub text: String,
    /// Inside the think block, if there was one.
    pub reasoning: Option<String>,
    /// Outside think blocks and calls.
    pub visible: String,
    /// Well-formed calls, in order.
    pub calls: Vec<ToolCall>,
    /// Calls that were not, in order.
    pub malformed: Vec<MalformedCall>,
    /// How many tokens the model produced.
    pub tokens: u32,
    /// What the environment made of it, in order, where it called no tool: the words themselves, and where its user left
    /// then, that they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
}

/// What an environment made of something that was said to it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Heard {
    /// The environment's own reward of it.
    pub step_reward: Option<f64>,
    /// Names the environment's state after it, as [`CallOutcome::state`] does.
    pub state: Option<String>,
}

/// Something that happened, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The model spoke.
    Turn(ModelTurn),
    /// A call ended.
    Outcome(CallOutcome),
    /// A user, or the host in a user's place, said something.
    User(Message),
}

/// An environment's judgement of a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the task was solved.
    pub success: bool,
    /// In 0..=1.
    pub score: f64,
    /// For people.
    pub reason: String,
}

/// Tokens that a model produced, by how they came to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelSegment {
    /// Sampled by the policy; one log-probability per id, of the distribution sampled from.
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
    },
    /// From an endpoint that gives text and no ids.
    Text(String),
}

/// A run of tokens with one provenance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segment {
    /// What the template put before the first model token, or re-rendered history.
    Prompt(Vec<u32>),
    /// What the model said.
    Model(ModelSegment),
    /// What came between two turns of the model.
    Observation(Vec<u32>),
}

/// What a policy saw and said, as token ids, from its first prompt on.
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

impl TryFrom<Vec<Segment>> for TrainingSequence {
    type Error = String;

    /// Refuses log-probabilities that are not one per id: they would be out of step with the mask.
    fn try_from(segments: Vec<Segment>) -> Result<Self, String> {
        for segment in &segments {
            if let Segment::Model(ModelSegment::Sampled { ids, log_probs }) = segment
                && ids.len() != log_probs.len()
            {
                return Err(format!(
                    "a sampled segment has {} ids and {} log-probabilities",
                    ids.len(),
                    log_probs.len()
                ));
            }
        }
        Ok(Self { segments })
    }
}

/// Which tokens of a sequence the loss sees: true exactly on model tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossMask(Vec<bool>);

impl LossMask {
    /// One entry per token.
    pub fn as_slice(&self) -> &[bool] {
        &self.0
    }

    /// How many tokens the loss sees.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|seen| **seen).count()
    }
}

/// Why a sequence cannot train what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTrainable {
    /// Policy gradients need the log-probability of each token when it was sampled.
    #[error("a demonstrated segment has no sampling log-probabilities, so it trains SFT only")]
    Demonstrated,
    /// The endpoint gave text; ids would have to be guessed.
    #[error("a segment came as text without token ids; ids are never re-derived from text")]
    Text,
}

/// A sequence ready for policy gradients. All three have one entry per token.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledTokens {
    /// Token ids.
    pub ids: Vec<u32>,
    /// True on model tokens.
    pub mask: LossMask,
    /// Log-probability when sampled; 0 where the mask is false.
    pub log_probs: Vec<f32>,
}

/// A sequence ready for supervised fine-tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedTokens {
    /// Token ids.
    pub ids: Vec<u32>,
    /// True on model tokens, sampled or demonstrated.
    pub mask: LossMask,
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

    /// For policy gradients: every model segment must have been sampled.
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

    /// For supervised fine-tuning: sampled and demonstrated segments.
    pub fn masked(&self) -> Result<MaskedTokens, NotTrainable> {
        let (mut ids, mut mask) = (Vec::new(), Vec::new());
        for segment in &self.segments {
            let (new, seen) = match segment {
                Segment::Prompt(new) | Segment::Observation(new) => (new, false),
                Segment::Model(
                    ModelSegment::Sampled { ids: new, .. }
                    | ModelSegment::Demonstrated { ids: new },
                ) => (new, true),
                Segment::Model(ModelSegment::Text(_)) => return Err(NotTrainable::Text),
            };
            ids.extend_from_slice(new);
            mask.resize(ids.len(), seen);
        }
        Ok(MaskedTokens {
            ids,
            mask: LossMask(mask),
        })
    }
}

impl ModelSegment {
    /// Number of token ids; 0 for text.
    pub fn len(&self) -> usize {
        match self {
            Self::Sampled { ids, .. } | Self::Demonstrated { ids } => ids.len(),
            Self::Text(_) => 0,
        }
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One episode: the events, and the token sequences that generation saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// Unique within a run.
    pub id: String,
    /// The task it tried.
    pub task: String,
    /// The tools the model was offered.
    pub tools: Vec<ToolDefinition>,
    /// What happened.
    pub events: Vec<Event>,
    /// One sequence, or several where `history = "template"` changed the prefix.
    pub sequences: Vec<TrainingSequence>,
    /// Extracted from the model's own text, outside think.
    pub answer: Option<String>,
    /// Why it ended.
    pub finish: Finish,
    /// Set where the trajectory must not be scored: an infrastructure failure, in words.
    pub excluded: Option<String>,
    /// Tokens the host added to close a turn that did not end with the end-of-turn token.
    pub closed_turns: u32,
    /// An environment's final state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_state: Option<Value>,
    /// An environment's judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why the environment did not tell its state, or gave no judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
}

impl Trajectory {
    /// Tokens the model produced, each counted once.
    pub fn model_tokens(&self) -> usize {
        self.sequences
            .iter()
            .map(TrainingSequence::model_tokens)
            .sum()
    }

    /// Tokens that came between the model's turns, each counted once.
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

    /// How the calls ended, in order.
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
