//! The meaning of a task's words, for the model that writes them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::graph::ValueType;
use crate::tasks::record::{GoldCall, TaskRecord, Turn};
use crate::tasks::request::{Description, Fact, Mention, Request};
use crate::tasks::suite::Suite;
use crate::tasks::text::{noun, spaced, spoken};

/// Maximum number of characters of a result that the model is shown.
const MAX_RESULT: usize = 300;

/// The tools that the user asks for, with their descriptions.
pub(super) fn tools(suite: &Suite, task: &TaskRecord) -> String {
    let requests = task.turns.iter().flat_map(|turn| &turn.requests);
    let names: BTreeSet<&String> = requests.map(|request| &request.tool).collect();
    let mut text = String::new();
    for name in names {
        let description = suite.tool(name).map_or("", |tool| &tool.description);
        let _ = writeln!(text, "- {name}: {description}");
    }
    text
}

/// Turn by turn: what is asked for and what is said about it, what was done, and what the words must and must not say.
pub(super) fn meaning(suite: &Suite, task: &TaskRecord) -> String {
    let mut text = String::new();
    let mut number = 0;
    for (place, turn) in task.turns.iter().enumerate() {
        let _ = writeln!(text, "Turn {}", place + 1);
        let _ = writeln!(text, "Plain words: {}", turn.query);
        let mut requested = turn.calls.iter().filter(|call| call.requested);
        for request in &turn.requests {
            number += 1;
            let also = if request.joined {
                " (in one sentence with the request before it)"
            } else {
                ""
            };
            let _ = writeln!(text, "Request {number}: {}{also}", request.tool);
            for (parameter, mention) in &request.arguments {
                let _ = writeln!(text, "  {parameter}: {}", meant(mention));
            }
            // The requests are those for the requested calls, in their order.
            if let Some(left_out) = requested.next().and_then(|call| left_out(request, call)) {
                let _ = writeln!(text, "  say nothing about: {left_out}");
            }
        }
        for call in &turn.calls {
            let _ = writeln!(text, "{}", done(call));
        }
        let _ = writeln!(text, "Write exactly so: {}", list(must(turn)));
        let _ = writeln!(
            text,
            "Never write: {}\n",
            list(must_not(suite, task, place))
        );
    }
    text
}

/// The parameters of the requested call that the words leave out.
fn left_out(request: &Request, call: &GoldCall) -> Option<String> {
    let names = call.arguments.keys();
    let names: Vec<&str> = names
        .filter(|name| !request.arguments.contains_key(*name))
        .map(String::as_str)
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn done(call: &GoldCall) -> String {
    let arguments = Value::Object(call.arguments.clone()).to_string();
    let result = call.result.to_string();
    let end = result.floor_char_boundary(MAX_RESULT);
    let more = if end < result.len() { ".." } else { "" };
    format!(
        "Done: {} {arguments} -> {}{more}",
        call.tool,
        &result[..end]
    )
}

fn list(values: BTreeSet<String>) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    values.into_iter().collect::<Vec<_>>().join(" | ")
}

/// The values that the words of a turn must say.
fn must(turn: &Turn) -> BTreeSet<String> {
    let requests = turn.requests.iter();
    let mentions = requests.flat_map(|request| request.arguments.values());
    mentions.flat_map(Mention::values).map(spoken).collect()
}

/// The keys that the words of a turn must not say: those of its calls that only tools know.
fn must_not(suite: &Suite, task: &TaskRecord, turn: usize) -> BTreeSet<String> {
    let calls = task.turns[turn].calls.iter();
    let arguments = calls.flat_map(|call| {
        let names = call.arguments.iter();
        names.map(|(name, value)| (call.tool.as_str(), name.as_str(), value))
    });
    arguments
        .filter(|(tool, name, _)| {
            suite.input(tool, name).is_some_and(|input| {
                matches!(input.kind.item(), ValueType::Key(_)) && input.from_user.is_none()
            })
        })
        .map(|(_, _, value)| spoken(value))
        .collect()
}

/// The part of the words that is about an argument.
fn meant(mention: &Mention) -> String {
    match mention {
        Mention::Value(value) => format!("the value `{}`", spoken(value)),
        Mention::Described(description) => described(description),
        Mention::Same {
            request,
            parameter,
            entity,
        } => format!(
            "the same {} as the {} of request {}; refer to it (\"the same ..\", \"her\", \"it\"), and do not name it again",
            noun(entity),
            spaced(parameter),
            request + 1
        ),
        Mention::Produced {
            request, entity, ..
        } => format!(
            "the {} that request {} makes; refer to it (\"the new ..\", \"that ..\")",
            noun(entity),
            request + 1
        ),
        Mention::FieldOf { parameter, field } => format!(
            "the {} on record of the {}; ask for it without the value (\"as much as ..\", \"the whole ..\")",
            spaced(field),
            spaced(parameter.strip_suffix("_id").unwrap_or(parameter))
        ),
    }
}

fn described(description: &Description) -> String {
    if let Some(through) = &description.through {
        let owner = Description {
            entity: through.entity.clone(),
            through: None,
            facts: description.facts.clone(),
        };
        let field = through.field.strip_suffix("_id").unwrap_or(&through.field);
        return format!("the {} of {}", spaced(field), described(&owner));
    }
    let mut text = format!("the {}", noun(&description.entity));
    let facts = &description.facts;
    for fact in facts {
        let _ = match fact {
            Fact::Is { field, value } => {
                write!(text, ", whose {} is `{}`", spaced(field), spoken(value))
            }
            Fact::Of { mention, .. } => write!(text, ", that belongs to {}", meant(mention)),
            Fact::Among { parameter, value } => {
                write!(text, ", of {} `{}`", spaced(parameter), spoken(value))
            }
            Fact::Extreme { field, highest } => write!(
                text,
                ", of those the one with the {} {}",
                if *highest { "highest" } else { "lowest" },
                spaced(field)
            ),
            Fact::Only => write!(text, ", the only one"),
        };
    }
    text
}
