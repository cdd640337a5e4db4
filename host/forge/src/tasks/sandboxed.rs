//! Environments in Python files, played in the sandbox.
//!
//! A Python file says less than a specification. It declares no entities, and no tool promises to change nothing. So each
//! server is first observed: its tools are called from every scenario, and what they take, give and change is noted.
//! Keys of entities are then found by comparing arguments and results with the state.
//!
//! | looking for | module |
//! |---|---|
//! | calls that observe a server | `observe` |
//! | types, keys and vocabularies, from what was observed | `kinds`, `collections` |
//! | sessions in which tasks are made | here |

mod collections;
mod kinds;
mod observe;

pub use observe::{Effort, ObserveError, observe};

use std::collections::BTreeMap;

use rlf_dialogue::tool::Ended;
use rlf_environments::environments::Environments;
use rlf_environments::error::OpenError;
use rlf_environments::session::EnvironmentSession;
use rlf_random::Key;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use self::collections::rows;
use super::environment::{Answer, PlayError, Rows, TaskEnvironment, TaskSession, whole};
use super::record::{Arguments, Start};
use super::replay::answer;
use super::suite::{Described, Suite, SuiteError};
use crate::verify::Unserved;
use crate::verify::play::call;
use crate::verify::served::check_served;

/// A server and what was observed of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// Its tools and scenarios.
    pub described: Described,
    /// The states that tasks can begin in, by scenario: the scenario's own one, and states that calls led to from there.
    pub states: BTreeMap<String, Vec<Value>>,
    /// The tools that no task calls or offers.
    pub left_out: Vec<LeftOut>,
}

impl Observed {
    /// True if it was observed of a server with this source.
    pub fn is_of(&self, source: &[u8]) -> bool {
        self.described.hash == hash(source, &self.states)
    }
}

/// The hash of a server: of its source, and of the states that were observed.
fn hash(source: &[u8], states: &BTreeMap<String, Vec<Value>>) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(source);
    hash.update(json!(states).to_string().as_bytes());
    hash.finalize().to_hex()[..16].to_owned()
}

/// A tool that no task calls or offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The tool: `Server-name`.
    pub tool: String,
    /// The reason.
    pub why: WhyLeftOut,
}

/// The reason why a tool is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum WhyLeftOut {
    /// Sessions with different seeds gave different results.
    #[error("its result depends on chance")]
    Chance,
    /// A call was stopped, or broke.
    #[error("a call of it was stopped or broke")]
    Broke,
    /// No call succeeded.
    #[error("no call of it succeeded")]
    NeverSucceeded,
    /// A required parameter is an object.
    #[error("it requires an object, which a sentence cannot say")]
    TakesObject,
}

/// Servers in Python files, played in the sandbox.
pub struct Sandboxed {
    environments: Environments,
    /// Name of the environment that has the servers.
    name: String,
    runtime: Runtime,
    states: States,
}

impl Suite {
    /// Observed servers of the environment `name`, played in the sandbox.
    pub fn from_observed(
        observed: Vec<Observed>,
        environments: Environments,
        name: String,
        runtime: Runtime,
    ) -> Result<Self, SuiteError> {
        let (described, states) = parts(observed);
        let playable = Sandboxed {
            environments,
            name,
            runtime,
            states,
        };
        Self::new(described, Box::new(playable))
    }

    /// Observed servers of which no session can be opened. This is enough to count tasks and to write rows.
    pub fn from_records(observed: Vec<Observed>) -> Result<Self, SuiteError> {
        Self::new(parts(observed).0, Box::new(Closed))
    }
}

/// The states of each scenario of each server.
type States = BTreeMap<String, BTreeMap<String, Vec<Value>>>;

/// The descriptions and the states of servers.
fn parts(observed: Vec<Observed>) -> (Vec<Described>, States) {
    let mut described = Vec::with_capacity(observed.len());
    let mut states = BTreeMap::new();
    for one in observed {
        states.insert(one.described.name.clone(), one.states);
        described.push(one.described);
    }
    (described, states)
}

impl Sandboxed {
    /// The state in which a server begins.
    fn begin(&self, server: &str, start: &Start) -> Result<&Value, PlayError> {
        let scenarios = self.states.get(server);
        let scenarios =
            scenarios.ok_or_else(|| PlayError::Missing(format!("environment {server}")))?;
        let states = scenarios.get(&start.scenario);
        let states = states.filter(|states| !states.is_empty());
        let states = states.ok_or_else(|| PlayError::Load {
            server: server.to_owned(),
            why: format!("no scenario `{}`", start.scenario),
        })?;
        Ok(&states[(start.seed % states.len() as u64) as usize])
    }
}

impl TaskEnvironment for Sandboxed {
    fn open(
        &self,
        servers: &BTreeMap<String, Start>,
    ) -> Result<Box<dyn TaskSession + '_>, PlayError> {
        let mut states = Map::new();
        for (server, start) in servers {
            states.insert(server.clone(), self.begin(server, start)?.clone());
        }
        Ok(Box::new(SandboxedSession::open(self, &states)?))
    }

    fn elsewhere(&self, server: &str, start: &Start, key: Key) -> Start {
        let others: Vec<&String> = self
            .states
            .get(server)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter(|scenario| **scenario != start.scenario)
            .collect();
        let chosen = key.below(0, others.len().max(1) as u64) as usize;
        let scenario = others.get(chosen).map_or(&start.scenario, |other| *other);
        Start {
            scenario: scenario.clone(),
            seed: whole(key),
        }
    }

    fn entities<'s>(&self, states: &'s Map<String, Value>, kind: &str) -> Option<Rows<'s>> {
        let (server, entity) = kind.split_once('.')?;
        let mut found = Rows::new();
        rows(states.get(server)?, entity, &mut found);
        (!found.is_empty()).then_some(found)
    }

    fn check_served(&self) -> Result<(), Unserved> {
        check_served(&self.environments, 0)
    }
}

impl Sandboxed {
    /// Waits for a session. Texts of a language model are checked within the runtime that asks the model, so this thread
    /// may be one of its workers.
    fn wait<T>(&self, session: impl Future<Output = T>) -> T {
        tokio::task::block_in_place(|| self.runtime.block_on(session))
    }
}

/// A session in the sandbox.
struct SandboxedSession<'a> {
    sandboxed: &'a Sandboxed,
    session: EnvironmentSession,
    /// Number of calls so far.
    calls: usize,
}

impl<'a> SandboxedSession<'a> {
    fn open(sandboxed: &'a Sandboxed, states: &Map<String, Value>) -> Result<Self, PlayError> {
        let setup = json!({ "servers": states });
        let opened = sandboxed
            .environments
            .open(&sandboxed.name, "forge", &setup, 0);
        let session = sandboxed.wait(opened).map_err(|error| match error {
            OpenError::Refused { reason, .. } => PlayError::Load {
                server: states.keys().cloned().collect::<Vec<_>>().join(", "),
                why: reason,
            },
            other => PlayError::Broke {
                tool: sandboxed.name.clone(),
                why: other.to_string(),
            },
        })?;
        Ok(Self {
            sandboxed,
            session,
            calls: 0,
        })
    }
}

impl TaskSession for SandboxedSession<'_> {
    fn call(&mut self, tool: &str, arguments: &Arguments) -> Result<Answer, PlayError> {
        let made = call(&mut self.session, self.calls, tool, arguments);
        let played = self.sandboxed.wait(made);
        self.calls += 1;
        match played.ended {
            Ended::Ok => Ok(answer(&self.session, tool, played)),
            Ended::Failed | Ended::InvalidArguments => Err(PlayError::Refused(played.text)),
            ended => Err(PlayError::Broke {
                tool: tool.to_owned(),
                why: format!("{}: {}", ended.as_str(), played.detail),
            }),
        }
    }

    fn state(&self) -> Result<Map<String, Value>, PlayError> {
        let broke = |why: String| PlayError::Broke {
            tool: self.sandboxed.name.clone(),
            why,
        };
        let text = self.sandboxed.wait(self.session.state());
        let text = text.map_err(|error| broke(error.to_string()))?;
        rlf_json::from_str(&text).map_err(|error| broke(error.to_string()))
    }

    fn load(&mut self, states: &Map<String, Value>) -> Result<(), PlayError> {
        let calls = self.calls;
        *self = Self::open(self.sandboxed, states)?;
        self.calls = calls;
        Ok(())
    }
}

/// Environments of which no session can be opened.
struct Closed;

impl TaskEnvironment for Closed {
    fn open(
        &self,
        servers: &BTreeMap<String, Start>,
    ) -> Result<Box<dyn TaskSession + '_>, PlayError> {
        let names: Vec<&str> = servers.keys().map(String::as_str).collect();
        Err(PlayError::Missing(format!(
            "environment {}",
            names.join(", ")
        )))
    }

    fn elsewhere(&self, _server: &str, start: &Start, _key: Key) -> Start {
        start.clone()
    }

    fn entities<'s>(&self, _states: &'s Map<String, Value>, _kind: &str) -> Option<Rows<'s>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_was_observed_is_of_one_source_even_when_it_was_written_and_read() {
        let source = b"class Doors: ...";
        let states = BTreeMap::from([("start".to_owned(), vec![json!({"b": 0.1, "a": [1]})])]);
        let observed = Observed {
            described: Described {
                name: "Doors".to_owned(),
                domain: "other".to_owned(),
                hash: hash(source, &states),
                scenarios: vec!["start".to_owned()],
                tools: Vec::new(),
                definitions: Vec::new(),
                read_only: BTreeSet::new(),
                vocabularies: BTreeMap::new(),
            },
            states,
            left_out: Vec::new(),
        };
        let written = serde_json::to_string(&observed).unwrap();
        let read: Observed = rlf_json::from_str(&written).unwrap();
        assert!(read.is_of(source) && !read.is_of(b"class Doors: pass"));
        let mut edited = read;
        edited.states.clear();
        assert!(!edited.is_of(source));
    }
}
