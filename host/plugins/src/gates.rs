//! The gates of this host: ways out of the sandbox that an operator can open to a plugin.

mod execute;
mod http;
mod json;
mod nesting;
mod tools;

use std::sync::Arc;

use rlf_http::{HttpError, HttpRules};
use rlf_sandbox::OpenGate;

use crate::grants::PluginGrants;
use crate::manifest::GateName;

pub use self::nesting::{NestedCalls, Nesting, ProgramAnswer, ProgramRunner};

/// Gates that an operator can open in this version.
pub(crate) const AVAILABLE: &[GateName] = &[
    GateName::Tools,
    GateName::Execute,
    GateName::Http,
    GateName::RealClock,
    GateName::RealRandom,
];

/// Every gate, leading nowhere. The process that prepares components uses them, because no gate opens there.
pub fn closed_gates() -> Vec<Arc<dyn OpenGate>> {
    let http = http::HttpGate::open(&HttpRules::default());
    let http = http
        .into_iter()
        .map(|gate| Arc::new(gate) as Arc<dyn OpenGate>);
    let tools: Arc<dyn OpenGate> = Arc::new(tools::ToolsGate::open(&[]));
    let execute: Arc<dyn OpenGate> = Arc::new(execute::ExecuteGate::open(&[]));
    http.chain([tools, execute, for_interpreter()]).collect()
}

/// The interface through which an interpreter uses the gates of its source file.
pub(crate) fn for_interpreter() -> Arc<dyn OpenGate> {
    Arc::new(json::JsonGates)
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
    #[error("`{}` is not available in this version of rlf-host", .0.as_str())]
    NotAvailable(GateName),
}

/// Opens the gates of `wanted` as the grants say.
pub(crate) fn open(
    wanted: impl IntoIterator<Item = GateName>,
    grants: &PluginGrants,
) -> Result<Vec<Arc<dyn OpenGate>>, GateError> {
    wanted
        .into_iter()
        .map(|gate| match gate {
            GateName::Http => {
                let rules = grants.http.as_ref().ok_or(GateError::NoHosts)?;
                Ok(Arc::new(http::HttpGate::open(rules)?) as Arc<dyn OpenGate>)
            }
            GateName::Tools if grants.tools.is_empty() => Err(GateError::NoTools),
            GateName::Tools => {
                Ok(Arc::new(tools::ToolsGate::open(&grants.tools)) as Arc<dyn OpenGate>)
            }
            GateName::Execute if grants.execute.is_empty() => Err(GateError::NoInterpreters),
            GateName::Execute => {
                Ok(Arc::new(execute::ExecuteGate::open(&grants.execute)) as Arc<dyn OpenGate>)
            }
            other => Err(GateError::NotAvailable(other)),
        })
        .collect()
}
