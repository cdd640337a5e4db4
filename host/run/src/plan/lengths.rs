//! The lengths of trajectories that a plan assumes.

use crate::config::RunConfig;

/// The lengths of every trajectory, and of every demonstration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of a sequence: `dialogue.context`, if nothing else is said.
    pub tokens: usize,
    /// Tokens of it that the policy writes: as many as `dialogue.max_turns` and `dialogue.max_tokens_per_turn` allow.
    pub written: usize,
    /// Tokens of the prompt, which a group shares: what is left if every observation has its full length.
    pub prompt: usize,
}

impl Lengths {
    /// The lengths with `tokens` for each trajectory, or the longest that the configuration allows.
    pub(crate) fn new(config: &RunConfig, tokens: Option<usize>) -> Self {
        let dialogue = &config.dialogue;
        // A sequence has a token that is read, and one that is written.
        let context = (dialogue.context as usize).max(2);
        let tokens = tokens.map_or(context, |tokens| tokens.clamp(2, context));
        let budget = dialogue.max_turns as usize * dialogue.max_tokens_per_turn as usize;
        let written = budget.clamp(1, tokens - 1);
        let observed = dialogue.max_turns.saturating_sub(1) as usize
            * dialogue.max_observation_tokens as usize;
        Self {
            tokens,
            written,
            prompt: (tokens - written).saturating_sub(observed),
        }
    }
}
