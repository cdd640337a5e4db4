//! Decides whether a turn is an action, an answer or neither, in this order. Each turn is decided once.

use crate::config::AnswerRule;
use crate::parser::ParsedTurn;

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The turn calls tools, or tries to; answer tags in it are ignored.
    Action,
    /// The turn answers.
    Answer(String),
    /// The turn does neither.
    Nothing,
}

const ANSWER_OPEN: &str = "<answer>";
const ANSWER_CLOSE: &str = "</answer>";
const BOXED: &str = "\\boxed{";

impl TurnOutcome {
    /// Decides a turn's outcome. `finished` says whether the model ended the turn itself. A turn that was cut is not a
    /// final turn, but an answer between tags in it counts.
    pub fn from_parsed(parsed: &ParsedTurn, rule: AnswerRule, finished: bool) -> Self {
        if parsed.attempts().next().is_some() {
            return Self::Action;
        }
        let visible = parsed.visible();
        answer(&visible, rule, finished).map_or(Self::Nothing, Self::Answer)
    }
}

/// The answer in the visible text of a turn that calls no tool.
pub(crate) fn answer(visible: &str, rule: AnswerRule, finished: bool) -> Option<String> {
    let answer = match rule {
        AnswerRule::Tag => tagged(visible),
        AnswerRule::Boxed => boxed(visible),
        AnswerRule::FinalTurn if finished && !visible.is_empty() => Some(visible),
        AnswerRule::FinalTurn => None,
    };
    answer.map(|text| text.trim().to_owned())
}

/// The last `<answer>...</answer>`.
fn tagged(visible: &str) -> Option<&str> {
    let close = visible.rfind(ANSWER_CLOSE)?;
    let open = visible[..close].rfind(ANSWER_OPEN)? + ANSWER_OPEN.len();
    Some(&visible[open..close])
}

/// The content of the last `\boxed{...}` with balanced braces.
fn boxed(visible: &str) -> Option<&str> {
    // Search from the end. Each search ends where the one before began, so nothing is read twice.
    let mut end = visible.len();
    while let Some(at) = visible[..end].rfind(BOXED) {
        let open = at + BOXED.len();
        let mut depth = 1_usize;
        for (place, c) in visible[open..end].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(&visible[open..open + place]);
            }
        }
        end = at;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{boxed, tagged};

    #[test]
    fn the_last_answer_counts() {
        assert_eq!(
            tagged("<answer>1</answer> no, <answer> 2 </answer>"),
            Some(" 2 ")
        );
        assert_eq!(tagged("<answer>1"), None);
        assert_eq!(tagged("1</answer><answer>"), None);
        assert_eq!(
            boxed(r"\boxed{1} and \boxed{\frac{1}{2}}."),
            Some(r"\frac{1}{2}")
        );
        assert_eq!(boxed(r"\boxed{1} and \boxed{2"), Some("1"));
        assert_eq!(boxed(r"\boxed{\boxed{3}}"), Some("3"));
        assert_eq!(boxed("boxed{1}"), None);
    }
}
