//! One conversation in the store.

use std::collections::BTreeMap;

use rlf_plugin::environment::{Environment, Scenario, Start, Step, no_tool};
use rlf_plugin::serde_json::{self, Map, Value, json};
use rlf_plugin::{CallContext, Content, Error, Message, Role, Verdict, internal};
use serde::{Deserialize, Serialize};

use crate::instruction;
use crate::scenarios;
use crate::shop::Shop;
use crate::store::Store;
use crate::tool::Tool;
use crate::tools::{self, Done, Stop};

/// The whole message with which a user ends the conversation.
pub(crate) const STOP: &str = "###STOP###";

/// The version of [`Snapshot`], which changes with its format.
const VERSION: u32 = 1;

/// The task that `open` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    instruction: Option<String>,
    #[serde(default)]
    user: User,
}

/// The user that the agent talks to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum User {
    /// No user answers: the first message says everything, and the agent's first text is its last.
    #[default]
    Solo,
    /// A model that the host asks. It has the instruction, which the session does not reveal.
    Model,
}

/// The conversation so far: what changed, and what the agent said.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) store: Store,
    user: User,
    ended: bool,
    said: Vec<String>,
}

#[derive(Serialize)]
struct Snapshot<'a> {
    version: u32,
    user: User,
    ended: bool,
    said: &'a [String],
    orders: BTreeMap<&'a str, &'a Value>,
    users: BTreeMap<&'a str, &'a Value>,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
struct Restored {
    user: User,
    ended: bool,
    said: Vec<String>,
    orders: BTreeMap<String, Value>,
    users: BTreeMap<String, Value>,
}

/// The reference that `verify` takes; other keys of a task's row are ignored.
#[derive(Deserialize)]
struct Reference {
    gold_hash: String,
    #[serde(default)]
    outputs: Vec<String>,
}

impl Session {
    fn new(shop: &'static Shop, user: User) -> Self {
        Self {
            store: Store::new(shop),
            user,
            ended: false,
            said: Vec::new(),
        }
    }

    /// True if the agent said this in one of its messages. Case and commas are ignored.
    fn has_said(&self, output: &str, answer: Option<&str>) -> bool {
        let output = output.to_lowercase();
        let said = self.said.iter().map(String::as_str).chain(answer);
        said.into_iter()
            .any(|text| text.to_lowercase().replace(',', "").contains(&output))
    }
}

impl Environment for Session {
    type Shared = Shop;

    fn open(shop: &'static Shop, task: Value, _seed: u64) -> Result<(Self, Start), Error> {
        let invalid = |reason: String| Error::InvalidArguments(format!("the task: {reason}"));
        let task: Task =
            serde_json::from_value(task).map_err(|error| invalid(error.to_string()))?;
        let mut messages = vec![message(Role::System, shop.wiki.clone())];
        if task.user == User::Solo {
            let missing = || invalid("`instruction` is missing, which the user says".to_owned());
            let instruction = task.instruction.ok_or_else(missing)?;
            messages.push(message(Role::User, instruction::message(&instruction)));
        }
        let tools = shop.tools.clone();
        Ok((Self::new(shop, task.user), Start { messages, tools }))
    }

    fn restore(shop: &'static Shop, snapshot: &[u8]) -> Result<Self, Error> {
        let wrong = |reason: String| internal(format!("not a snapshot of this store: {reason}"));
        let parse = |error: serde_json::Error| wrong(error.to_string());
        let Version { version } = serde_json::from_slice(snapshot).map_err(parse)?;
        if version != VERSION {
            return Err(wrong(format!("it has version {version}, not {VERSION}")));
        }
        let restored: Restored = serde_json::from_slice(snapshot).map_err(parse)?;
        let mut session = Self::new(shop, restored.user);
        session.ended = restored.ended;
        session.said = restored.said;
        let held = session.store.hold(restored.orders, restored.users);
        held.map_err(|error| wrong(rlf_plugin::error_message(&error).to_owned()))?;
        Ok(session)
    }

    fn call(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        _context: &CallContext,
    ) -> Result<Step, Error> {
        if self.ended {
            return Ok(Step::failed("Error: the conversation has ended").and_terminate());
        }
        let offered = self.store.shop.tools.iter().any(|tool| tool.name == name);
        let tool = Tool::named(name).filter(|_| offered);
        let tool = tool.ok_or_else(|| no_tool(name))?;
        match tools::run(tool, &self.store, arguments) {
            Ok(Done { shown, changes }) => {
                self.store.apply(changes);
                let step = Step::observed(shown);
                self.ended = tool == Tool::TransferToHumanAgents;
                Ok(if self.ended {
                    step.and_terminate()
                } else {
                    step
                })
            }
            Err(Stop::Refused(reason)) => Ok(Step::failed(format!("Error: {reason}"))),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn say(&mut self, text: &str, _context: &CallContext) -> Result<Step, Error> {
        if self.ended {
            return Ok(Step::terminated());
        }
        let stopped = self.user == User::Model && text.trim() == STOP;
        if !stopped {
            self.said.push(text.to_owned());
        }
        self.ended = stopped || self.user == User::Solo;
        Ok(if self.ended {
            Step::terminated()
        } else {
            Step::observed(Vec::<Content>::new())
        })
    }

    fn state(&self) -> Value {
        let (orders, users) = self.store.changed();
        json!({ "ended": self.ended, "orders": orders, "users": users })
    }

    fn snapshot(&self) -> Result<Vec<u8>, Error> {
        let (orders, users) = self.store.held();
        let snapshot = Snapshot {
            version: VERSION,
            user: self.user,
            ended: self.ended,
            said: &self.said,
            orders,
            users,
        };
        serde_json::to_vec(&snapshot).map_err(internal)
    }

    fn verify(&self, answer: Option<&str>, reference: &Value) -> Result<Verdict, Error> {
        let reference = Reference::deserialize(reference)
            .map_err(|error| Error::InvalidArguments(format!("the reference: {error}")))?;
        let mut wrong = Vec::new();
        if self.store.hash() != reference.gold_hash {
            wrong.push("the database is not as it should be".to_owned());
        }
        let unsaid = |output: &&String| !self.has_said(output, answer);
        let unsaid: Vec<_> = reference.outputs.iter().filter(unsaid).cloned().collect();
        if !unsaid.is_empty() {
            wrong.push(format!("the user was not told {}", unsaid.join(", ")));
        }
        let success = wrong.is_empty();
        let reason = if success {
            "the database is as it should be, and the user was told what was asked for".to_owned()
        } else {
            wrong.join("; ")
        };
        Ok(Verdict {
            success,
            score: f64::from(u8::from(success)),
            reason,
        })
    }

    fn scenarios(shop: &'static Shop) -> Vec<Scenario> {
        scenarios::all(shop)
    }
}

fn message(role: Role, text: String) -> Message {
    Message {
        role,
        content: vec![Content::Text(text)],
    }
}
