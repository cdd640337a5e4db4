//! The settings of `[dialogue]` in a run's configuration.

use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;

/// The rule that finds the model's answer in a turn without calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerRule {
    /// The last `<answer>...</answer>` outside think blocks.
    #[default]
    Tag,
    /// Everything outside think blocks.
    FinalTurn,
    /// The last `\boxed{...}` outside think blocks.
    Boxed,
}

/// The reaction to a turn that neither calls nor answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnNoAnswer {
    /// The trajectory ends without an answer.
    #[default]
    End,
    /// A user's turn tells the model how to answer, and the trajectory continues.
    Remind,
}

/// The form in which the model reads its own earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// Exactly as sampled; sequences only grow.
    #[default]
    AsSampled,
    /// Rendered by the template from the parsed turns, as a deployment would show them. If that changes the text that
    /// the model had read, a new training sequence begins.
    Template,
}

/// The treatment of calls in the last allowed turn. The model never reads their observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastTurnCalls {
    /// The calls are not run.
    #[default]
    Skip,
    /// The calls are run for the rewards; nothing is appended to the sequence.
    Grade,
}

/// Settings of a conversation. All have defaults; unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DialogueConfig {
    /// Form in which the model writes calls. Default: recognised from its chat template.
    pub protocol: Option<Protocol>,
    /// Rule that finds the answer. Default `tag`.
    pub answer: AnswerRule,
    /// Reaction to a turn that neither calls nor answers, under `answer = "tag"` and `"boxed"`. Default `end`.
    pub on_no_answer: OnNoAnswer,
    /// Text for `on_no_answer = "remind"`. Default: a sentence that fits `answer`.
    pub reminder: Option<String>,
    /// Form in which the model reads its own earlier turns. Default `as-sampled`.
    pub history: History,
    /// Variable for the template. If it is false, Qwen3's template ends the prompt with an empty think block. Default
    /// false.
    pub enable_thinking: bool,
    /// Number of turns that the model may take, at least 1. Default 8.
    pub max_turns: u32,
    /// Tokens that the model may write in one turn, at least 1. The host closes a turn that is cut there. Default 512.
    pub max_tokens_per_turn: u32,
    /// Tokens that a sequence may have, prompt included. A trajectory that fills it ends with `length`. Default 4096.
    pub context: u32,
    /// Tokens that the body of one observation may have, at least 16. A longer body keeps its head and tail around a
    /// marker. Default 1024.
    pub max_observation_tokens: u32,
    /// Treatment of calls in the last allowed turn. Default `skip`.
    pub last_turn_calls: LastTurnCalls,
}

impl Default for DialogueConfig {
    fn default() -> Self {
        Self {
            protocol: None,
            answer: AnswerRule::default(),
            on_no_answer: OnNoAnswer::default(),
            reminder: None,
            history: History::default(),
            enable_thinking: false,
            max_turns: 8,
            max_tokens_per_turn: 512,
            context: 4096,
            max_observation_tokens: 1024,
            last_turn_calls: LastTurnCalls::default(),
        }
    }
}

/// A setting of a conversation that is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("dialogue.{key}: {value} is too small; at least {least}")]
pub struct InvalidDialogue {
    /// The setting.
    pub key: &'static str,
    /// The configured value.
    pub value: u32,
    /// The minimum that is allowed.
    pub least: u32,
}

impl DialogueConfig {
    /// Refuses settings with which no conversation can be held.
    pub fn validate(&self) -> Result<(), InvalidDialogue> {
        for (key, value, least) in [
            ("max_turns", self.max_turns, 1),
            ("max_tokens_per_turn", self.max_tokens_per_turn, 1),
            ("context", self.context, 2),
            ("max_observation_tokens", self.max_observation_tokens, 16),
        ] {
            if value < least {
                return Err(InvalidDialogue { key, value, least });
            }
        }
        Ok(())
    }

    /// The text that [`OnNoAnswer::Remind`] shows the model.
    pub fn reminder(&self) -> &str {
        match (&self.reminder, self.answer) {
            (Some(text), _) => text,
            (None, AnswerRule::Tag) => {
                "Call a tool, or give your final answer as <answer>your answer</answer>."
            }
            (None, AnswerRule::Boxed) => {
                "Call a tool, or give your final answer as \\boxed{your answer}."
            }
            (None, AnswerRule::FinalTurn) => "Call a tool, or give your final answer.",
        }
    }
}
