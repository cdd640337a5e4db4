//! The parts that the judge sees: the task, its reference, and the part of a trajectory that is judged.

use std::collections::BTreeMap;

use rlf_plugin::{Content, Ended, Event, Message, ModelTurn, Role, Task, Trajectory};

use crate::config::Judged;
use crate::neutral::is_blank;
use crate::shown::Part;

/// Diagnostics of text that is reasoning, or a tag of it, and no attempt at a call.
const REASONING: [&str; 2] = ["unclosed-think", "stray-close"];

/// The messages that the task begins with.
pub(crate) fn task(task: &Task) -> Vec<Part> {
    let part = |message: &Message| labelled(speaker(message.role), &text(&message.content));
    task.prompt.iter().filter_map(part).collect()
}

/// The reference answers, or the reference as it is if it has no answers. Empty if the task has no reference.
pub(crate) fn reference(task: &Task) -> Vec<Part> {
    if let Ok(answers) = task.accepted_answers() {
        let parts = answers.iter().filter(|answer| !is_blank(answer));
        return parts
            .map(|answer| Part::labelled("accepted answer", answer))
            .collect();
    }
    let nothing = ["", "null", "[]", "{}"];
    if nothing.contains(&task.reference.trim()) {
        return Vec::new();
    }
    vec![Part::plain(&task.reference)]
}

/// The judged text of a trajectory. Empty if there is nothing.
pub(crate) fn judged(judged: Judged, trajectory: &Trajectory) -> Vec<Part> {
    match judged {
        Judged::Answer => {
            let answer = trajectory.answer.iter().filter(|answer| !is_blank(answer));
            answer.map(|answer| Part::plain(answer)).collect()
        }
        Judged::Visible => (1..)
            .zip(trajectory.turns())
            .filter_map(|(turn, said)| labelled(&format!("turn {turn}"), &said.visible))
            .collect(),
        Judged::Transcript => transcript(trajectory),
    }
}

fn transcript(trajectory: &Trajectory) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut turn = 0;
    let mut places: BTreeMap<&str, String> = BTreeMap::new();
    let mut acted = false;
    for event in &trajectory.events {
        match event {
            Event::Turn(said) => {
                turn += 1;
                let before = parts.len();
                model_turn(said, turn, &mut parts);
                acted |= parts.len() > before;
                for (number, call) in (1..).zip(&said.calls) {
                    places.insert(&call.call_id, format!("call {number} of turn {turn}"));
                }
            }
            Event::Outcome(outcome) => {
                let place = places.get(outcome.call_id.as_str());
                let place = place.map_or("a call", String::as_str);
                let observation = outcome.observation.as_ref();
                let returned = observation.map_or(String::new(), |seen| text(&seen.content));
                let ended = ended(outcome.ended);
                parts.push(Part::labelled(
                    format!("a tool returned, for {place}, which {ended}"),
                    &returned,
                ));
            }
            Event::User(message) => {
                let label = format!("after turn {turn}, {}", speaker(message.role));
                parts.extend(labelled(&label, &text(&message.content)));
            }
        }
    }
    // A transcript without a word or a call of the model has nothing to judge, whatever others said.
    if acted { parts } else { Vec::new() }
}

fn model_turn(said: &ModelTurn, turn: u32, parts: &mut Vec<Part>) {
    parts.extend(labelled(
        &format!("turn {turn}, the model says"),
        &said.visible,
    ));
    for (number, call) in (1..).zip(&said.calls) {
        parts.push(Part::labelled(
            format!("turn {turn}, the model calls a tool (call {number})"),
            &format!("{} {}", call.name, call.arguments),
        ));
    }
    for call in &said.malformed {
        if !REASONING.contains(&call.diagnostic.as_str()) {
            let label = format!("turn {turn}, the model tries a call that cannot be read");
            parts.extend(labelled(&label, &call.text));
        }
    }
}

fn labelled(label: &str, text: &str) -> Option<Part> {
    (!is_blank(text)).then(|| Part::labelled(label, text))
}

fn speaker(role: Role) -> &'static str {
    match role {
        Role::System => "a system message says",
        Role::User => "the user says",
        Role::Assistant => "the model says",
        Role::Tool => "a tool returned",
    }
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Ok => "succeeded",
        Ended::Failed => "failed",
        Ended::InvalidArguments => "had invalid arguments",
        Ended::Timeout => "ran out of time",
        Ended::MemoryLimit => "ran out of memory",
        Ended::OutputLimit => "wrote too much",
        Ended::Trap | Ended::Exited => "crashed",
        Ended::Denied => "was denied",
        Ended::Unavailable => "was unavailable",
        Ended::Cancelled => "was cancelled",
    }
}

/// The text of contents. Other media are named.
fn text(content: &[Content]) -> String {
    let part = |content: &Content| match content {
        Content::Text(text) | Content::Structured(text) => text.clone(),
        Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => {
            format!("[{}, {} bytes]", blob.media_type, blob.data.len())
        }
    };
    content.iter().map(part).collect::<Vec<_>>().join("\n")
}
