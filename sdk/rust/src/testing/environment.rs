//! Sessions of an environment, in the author's own tests.

use serde_json::Value;

use crate::environment::{Environment, Start, Step, canonical};
use crate::{CallContext, EnvironmentPlugin, Error, Verdict};

/// Runs an environment's `init` with this configuration.
pub fn init_environment<P: EnvironmentPlugin>(config: Value) -> Result<(), Error> {
    P::init(&config.to_string())
}

/// Opens a session as the host would.
pub fn open<P: EnvironmentPlugin>(task: Value, seed: u64) -> Result<(Session<P>, Start), Error> {
    let (session, start) = P::Session::open(P::shared()?, task, seed)?;
    Ok((Session { session, turn: 0 }, start))
}

/// A session under test. Each call and each utterance is a separate turn.
pub struct Session<P: EnvironmentPlugin> {
    session: P::Session,
    turn: u32,
}

impl<P: EnvironmentPlugin> Session<P> {
    /// Calls a tool. Arguments that are not an object give the same error as in the host.
    pub fn call(&mut self, name: &str, arguments: Value) -> Result<Step, Error> {
        let arguments = crate::tool::parse_arguments(&arguments.to_string())?;
        let context = self.next();
        self.session.call(name, arguments, &context)
    }

    /// Says something without calling a tool.
    pub fn say(&mut self, text: &str) -> Result<Step, Error> {
        let context = self.next();
        self.session.say(text, &context)
    }

    /// The canonical state.
    pub fn state(&self) -> Value {
        canonical(self.session.state())
    }

    /// The session rebuilt from its snapshot.
    pub fn restored(&self) -> Result<Self, Error> {
        let snapshot = self.session.snapshot()?;
        Ok(Self {
            session: P::Session::restore(P::shared()?, &snapshot)?,
            turn: self.turn,
        })
    }

    /// Grades the current state.
    pub fn verify(&self, answer: Option<&str>, reference: &Value) -> Result<Verdict, Error> {
        self.session.verify(answer, reference)
    }

    pub(super) fn snapshot(&self) -> Result<Vec<u8>, Error> {
        self.session.snapshot()
    }

    fn next(&mut self) -> CallContext {
        let turn = self.turn;
        self.turn += 1;
        CallContext {
            call_id: format!("test/{turn}/0"),
            turn,
            ..super::context()
        }
    }
}
