//! A conversation that another program had, as a trajectory that rewards can grade.

use serde::Deserialize;

use crate::config::AnswerRule;
use crate::content::Content;
use crate::message::{Message, Role, content_or_text};
use crate::parser::{ParsedTurn, parse};
use crate::protocol::{ProtocolSpec, THINK_CLOSE, THINK_OPEN};
use crate::tool::{CallOutcome, Observation, ToolCall};
use crate::trajectory::{Event, Finish, ModelTurn, Trajectory};
use crate::turn;

/// A message of a conversation. It is a [`Message`] with the id of the call that a tool answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConversationMessage {
    /// The author.
    pub role: Role,
    /// The content parts, in order. In JSON a plain string means one text part.
    #[serde(with = "content_or_text", default)]
    pub content: Vec<Content>,
    /// An assistant's reasoning, if the source keeps it apart.
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// Calls that an assistant makes in this message.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers. Without it, the message answers the first call without an answer.
    #[serde(default)]
    pub tool_call_id: Option<String>,
}

/// A protocol that has no calls: only think blocks are read.
const NO_CALLS: ProtocolSpec = ProtocolSpec {
    open: "",
    close: None,
    bare: false,
    separator: None,
    name: "",
    arguments: "",
    response: &[],
    example: "",
};

/// Converts a conversation into a trajectory without token sequences, which rewards can grade but nothing can train on.
///
/// Messages before the model's first turn belong to the task. `rule` finds the answer in the model's last message if that
/// message ends the conversation and calls no tool. Think blocks contain no answer.
pub fn trajectory_from_messages(
    id: String,
    task: &str,
    messages: Vec<ConversationMessage>,
    rule: AnswerRule,
) -> Trajectory {
    let mut events = Vec::new();
    let mut unanswered: Vec<ToolCall> = Vec::new();
    let mut answer = None;
    let mut turns = 0;
    for message in messages {
        answer = None;
        match message.role {
            Role::Assistant => {
                let mut calls = message.tool_calls;
                for (index, call) in calls.iter_mut().enumerate() {
                    if call.call_id.is_empty() {
                        call.call_id = format!("{id}/{turns}/{index}");
                    }
                }
                turns += 1;
                let text = crate::message::plain_text(&message.content);
                let turn = read_thoughts(&text);
                let visible = turn.visible();
                if calls.is_empty() {
                    answer = turn::answer(&visible, rule, true);
                }
                let thoughts = [message.reasoning_content, turn.reasoning()];
                unanswered.clone_from(&calls);
                events.push(Event::Turn(ModelTurn {
                    reasoning: thoughts
                        .into_iter()
                        .flatten()
                        .reduce(|all, next| all + "\n" + &next),
                    visible,
                    text,
                    calls,
                    malformed: Vec::new(),
                    tokens: 0,
                    feedback: Vec::new(),
                }));
            }
            Role::Tool => {
                let place = match &message.tool_call_id {
                    Some(id) => unanswered.iter().position(|call| call.call_id == *id),
                    None => (!unanswered.is_empty()).then_some(0),
                };
                let (call_id, name) = match place.map(|place| unanswered.remove(place)) {
                    Some(call) => (call.call_id, call.name),
                    None => Default::default(),
                };
                let observation = Observation {
                    content: message.content,
                    ..Observation::default()
                };
                let outcome = CallOutcome::from_observation(call_id, name, observation);
                events.push(Event::Outcome(outcome));
            }
            Role::System | Role::User => {
                if !events.is_empty() {
                    events.push(Event::User(Message {
                        role: message.role,
                        content: message.content,
                        reasoning_content: None,
                        tool_calls: Vec::new(),
                    }));
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

/// Finds the think blocks of a message. Some chat templates open a block before the model's turn, so that the text begins
/// inside it.
fn read_thoughts(text: &str) -> ParsedTurn<'_> {
    let begins_inside = match (text.find(THINK_CLOSE), text.find(THINK_OPEN)) {
        (Some(close), Some(open)) => close < open,
        (Some(_), None) => true,
        (None, _) => false,
    };
    parse(text, begins_inside, &NO_CALLS, &[""; 0])
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
    fn an_answer_with_an_id_belongs_to_that_call() {
        let call = |id: &str| json!({"call-id": id, "name": id, "arguments": {}});
        let played = trajectory(
            json!([
                {"role": "assistant", "tool_calls": [call("a"), call("b"), call("c")]},
                {"role": "tool", "tool_call_id": "b", "content": "of b"},
                {"role": "tool", "content": "of a"},
                {"role": "tool", "tool_call_id": "x", "content": "of nothing"},
            ]),
            AnswerRule::Tag,
        );
        let names: Vec<&str> = played.outcomes().map(|outcome| &*outcome.name).collect();
        assert_eq!(names, ["b", "a", ""]);
    }

    #[test]
    fn reasoning_that_the_source_keeps_apart_comes_first() {
        let played = trajectory(
            json!([{"role": "assistant", "content": "<think>b</think>5", "reasoning_content": "a"}]),
            AnswerRule::FinalTurn,
        );
        let turn = played.turns().next().unwrap();
        assert_eq!(turn.reasoning.as_deref(), Some("a\nb"));
        assert_eq!(turn.visible, "5");
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
        let twice = "<think>a</think> so <think>is it <answer>4</answer>?";
        assert_eq!(answer(twice, AnswerRule::Tag), None);
        let after = "<answer>5</answer> <think>sure</think>";
        assert_eq!(answer(after, AnswerRule::Tag).as_deref(), Some("5"));
        assert_eq!(
            answer(r"\boxed{5}", AnswerRule::Boxed).as_deref(),
            Some("5")
        );
    }
}
