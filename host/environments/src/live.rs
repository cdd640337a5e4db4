//! A session that has an instance: of an environment's own component, or of an interpreter that runs an environment.

use std::sync::Arc;

use rlf_plugins::bindings::types;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::Plugin;

use crate::component::ComponentSession;
use crate::python::PythonSession;
use crate::request::{Answer, SessionOrigin, SessionStart, StepResult, Time};

/// A session that has an instance.
#[derive(Debug)]
pub(crate) enum LiveSession {
    Component(ComponentSession),
    Python(Box<PythonSession>),
}

impl LiveSession {
    pub(crate) async fn begin(
        plugin: &Arc<Plugin>,
        origin: SessionOrigin,
        label: &str,
    ) -> Answer<(Self, SessionStart)> {
        let time = Time::for_plugin(plugin);
        if plugin.kind() == PluginKind::Interpreter {
            let (live, started) = PythonSession::begin(plugin, origin, label, time).await?;
            return Ok((Self::Python(Box::new(live)), started));
        }
        let (live, started) = ComponentSession::begin(plugin, origin, label, time).await?;
        Ok((Self::Component(live), started))
    }

    /// Maximum memory that the instance has used so far, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Component(live) => live.memory(),
            Self::Python(live) => live.memory(),
        }
    }

    pub(crate) async fn call(
        &mut self,
        name: &str,
        arguments: String,
        context: types::CallContext,
        time: Time,
    ) -> Answer<StepResult> {
        match self {
            Self::Component(live) => live.call(name.to_owned(), arguments, context, time).await,
            Self::Python(live) => live.call(name, &arguments, time).await,
        }
    }

    pub(crate) async fn say(
        &mut self,
        text: &str,
        context: types::CallContext,
        time: Time,
    ) -> Answer<StepResult> {
        match self {
            Self::Component(live) => live.say(text.to_owned(), context, time).await,
            Self::Python(live) => live.say(text, time).await,
        }
    }

    pub(crate) async fn state(&mut self, time: Time) -> Answer<String> {
        match self {
            Self::Component(live) => live.state(time).await,
            Self::Python(live) => live.state(time).await,
        }
    }

    pub(crate) async fn snapshot(&mut self, time: Time) -> Answer<Vec<u8>> {
        match self {
            Self::Component(live) => live.snapshot(time).await,
            Self::Python(live) => live.snapshot(time).await,
        }
    }

    pub(crate) async fn verify(
        &mut self,
        answer: Option<&str>,
        reference: String,
        time: Time,
    ) -> Answer<types::Verdict> {
        match self {
            Self::Component(live) => {
                live.verify(answer.map(str::to_owned), reference, time)
                    .await
            }
            Self::Python(live) => live.verify(answer, &reference, time).await,
        }
    }
}
