//! Observes servers: calls their tools from every scenario, and notes what they take, give and change.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::tool::{Ended, ToolDefinition};
use rlf_environments::environments::Environments;
use rlf_environments::error::OpenError;
use rlf_environments::error::SessionError;
use rlf_environments::session::EnvironmentSession;
use rlf_random::Key;
use serde_json::{Value, json};

use super::collections::Collections;
use super::kinds::{Evidence, known};
use super::{LeftOut, Observed, hash};
use crate::tasks::make::items;
use crate::tasks::replay::answer;
use crate::tasks::suite::Described;
use crate::verify::Unserved;
use crate::verify::arguments::{Known, valid};
use crate::verify::play::{Played, call};
use crate::verify::served::served;

/// Maximum number of states of a scenario that are kept.
const MAX_STATES: usize = 24;
/// Maximum number of calls of a tool that are kept.
const MAX_CALLS: usize = 60;

/// Successful calls of a tool that are repeated with further seeds. A result that depends on chance is often the same twice.
const REPEATED: usize = 3;
/// The further seeds.
const FURTHER_SEEDS: std::ops::Range<u64> = 3..7;

/// The number of walks and calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Walks from each scenario. Each begins in the scenario's own state.
    pub walks: usize,
    /// Calls of each walk.
    pub calls: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            walks: 4,
            calls: 40,
        }
    }
}

/// A server cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The environment does not say its scenarios.
    #[error(transparent)]
    Scenarios(OpenError),
    /// No scenario loads.
    #[error("no scenario of {server} loads: {why}; mend it in scenarios.json")]
    NoScenario {
        /// The server.
        server: String,
        /// The last scenario's error.
        why: String,
    },
    /// The machine did not serve every request.
    #[error(transparent)]
    Unserved(#[from] Unserved),
    /// A session gave no state.
    #[error("{server} gave no state: {source}")]
    State {
        /// The server.
        server: String,
        /// The reason.
        source: SessionError,
    },
    /// The state is not JSON.
    #[error("the state of {server} is no JSON: {source}")]
    Json {
        /// The server.
        server: String,
        /// The reason.
        source: serde_json::Error,
    },
}

/// Observes a server of the environment `name`, which has this source. A server without scenarios begins in the state in
/// which it starts.
pub async fn observe(
    environments: &Environments,
    name: &str,
    server: &str,
    source: &[u8],
    effort: Effort,
) -> Result<Observed, ObserveError> {
    let observed = observe_all(environments, name, server, source, effort);
    served(environments, observed).await?
}

async fn observe_all(
    environments: &Environments,
    name: &str,
    server: &str,
    source: &[u8],
    effort: Effort,
) -> Result<Observed, ObserveError> {
    let scenarios = environments.scenarios(name).await;
    let mut begins: Vec<(String, Value)> = Vec::new();
    for scenario in scenarios.map_err(ObserveError::Scenarios)? {
        let state = &scenario.task["servers"][server];
        let is_new = begins.iter().all(|(_, known)| known != state);
        if !state.is_null() && is_new {
            begins.push((scenario.id, state.clone()));
        }
    }
    if begins.is_empty() {
        begins.push(("start".to_owned(), Value::Null));
    }
    let mut observer = Observer {
        environments,
        name,
        server,
        definitions: Vec::new(),
        evidence: BTreeMap::new(),
        collections: Collections::default(),
        states: BTreeMap::new(),
    };
    let mut why = String::new();
    for (place, (scenario, state)) in begins.iter().enumerate() {
        let key = Key::from_value(0).named("observe").at(place as u64);
        for walk in 0..effort.walks {
            match observer
                .walk(scenario, state, key.at(walk as u64), effort.calls)
                .await
            {
                Ok(()) => {}
                Err(WalkError::Open(error)) => {
                    why = format!("{scenario}: {error}");
                    break;
                }
                Err(WalkError::Observe(error)) => return Err(error),
            }
        }
    }
    if observer.states.is_empty() {
        return Err(ObserveError::NoScenario {
            server: server.to_owned(),
            why,
        });
    }
    Ok(observer.finish(source))
}

/// A walk that ended early.
enum WalkError {
    /// The scenario does not load.
    Open(OpenError),
    Observe(ObserveError),
}

impl From<OpenError> for WalkError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<ObserveError> for WalkError {
    fn from(error: ObserveError) -> Self {
        Self::Observe(error)
    }
}

/// True if two calls had the same result and led to the same state.
fn is_same(one: &Played, other: &Played) -> bool {
    (one.ended, &one.text, &one.state) == (other.ended, &other.text, &other.state)
}

struct Observer<'a> {
    environments: &'a Environments,
    name: &'a str,
    server: &'a str,
    definitions: Vec<ToolDefinition>,
    evidence: BTreeMap<String, Evidence>,
    collections: Collections,
    states: BTreeMap<String, Vec<Value>>,
}

impl Observer<'_> {
    async fn open(&self, state: &Value, seed: u64) -> Result<EnvironmentSession, OpenError> {
        let setup = json!({ "servers": { self.server: state } });
        self.environments
            .open(self.name, "observe", &setup, seed)
            .await
    }

    /// The state of the server in a session.
    async fn state(&self, session: &EnvironmentSession) -> Result<Value, ObserveError> {
        let server = || self.server.to_owned();
        let text = session
            .state()
            .await
            .map_err(|source| ObserveError::State {
                server: server(),
                source,
            })?;
        let mut states: Value = rlf_json::from_str(&text).map_err(|source| ObserveError::Json {
            server: server(),
            source,
        })?;
        Ok(states[self.server].take())
    }

    /// Makes random calls from a state, in two sessions with different seeds.
    async fn walk(
        &mut self,
        scenario: &str,
        begin: &Value,
        key: Key,
        calls: usize,
    ) -> Result<(), WalkError> {
        let mut session = self.open(begin, 1).await?;
        let mut other = self.open(begin, 2).await?;
        if self.definitions.is_empty() {
            self.definitions = session.tools().cloned().collect();
        }
        let mut state = self.state(&session).await?;
        let mut values = Known::default();
        self.note(scenario, &state, &mut values);
        for number in 0..calls {
            let key = key.at(number as u64);
            let Some(definition) = self.choose(key) else {
                return Ok(());
            };
            let tool = definition.name.clone();
            let arguments = valid(&definition.input_schema, &values, key.at(1));
            let played = call(&mut session, number, &tool, &arguments).await;
            let again = call(&mut other, number, &tool, &arguments).await;
            let evidence = self.evidence.entry(tool.clone()).or_default();
            let is_same = is_same(&played, &again);
            evidence.by_chance |= !is_same;
            evidence.broke |= played.is_broken();
            if played.ended == Ended::Ok && !evidence.by_chance && evidence.succeeded < REPEATED {
                for seed in FURTHER_SEEDS {
                    let mut further = self.open(&state, seed).await?;
                    let again = call(&mut further, number, &tool, &arguments).await;
                    let evidence = self.evidence.entry(tool.clone()).or_default();
                    evidence.by_chance |= !self::is_same(&played, &again);
                }
            }
            if session.is_terminated() || session.lost().is_some() {
                return Ok(());
            }
            let is_ok = played.ended == Ended::Ok;
            if is_ok {
                let result = answer(&session, &tool, played).result;
                values.learn(&result);
                let evidence = self.evidence.entry(tool.clone()).or_default();
                evidence.succeeded += 1;
                if !items(&result).is_empty() && evidence.calls.len() < MAX_CALLS {
                    evidence.calls.push((arguments, result));
                }
            }
            let now = self.state(&session).await?;
            if now != state {
                if is_ok {
                    self.evidence.entry(tool).or_default().changes = true;
                }
                state = now;
                self.note(scenario, &state, &mut values);
            }
            if !is_same {
                session = self.open(&state, 1).await?;
                other = self.open(&state, 2).await?;
            }
        }
        Ok(())
    }

    /// Notes a state: its entities, its values, and that a task can begin in it.
    fn note(&mut self, scenario: &str, state: &Value, values: &mut Known) {
        values.learn(state);
        self.collections.learn(state);
        let states = self.states.entry(scenario.to_owned()).or_default();
        if states.len() < MAX_STATES && !states.contains(state) {
            states.push(state.clone());
        }
    }

    /// Chooses any tool, or half of the time one of those that succeeded least often.
    fn choose(&self, key: Key) -> Option<&ToolDefinition> {
        let evidence = |one: &ToolDefinition| self.evidence.get(&one.name);
        let succeeded = |one: &&ToolDefinition| evidence(one).map_or(0, |found| found.succeeded);
        // A tool that broke is left out of tasks, and each call of it can take the whole time of a call.
        let usable = |one: &&ToolDefinition| evidence(one).is_none_or(|found| !found.broke);
        let mut tools: Vec<&ToolDefinition> = self.definitions.iter().filter(usable).collect();
        if key.below(2, 2) == 0 {
            let least = tools.iter().map(succeeded).min()?;
            tools.retain(|one| succeeded(one) == least);
            return tools
                .get(key.below(3, tools.len() as u64) as usize)
                .copied();
        }
        let count = tools.len().max(1) as u64;
        tools.get(key.below(4, count) as usize).copied()
    }

    /// The record of what was observed, with the tools that can be used.
    fn finish(self, source: &[u8]) -> Observed {
        let mut described = Described {
            name: self.server.to_owned(),
            domain: "other".to_owned(),
            hash: hash(source, &self.states),
            scenarios: self.states.keys().cloned().collect(),
            tools: Vec::new(),
            definitions: Vec::new(),
            read_only: BTreeSet::new(),
            vocabularies: BTreeMap::new(),
        };
        let mut left_out = Vec::new();
        for definition in self.definitions {
            let evidence = self.evidence.get(&definition.name).cloned();
            let evidence = evidence.unwrap_or_default();
            match known(self.server, &definition, &evidence, &self.collections) {
                Ok(known) => {
                    if !evidence.changes {
                        described.read_only.insert(definition.name.clone());
                    }
                    if !known.vocabularies.is_empty() {
                        let name = definition.name.clone();
                        described.vocabularies.insert(name, known.vocabularies);
                    }
                    described.tools.push(known.tool);
                    described.definitions.push(definition);
                }
                Err(why) => left_out.push(LeftOut {
                    tool: definition.name,
                    why,
                }),
            }
        }
        Observed {
            described,
            states: self.states,
            left_out,
        }
    }
}
