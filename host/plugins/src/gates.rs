//! The gates of this host: ways out of the sandbox that an operator can open to a plugin.

mod answer_schema;
mod execute;
mod http;
mod json;
mod model;
mod nesting;
mod tools;

use std::sync::Arc;

use rlf_http::{HttpError, HttpRules};
use rlf_sandbox::OpenGate;

use crate::grants::PluginGrants;
use crate::manifest::GateName;

pub use self::answer_schema::{AnswerSchema, Misfit};
pub use self::nesting::{
    Account, ChatAnswer, GateAnswer, LanguageModel, LanguageModels, ModelQuestion, NestedCalls,
    Nesting, ProgramRunner,
};

/// Every gate, leading nowhere. The process that prepares components uses them, because no gate opens there.
pub fn closed_gates() -> Vec<Arc<dyn OpenGate>> {
    let http = http::HttpGate::open(&HttpRules::default());
    let http = http
        .into_iter()
        .map(|gate| Arc::new(gate) as Arc<dyn OpenGate>);
    let tools: Arc<dyn OpenGate> = Arc::new(tools::ToolsGate::open(&[]));
    let execute: Arc<dyn OpenGate> = Arc::new(execute::ExecuteGate::open(&[]));
    let model: Arc<dyn OpenGate> = Arc::new(model::ModelGate::open(&[]));
    http.chain([tools, execute, model, for_interpreter()])
        .collect()
}

/// The interface through which an interpreter uses the gates of its source file.
pub(crate) fn for_interpreter() -> Arc<dyn OpenGate> {
    Arc::new(json::JsonGates)
}

/// Opens tools to the programs of an interpreter.
pub(crate) fn for_programs(tools: &[String]) -> Arc<dyn OpenGate> {
    Arc::new(tools::ToolsGate::open(tools))
}

/// A mistake in the grants of a gate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GateError {
    #[error(
        "`http` is granted, but no host is named; add a table `http.hosts.\"api.example.com\" = {{}}`"
    )]
    NoHosts,
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("`tools` is granted, but no tool is named; add `tools = [\"calculate\"]`")]
    NoTools,
    #[error("`execute` is granted, but no interpreter is named; add `execute = [\"python\"]`")]
    NoInterpreters,
    #[error(
        "`model` is granted, but no model is named; add `models = [\"NAME\"]`, and a table [models.NAME]"
    )]
    NoModels,
}

/// Opens the gates of `wanted` as the grants say. Gates behind WASI have no interface of their own.
pub(crate) fn open(
    wanted: impl IntoIterator<Item = GateName>,
    grants: &PluginGrants,
) -> Result<Vec<Arc<dyn OpenGate>>, GateError> {
    let mut open: Vec<Arc<dyn OpenGate>> = Vec::new();
    for gate in wanted {
        match gate {
            GateName::Http => {
                let rules = grants.http.as_ref().ok_or(GateError::NoHosts)?;
                open.push(Arc::new(http::HttpGate::open(rules)?));
            }
            GateName::Tools if grants.tools.is_empty() => return Err(GateError::NoTools),
            GateName::Tools => open.push(Arc::new(tools::ToolsGate::open(&grants.tools))),
            GateName::Execute if grants.execute.is_empty() => {
                return Err(GateError::NoInterpreters);
            }
            GateName::Execute => open.push(Arc::new(execute::ExecuteGate::open(&grants.execute))),
            GateName::Model if grants.models.is_empty() => return Err(GateError::NoModels),
            GateName::Model => open.push(Arc::new(model::ModelGate::open(&grants.models))),
            GateName::RealClock | GateName::RealRandom => {}
        }
    }
    Ok(open)
}
