//! Environments as making tasks needs them: they open, take calls, and give and load states.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_random::Key;
use rlf_specification::{Program, Refusal, Size, State, UNDONE};
use serde_json::{Map, Value};

use super::record::{Arguments, Start};
use crate::verify::Unserved;

/// Entities in a state, by key.
pub type Rows<'s> = BTreeMap<&'s str, &'s Map<String, Value>>;

/// Environments that sessions can be opened in.
///
/// [`Specified`] runs specifications natively, in microseconds a call. [`Sandboxed`](super::sandboxed::Sandboxed) passes
/// everything on to sessions of Python files.
pub trait TaskEnvironment: Send + Sync {
    /// Opens a session of these environments, each in a state that is generated from its scenario and seed.
    fn open(
        &self,
        servers: &BTreeMap<String, Start>,
    ) -> Result<Box<dyn TaskSession + '_>, PlayError>;

    /// Another initial state of an environment. Users take values from it that are new in the first state.
    fn elsewhere(&self, server: &str, start: &Start, key: Key) -> Start;

    /// The entities of a kind, `Server.entity`, in the states of environments. None if the states do not show them.
    fn entities<'s>(&self, states: &'s Map<String, Value>, kind: &str) -> Option<Rows<'s>>;

    /// Fails if the machine has not served a request since the environments were loaded. Its sessions then gave errors
    /// that say nothing about a task.
    fn check_served(&self) -> Result<(), Unserved> {
        Ok(())
    }
}

/// An open session.
pub trait TaskSession: Send {
    /// Calls a tool, `Server-name`.
    fn call(&mut self, tool: &str, arguments: &Arguments) -> Result<Answer, PlayError>;
    /// The state of each environment.
    fn state(&self) -> Result<Map<String, Value>, PlayError>;
    /// Replaces the state of each environment.
    fn load(&mut self, states: &Map<String, Value>) -> Result<(), PlayError>;
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The result.
    pub result: Value,
    /// The text that the model reads. None if it is the result as JSON.
    pub text: Option<String>,
}

impl Answer {
    /// The text that the model reads.
    pub(super) fn shown(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.result.to_string())
    }
}

/// The reason why an environment could not be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The tool refused the call, with its message for the model.
    #[error("{0}")]
    Refused(String),
    /// There is no such environment or tool.
    #[error("there is no {0}")]
    Missing(String),
    /// The scenario or state does not load.
    #[error("{server} does not load: {why}")]
    Load {
        /// The environment.
        server: String,
        /// The environment's own explanation.
        why: String,
    },
    /// The environment broke.
    #[error("{tool} broke: {why}")]
    Broke {
        /// The tool.
        tool: String,
        /// The environment's own explanation.
        why: String,
    },
}

/// Specifications, run natively.
#[derive(Debug, Clone, Default)]
pub struct Specified {
    programs: BTreeMap<String, Arc<Program>>,
}

impl Specified {
    /// Environments of these programs, by their names.
    pub fn new(programs: impl IntoIterator<Item = Arc<Program>>) -> Self {
        let named = |program: Arc<Program>| (program.specification().name.clone(), program);
        Self {
            programs: programs.into_iter().map(named).collect(),
        }
    }

    fn program(&self, server: &str) -> Result<&Arc<Program>, PlayError> {
        let missing = || PlayError::Missing(format!("environment {server}"));
        self.programs.get(server).ok_or_else(missing)
    }
}

impl TaskEnvironment for Specified {
    fn open(
        &self,
        servers: &BTreeMap<String, Start>,
    ) -> Result<Box<dyn TaskSession + '_>, PlayError> {
        let mut states = BTreeMap::new();
        for (server, start) in servers {
            let program = self.program(server)?;
            let load = |why: String| PlayError::Load {
                server: server.clone(),
                why,
            };
            let size = Size::ALL
                .into_iter()
                .find(|size| size.name() == start.scenario);
            let size = size.ok_or_else(|| load(format!("no scenario `{}`", start.scenario)))?;
            let state = program
                .open(size, start.seed)
                .map_err(|error| load(error.to_string()))?;
            states.insert(server.clone(), (Arc::clone(program), state));
        }
        Ok(Box::new(SpecifiedSession { states }))
    }

    fn elsewhere(&self, _server: &str, start: &Start, key: Key) -> Start {
        Start {
            scenario: start.scenario.clone(),
            seed: whole(key),
        }
    }

    fn entities<'s>(&self, states: &'s Map<String, Value>, kind: &str) -> Option<Rows<'s>> {
        let (server, name) = kind.split_once('.')?;
        let program = self.programs.get(server)?;
        let mut declared = program.specification().entities.iter();
        let declared = declared.find(|entity| entity.name == name)?;
        let rows = states.get(server)?.get(&declared.collection)?.as_object()?;
        let row = |(key, row): (&'s String, &'s Value)| Some((key.as_str(), row.as_object()?));
        Some(rows.iter().filter_map(row).collect())
    }
}

/// A seed that every JSON reader can represent exactly.
pub(super) fn whole(key: Key) -> u64 {
    key.value() >> 12
}

/// A session of specifications.
struct SpecifiedSession {
    states: BTreeMap<String, (Arc<Program>, State)>,
}

impl TaskSession for SpecifiedSession {
    fn call(&mut self, tool: &str, arguments: &Arguments) -> Result<Answer, PlayError> {
        let missing = || PlayError::Missing(format!("tool {tool}"));
        let (server, operation) = tool.split_once('-').ok_or_else(missing)?;
        let (program, state) = self.states.get_mut(server).ok_or_else(missing)?;
        let answered = program.call(state, operation, arguments);
        let answer = |result| Answer { result, text: None };
        answered.map(answer).map_err(|refusal| match refusal {
            Refusal::NoOperation(_) => missing(),
            Refusal::Undone(why) => PlayError::Broke {
                tool: tool.to_owned(),
                why: format!("{UNDONE}{why}"),
            },
            refused => PlayError::Refused(refused.to_string()),
        })
    }

    fn state(&self) -> Result<Map<String, Value>, PlayError> {
        let json = |(server, (program, state)): (&String, &(Arc<Program>, State))| {
            (server.clone(), program.state_json(state))
        };
        Ok(self.states.iter().map(json).collect())
    }

    fn load(&mut self, states: &Map<String, Value>) -> Result<(), PlayError> {
        for (server, json) in states {
            let missing = || PlayError::Missing(format!("environment {server}"));
            let (program, state) = self.states.get_mut(server).ok_or_else(missing)?;
            *state = program.load(json).map_err(|error| PlayError::Load {
                server: server.clone(),
                why: error.to_string(),
            })?;
        }
        Ok(())
    }
}
