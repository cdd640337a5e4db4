//! An environment's sessions as a resource of the component.

use std::cell::RefCell;
use std::marker::PhantomData;

use serde_json::{Map, Value};

use crate::bindings::environment::exports::rlf::plugin::environment as contract;
use crate::bindings::lifecycle::exports::rlf::plugin::lifecycle;
use crate::environment::{Environment, Scenario, Start, Step, canonical};
use crate::{CallContext, Error, Verdict};

/// A plugin that is an environment, as [`plugin!`](crate::plugin) makes it.
pub trait EnvironmentPlugin {
    /// The type of its sessions.
    type Session: Environment;

    /// Reads the configuration and runs the author's `init`.
    fn init(config: &str) -> Result<(), Error>;

    /// The value that `init` made.
    fn shared() -> Result<&'static <Self::Session as Environment>::Shared, Error>;
}

/// Gives an environment the generated export traits.
#[doc(hidden)]
pub struct Environments<P>(PhantomData<P>);

/// The session behind one of the host's handles. The host makes one call of a session at a time, and a component is
/// not entered again during a call, so no two borrows overlap.
#[doc(hidden)]
pub struct Session<P: EnvironmentPlugin>(RefCell<P::Session>);

impl<P: EnvironmentPlugin> lifecycle::Guest for Environments<P> {
    fn init(config: String) -> Result<(), Error> {
        P::init(&config)
    }
}

impl<P: EnvironmentPlugin + 'static> contract::Guest for Environments<P> {
    type Session = Session<P>;

    fn scenarios() -> Vec<contract::Scenario> {
        // The contract has no error here, and without the value that `init` makes there is no task to start.
        P::shared().map_or_else(
            |_| Vec::new(),
            |shared| {
                let scenarios = P::Session::scenarios(shared);
                scenarios.into_iter().map(written).collect()
            },
        )
    }
}

impl<P: EnvironmentPlugin + 'static> contract::GuestSession for Session<P> {
    fn open(task: String, seed: u64) -> Result<(contract::Session, Start), Error> {
        let task = value("task", &task)?;
        let (session, start) = P::Session::open(P::shared()?, task, seed)?;
        let session = Self(RefCell::new(session));
        Ok((contract::Session::new(session), start))
    }

    fn restore(snapshot: Vec<u8>) -> Result<contract::Session, Error> {
        let session = P::Session::restore(P::shared()?, &snapshot)?;
        Ok(contract::Session::new(Self(RefCell::new(session))))
    }

    fn call(&self, name: String, arguments: String, context: CallContext) -> Result<Step, Error> {
        let arguments: Map<String, Value> = crate::tool::parse_arguments(&arguments)?;
        self.0.borrow_mut().call(&name, arguments, &context)
    }

    fn say(&self, text: String, context: CallContext) -> Result<Step, Error> {
        self.0.borrow_mut().say(&text, &context)
    }

    fn state(&self) -> String {
        canonical(self.0.borrow().state()).to_string()
    }

    fn snapshot(&self) -> Result<Vec<u8>, Error> {
        self.0.borrow().snapshot()
    }

    fn verify(&self, answer: Option<String>, reference: String) -> Result<Verdict, Error> {
        let reference = value("reference", &reference)?;
        self.0.borrow().verify(answer.as_deref(), &reference)
    }
}

fn value(what: &str, json: &str) -> Result<Value, Error> {
    serde_json::from_str(json)
        .map_err(|error| Error::InvalidArguments(format!("the {what} is not JSON: {error}")))
}

fn written(scenario: Scenario) -> contract::Scenario {
    let calls = scenario.calls.into_iter();
    contract::Scenario {
        id: scenario.id,
        task: scenario.task.to_string(),
        seed: scenario.seed,
        calls: calls
            .map(|(name, arguments)| (name, arguments.to_string()))
            .collect(),
        expect: canonical(scenario.expect).to_string(),
    }
}
