//! A conversation that another program had, as a trajectory that rewards can grade.

use crate::config::AnswerRule;
use crate::message::{Message, Role};
use crate::tool::{CallOutcome, Observation};
use crate::trajectory::{Event, Finish, ModelTurn, Trajectory};
use crate::turn;

const THINK_OPEN: &str = "<think>";
const THINK_CLOSE: &str = "</think>";

/// Converts a conversation into a trajectory without token sequences, which rewards can grade but nothing can train on.
///
/// Messages before the model's first turn belong to the task. `rule` finds the answer in the model's last message if that
/// message ends the conversation and calls no tool.
pub fn trajectory_from_messages(
    id: String,
    task: &str,
    messages: Vec<Message>,
    rule: AnswerRule,
) -> Trajectory {
    let mut events = Vec::new();
    let mut pending = Vec::new();
    let mut answer = None;
    let mut turns = 0;
    for message in messages {
        answer = None;
        match message.role {
            Role::Assistant => {
                let text = message.plain_text();
                let (reasoning, visible) = match message.reasoning_content {
                    Some(reasoning) => (Some(reasoning), text.clone()),
                    None => without_reasoning(&text),
                };
                let mut calls = message.tool_calls;
                for (index, call) in calls.iter_mut().enumerate() {
                    if call.call_id.is_empty() {
                        call.call_id = format!("{id}/{turns}/{index}");
                    }
                }
                turns += 1;
                if calls.is_empty() {
                    answer = turn::answer(&visible, rule, true);
                }
                pending.clone_from(&calls);
                pending.reverse();
                events.push(Event::Turn(ModelTurn {
                    text,
                    reasoning,
                    visible,
                    calls,
                    malformed: Vec::new(),
                    tokens: 0,
                    feedback: Vec::new(),
                }));
            }
            Role::Tool => {
                let call = pending.pop();
                let (call_id, name) =
                    call.map_or_else(Default::default, |call| (call.call_id, call.name));
                let observation = Observation {
                    content: message.content,
                    ..Observation::default()
                };
                let outcome = CallOutcome::from_observation(call_id, name, observation);
                events.push(Event::Outcome(outcome));
            }
            Role::System | Role::User => {
                if !events.is_empty() {
                    events.push(Event::User(message));
                }
            }
        }
    }
    Trajectory {
        id,
        task: task.to_owned(),
        tools: Vec::new(),
        events,
        sequences: Vec::new(),
        finish: if answer.is_some() {
            Finish::Answered
        } else {
            Finish::MaxTurns
        },
        answer,
        excluded: None,
        closed_turns: 0,
        final_state: None,
        verdict: None,
        unjudged: None,
    }
}

/// The reasoning and the visible part of a message whose source does not keep them apart. The tag that opens a think block
/// may be missing, because some chat templates write it before the model's turn. A block that is not closed contains no
/// answer.
fn without_reasoning(text: &str) -> (Option<String>, String) {
    if let Some((before, after)) = text.rsplit_once(THINK_CLOSE) {
        let reasoning = before.trim_start();
        let reasoning = reasoning.strip_prefix(THINK_OPEN).unwrap_or(reasoning);
        return (Some(reasoning.trim().to_owned()), after.trim().to_owned());
    }
    match text.split_once(THINK_OPEN) {
        Some((before, after)) => (Some(after.trim().to_owned()), before.trim().to_owned()),
        None => (None, text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn trajectory(messages: Value, rule: AnswerRule) -> Trajectory {
        let messages = serde_json::from_value(messages).unwrap();
        trajectory_from_messages("t#0".into(), "t", messages, rule)
    }

    #[test]
    fn a_conversation_is_a_trajectory_with_calls_and_their_outcomes() {
        let messages = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "2+3?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"name": "calculate", "arguments": {"expression": "2+3"}},
                {"name": "calculate", "arguments": {"expression": "5"}}]},
            {"role": "tool", "content": "5"},
            {"role": "tool", "content": "five"},
            {"role": "assistant", "content": "5", "reasoning_content": "easy"}
        ]);
        let played = trajectory(messages, AnswerRule::FinalTurn);
        assert_eq!(
            (played.answer.as_deref(), played.finish),
            (Some("5"), Finish::Answered)
        );
        assert_eq!(played.events.len(), 4);
        let Event::Outcome(second) = &played.events[2] else {
            panic!("{:?}", played.events[2])
        };
        assert_eq!(
            (second.call_id.as_str(), second.name.as_str()),
            ("t#0/0/1", "calculate")
        );
        let Event::Turn(last) = &played.events[3] else {
            panic!("{:?}", played.events[3])
        };
        assert_eq!(last.reasoning.as_deref(), Some("easy"));
    }

    #[test]
    fn a_model_that_calls_last_or_is_asked_last_gave_no_answer() {
        let asked = trajectory(
            json!([
                {"role": "assistant", "content": "5"},
                {"role": "user", "content": "sure?"}
            ]),
            AnswerRule::FinalTurn,
        );
        assert_eq!((asked.answer, asked.finish), (None, Finish::MaxTurns));
        assert_eq!(trajectory(json!([]), AnswerRule::FinalTurn).answer, None);
    }

    #[test]
    fn reasoning_contains_no_answer() {
        let answer = |text: &str, rule| {
            trajectory(json!([{"role": "assistant", "content": text}]), rule).answer
        };
        let text = "<think>Is it <answer>4</answer>?</think>\nIt is <answer>5</answer>.";
        assert_eq!(answer(text, AnswerRule::Tag).as_deref(), Some("5"));
        assert_eq!(
            answer("so 5</think> 5", AnswerRule::FinalTurn).as_deref(),
            Some("5")
        );
        let open = "<think>Is it <answer>4</answer>?";
        assert_eq!(answer(open, AnswerRule::Tag), None);
        assert_eq!(answer(open, AnswerRule::FinalTurn), None);
        assert_eq!(answer("5", AnswerRule::Tag), None);
        assert_eq!(
            answer(r"\boxed{5}", AnswerRule::Boxed).as_deref(),
            Some("5")
        );
    }
}
