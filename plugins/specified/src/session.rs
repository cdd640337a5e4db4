//! One session: the states of the environments of a task.

use std::collections::BTreeMap;

use rlf_plugin::environment::{Environment, Scenario, Start, Step, no_tool};
use rlf_plugin::serde_json::{self, Map, Value};
use rlf_plugin::{CallContext, Content, Error, Message, Role, Verdict, internal};
use rlf_random::Key;
use rlf_specification::{Program, Refusal, Size, State};

use crate::scenarios;
use crate::servers::{Servers, servers_of_task};

/// The states of the environments that the task names.
#[derive(Debug)]
pub(crate) struct Session {
    servers: &'static Servers,
    states: BTreeMap<String, State>,
}

impl Environment for Session {
    type Shared = Servers;

    fn open(servers: &'static Servers, task: Value, seed: u64) -> Result<(Self, Start), Error> {
        let mut start = Start {
            messages: Vec::new(),
            tools: Vec::new(),
        };
        let mut states = BTreeMap::new();
        let mut instructions = Vec::new();
        for (name, given) in servers_of_task(servers, &task)? {
            let program = servers.program(&name)?;
            // Each environment draws from a seed of its own.
            let seed = Key::from_value(seed).named(&name).value();
            let state = initial(program, &given, seed)
                .map_err(|why| Error::InvalidArguments(format!("the task: {name}: {why}")))?;
            start
                .tools
                .extend(servers.tools.get(&name).into_iter().flatten().cloned());
            instructions.extend(program.specification().instructions.clone());
            states.insert(name, state);
        }
        if !instructions.is_empty() {
            start.messages.push(Message {
                role: Role::System,
                content: vec![Content::Text(instructions.join("\n\n"))],
            });
        }
        Ok((Self { servers, states }, start))
    }

    fn restore(servers: &'static Servers, snapshot: &[u8]) -> Result<Self, Error> {
        let wrong = |why: String| internal(format!("not a snapshot of these environments: {why}"));
        let read: BTreeMap<String, Value> =
            serde_json::from_slice(snapshot).map_err(|error| wrong(error.to_string()))?;
        let mut states = BTreeMap::new();
        for (name, json) in read {
            let state = servers.program(&name)?.load(&json);
            let state = state.map_err(|error| wrong(error.to_string()))?;
            states.insert(name, state);
        }
        Ok(Self { servers, states })
    }

    fn call(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        _context: &CallContext,
    ) -> Result<Step, Error> {
        let (environment, operation) = name.split_once('-').ok_or_else(|| no_tool(name))?;
        let state = self
            .states
            .get_mut(environment)
            .ok_or_else(|| no_tool(name))?;
        match self
            .servers
            .program(environment)?
            .call(state, operation, &arguments)
        {
            Ok(result) => Ok(Step::observed(result)),
            Err(Refusal::NoOperation(_)) => Err(no_tool(name)),
            Err(refusal) => Ok(Step::failed(refusal.to_string())),
        }
    }

    fn state(&self) -> Value {
        let json = |(name, state): (&String, &State)| {
            let program = self.servers.programs.get(name)?;
            Some((name.clone(), program.state_json(state)))
        };
        self.states
            .iter()
            .filter_map(json)
            .collect::<Map<_, _>>()
            .into()
    }

    fn snapshot(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(&self.state()).map_err(internal)
    }

    fn verify(&self, _answer: Option<&str>, reference: &Value) -> Result<Verdict, Error> {
        let wanted = reference.get("state").and_then(Value::as_object);
        let wanted = wanted.filter(|wanted| !wanted.is_empty()).ok_or_else(|| {
            Error::InvalidArguments(
                "the reference has to have a `state` of at least one environment".to_owned(),
            )
        })?;
        let found = self.state();
        let mut faults = Vec::new();
        for (name, wanted) in wanted {
            match found.get(name) {
                None => faults.push(format!("{name} is not part of the task")),
                Some(found) => faults.extend(
                    difference(wanted, found).map(|place| format!("{name}: {place} differs")),
                ),
            }
        }
        let score = (wanted.len() - faults.len()) as f64 / wanted.len() as f64;
        let success = faults.is_empty();
        let reason = if success {
            "all states are as they should be".to_owned()
        } else {
            faults.join("; ")
        };
        Ok(Verdict {
            success,
            score,
            reason,
        })
    }

    fn scenarios(servers: &'static Servers) -> Vec<Scenario> {
        scenarios::all(servers)
    }
}

/// The state in which an environment begins.
fn initial(program: &Program, given: &Value, seed: u64) -> Result<State, String> {
    if given.is_null() {
        let first = program.specification().scenarios.first();
        let size = first.map_or(Size::Simple, |scenario| scenario.size);
        return program.open(size, seed).map_err(|error| error.to_string());
    }
    match given.get("scenario") {
        None => program.load(given).map_err(|error| error.to_string()),
        Some(size) => {
            let size = size.as_str().and_then(Size::from_name).ok_or_else(|| {
                let names = Size::ALL.map(Size::name).join(", ");
                format!("there is no scenario {size}; there are {names}")
            })?;
            program.open(size, seed).map_err(|error| error.to_string())
        }
    }
}

/// The first place where two states differ.
fn difference(wanted: &Value, found: &Value) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let missing = found.keys().find(|key| !wanted.contains_key(*key));
            let inside = wanted.iter().find_map(|(key, wanted)| {
                let inner = difference(wanted, found.get(key).unwrap_or(&Value::Null))?;
                Some(if inner.is_empty() {
                    key.clone()
                } else {
                    format!("{key}.{inner}")
                })
            });
            inside.or_else(|| missing.cloned())
        }
        (Value::Number(one), Value::Number(other)) => {
            (one != other && one.as_f64() != other.as_f64()).then(String::new)
        }
        _ => (wanted != found).then(String::new),
    }
}
