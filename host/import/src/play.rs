//! Plays a demonstration through [`Episode`], so that every token, the white space between turns and the loss mask are
//! those that a rollout of the same conversation has.

use std::sync::Arc;

use rlf_dialogue::episode::Reply;
use rlf_dialogue::protocol::{THINK_CLOSE, THINK_OPEN};
use rlf_dialogue::trajectory::{Event, ModelTurn};
use rlf_dialogue::{
    CallOutcome, Dialogue, DialogueError, Ended, Episode, Fault, Finish, Message, NextInput,
    Observation, RenderInput, Role, Step, Task, ToolCall, Trajectory,
};
use serde_json::{Map, Value};

use crate::demonstration::Demonstration;

/// Why a demonstration cannot be played in a dialogue.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// Its prompt cannot be read by the model.
    #[error("demonstration {id}: {source}")]
    Prompt {
        /// The demonstration.
        id: String,
        /// What the dialogue said.
        source: DialogueError,
    },
    /// One of its messages.
    #[error("demonstration {id}: messages[{message}]: {what}")]
    Message {
        /// The demonstration.
        id: String,
        /// Index of the message.
        message: usize,
        /// What is wrong with it, and how to mend it.
        what: String,
    },
}

/// Plays a demonstration: its prompt is read, each of the model's turns behind it becomes the ids that the chat
/// template writes for it, and results and users' messages become observations. The trajectory ends as `answered`
/// where its last turn answers by the dialogue's rule, and as `terminated` where it does not.
pub fn play(
    dialogue: &Arc<Dialogue>,
    demonstration: &Demonstration,
) -> Result<Trajectory, PlayError> {
    let fail = |message: usize, what: String| PlayError::Message {
        id: demonstration.id.clone(),
        message,
        what,
    };
    demonstration
        .check()
        .map_err(|what| fail(demonstration.given, what))?;
    let messages = &demonstration.messages;
    let task = task_of(demonstration);
    let id = format!("demonstration/{}", demonstration.id);
    let mut episode =
        Episode::start(dialogue, id, &task, demonstration.tools.clone()).map_err(|source| {
            PlayError::Prompt {
                id: demonstration.id.clone(),
                source,
            }
        })?;
    // Whatever the model says is followed by what was said to it, never by a reminder of the host's.
    episode.enter_environment();
    let mut at = demonstration.given;
    loop {
        if episode.next_input() == NextInput::Finished {
            return Err(fail(at, "the conversation had ended before".into()));
        }
        let text = protocol_text(dialogue, demonstration, at).map_err(|what| fail(at, what))?;
        let step = episode.push_demonstrated(&text);
        as_demonstrated(episode.events().last(), &messages[at]).map_err(|what| fail(at, what))?;
        at += 1;
        let step = match step {
            Step::Act(calls) if at < messages.len() => {
                let results = messages.get(at..at + calls.len()).unwrap_or_default();
                at += calls.len();
                episode.push_outcomes(calls.iter().zip(results).map(outcome).collect())
            }
            Step::Say(_) if at < messages.len() => {
                let said = messages[at].content.clone();
                at += 1;
                episode.push_reply(Reply::Said(said))
            }
            Step::Say(_) => episode.push_reply(Reply::Ended),
            step => step,
        };
        // Results that no turn follows need not be read.
        let over = messages[at..]
            .iter()
            .all(|message| message.role == Role::Tool);
        match step {
            Step::Finished(Finish::Answered | Finish::Terminated | Finish::MaxTurns) if over => {
                break;
            }
            Step::Act(_) | Step::Grade(_) | Step::Continue if over => {
                episode.terminate();
                break;
            }
            Step::Continue => {}
            Step::Finished(finish) => {
                return Err(fail(at - 1, too_long(dialogue, &episode, finish)));
            }
            Step::Act(_) | Step::Grade(_) | Step::Say(_) => {
                return Err(fail(at - 1, too_long(dialogue, &episode, Finish::MaxTurns)));
            }
        }
    }
    Ok(episode.finish())
}

fn too_long(dialogue: &Dialogue, episode: &Episode, finish: Finish) -> String {
    let config = dialogue.config();
    match finish {
        Finish::MaxTurns => format!(
            "the conversation goes on after {} turns; raise dialogue.max_turns ({})",
            episode.turn(),
            config.max_turns
        ),
        Finish::Length => format!(
            "the conversation is longer than the context; raise dialogue.context ({}), or lower \
             dialogue.max_observation_tokens ({})",
            config.context, config.max_observation_tokens
        ),
        other => format!("the conversation cannot go on here ({other:?})"),
    }
}

fn task_of(demonstration: &Demonstration) -> Task {
    Task {
        id: demonstration.id.clone(),
        source: demonstration.source.clone(),
        prompt: demonstration.messages[..demonstration.given].to_vec(),
        tools: None,
        reference: Value::Null,
        environment: None,
        setup: Value::Null,
        extra: Map::new(),
    }
}

/// A result as the call's outcome. Data sets do not say which results are failures.
fn outcome((call, result): (&ToolCall, &Message)) -> CallOutcome {
    CallOutcome {
        call_id: call.call_id.clone(),
        name: call.name.clone(),
        ended: Ended::Ok,
        fault: Fault::Model,
        observation: Some(Observation {
            content: result.content.clone(),
            ..Observation::default()
        }),
        step_reward: None,
        state: None,
        detail: None,
        wall_us: 0,
        component: String::new(),
    }
}

/// What the model has to write so that its template, rendered with the turn in it, says the same.
fn protocol_text(
    dialogue: &Dialogue,
    demonstration: &Demonstration,
    at: usize,
) -> Result<String, String> {
    let message = &demonstration.messages[at];
    if let Some(token) = control_token(dialogue, message) {
        return Err(format!(
            "it holds {token:?}, which is a control token of the model; nothing but the template may write it, \
             so leave the demonstration out"
        ));
    }
    let render = |end: usize, add_generation_prompt: bool| {
        let input = RenderInput {
            messages: &demonstration.messages[..end],
            tools: &demonstration.tools,
            enable_thinking: Some(dialogue.config().enable_thinking),
            add_generation_prompt,
        };
        dialogue
            .template()
            .render(&input)
            .map_err(|error| error.to_string())
    };
    let asked = render(at, true)?;
    let told = render(at + 1, false)?;
    let reasoning = message
        .reasoning_content
        .as_deref()
        .map(|text| text.trim_matches('\n'));
    let text = after_prompt(&asked, &told, reasoning).ok_or_else(|| {
        if reasoning.is_some() {
            "the template writes its reasoning where the prompt for the turn leaves no room for it; set \
             dialogue.enable_thinking = true, or import without reasoning"
                .to_owned()
        } else {
            "the template does not write the turn behind the prompt for it, so the model could not have written it"
                .to_owned()
        }
    })?;
    let end = dialogue.tokenizer().decode(&[dialogue.end_of_turn()]);
    let (text, _) = text
        .rsplit_once(end.as_str())
        .ok_or_else(|| format!("the template does not end the turn with {end:?}"))?;
    Ok(text.to_owned())
}

/// What `told` says behind `asked`. Some templates' prompts for a turn begin a think block that their rendering of the
/// turn leaves out.
fn after_prompt(asked: &str, told: &str, reasoning: Option<&str>) -> Option<String> {
    if let Some(text) = told.strip_prefix(asked) {
        return Some(text.to_owned());
    }
    let (before, inside) = asked.rsplit_once(THINK_OPEN)?;
    let text = told.strip_prefix(before)?;
    let written = text.starts_with(THINK_OPEN);
    match (inside.trim(), reasoning) {
        ("", reasoning) if !written => {
            let thought = reasoning.map_or(String::new(), |thought| format!("{thought}\n"));
            Some(format!(
                "{thought}{THINK_CLOSE}\n\n{}",
                text.trim_start_matches('\n')
            ))
        }
        (THINK_CLOSE, None) if !written => Some(text.to_owned()),
        _ => None,
    }
}

/// An added token in the text of a turn. The tags of answers are the model's to write.
fn control_token<'d>(dialogue: &'d Dialogue, message: &Message) -> Option<&'d str> {
    let mut texts = vec![message.plain_text()];
    texts.extend(message.reasoning_content.clone());
    texts.extend(
        message
            .tool_calls
            .iter()
            .map(|call| call.arguments.to_string()),
    );
    let is_answer = |token: &str| matches!(token, "<answer>" | "</answer>");
    dialogue
        .tokenizer()
        .added_tokens()
        .map(|(_, token)| token)
        .filter(|token| !token.trim().is_empty() && !is_answer(token))
        .find(|token| texts.iter().any(|text| text.contains(token)))
}

/// Whether the turn, parsed as in a rollout, is the turn that was demonstrated.
fn as_demonstrated(event: Option<&Event>, message: &Message) -> Result<(), String> {
    let Some(Event::Turn(ModelTurn {
        reasoning,
        visible,
        calls,
        malformed,
        text,
        ..
    })) = event
    else {
        return Err("the conversation had ended before".into());
    };
    let same = |(read, meant): (&ToolCall, &ToolCall)| {
        read.name == meant.name && read.arguments == meant.arguments
    };
    let meant = &message.tool_calls;
    let fail = |what: &str| {
        Err(format!(
            "read back from what the template writes, {what}: {text:?}"
        ))
    };
    if !malformed.is_empty() || calls.len() != meant.len() || !calls.iter().zip(meant).all(same) {
        return fail("its calls are others");
    }
    let reasoning = reasoning.as_deref().unwrap_or_default();
    if reasoning.trim()
        != message
            .reasoning_content
            .as_deref()
            .unwrap_or_default()
            .trim()
    {
        return fail("its reasoning is another");
    }
    if visible.trim() != message.plain_text().trim() {
        return fail("its text is another");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::after_prompt;

    #[test]
    fn a_turn_goes_on_where_its_prompt_ends() {
        let after = |asked, told, reasoning| after_prompt(asked, told, reasoning);
        assert_eq!(after("u a:", "u a:six.", None).as_deref(), Some("six."));
        // The prompt opens a think block that the rendering of the turn leaves out.
        let open = "u a:<think>\n";
        assert_eq!(
            after(open, "u a:six.", Some("hm")).as_deref(),
            Some("hm\n</think>\n\nsix.")
        );
        assert_eq!(
            after(open, "u a:six.", None).as_deref(),
            Some("</think>\n\nsix.")
        );
        // The prompt holds an empty one.
        let shut = "u a:<think>\n\n</think>\n\n";
        assert_eq!(after(shut, "u a:six.", None).as_deref(), Some("six."));
        assert_eq!(
            after(shut, "u a:<think>\nhm\n</think>\n\nsix.", Some("hm")),
            None
        );
        assert_eq!(after(shut, "u a:six.", Some("hm")), None);
        assert_eq!(after("u a:", "u b:six.", None), None);
    }
}
