//! How conversations are held: the settings of `[dialogue]` in a run's configuration.

use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;

/// What counts as the model's answer in a turn without calls.
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

/// What follows a turn that neither calls nor answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnNoAnswer {
    /// The trajectory ends without an answer.
    #[default]
    End,
    /// The model is told how to answer, as a user's turn, and goes on.
    Remind,
}

/// What the model reads of its own earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// Exactly what it sampled; sequences only grow.
    #[default]
    AsSampled,
    /// The template's rendering of the parsed turns, as a deployment would show it. Where that
    /// changes what the model had read, a new training sequence begins.
    Template,
}

/// What becomes of calls in the last allowed turn, whose observations nobody will read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastTurnCalls {
    /// They are not run.
    #[default]
    Skip,
    /// They are run for the rewards; nothing is appended to the sequence.
    Grade,
}

/// Settings of a conversation. All have defaults; unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DialogueConfig {
    /// How the model writes calls. Default: recognised from its chat template.
    pub protocol: Option<Protocol>,
    /// What counts as the answer. Default `tag`.
    pub answer: AnswerRule,
    /// What follows a turn that neither calls nor answers, under `answer = "tag"` and `"boxed"`.
    /// Default `end`.
    pub on_no_answer: OnNoAnswer,
    /// What `on_no_answer = "remind"` says. Default: a sentence that fits `answer`.
    pub reminder: Option<String>,
    /// What the model reads of its own earlier turns. Default `as-sampled`.
    pub history: History,
    /// Given to the template; Qwen3's writes an empty think block where it is false. Default false.
    pub enable_thinking: bool,
    /// Turns the model may take, at least 1. Default 8.
    pub max_turns: u32,
    /// Tokens the model may write in one turn, at least 1; a turn cut there is closed by the host.
    /// Default 512.
    pub max_tokens_per_turn: u32,
    /// Tokens a sequence may hold, prompt included; a trajectory that fills it ends with `length`.
    /// Default 4096.
    pub context: u32,
    /// Tokens the body of one observation may have; a longer one keeps its head and tail around a
    /// marker. At least 16. Default 1024.
    pub max_observation_tokens: u32,
    /// What becomes of calls in the last allowed turn. Default `skip`.
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

impl DialogueConfig {
    /// What [`OnNoAnswer::Remind`] says to the model.
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
