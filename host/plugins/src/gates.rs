//! The gates of this host: ways out of the sandbox that an operator can open to a plugin.

mod execute;
mod http;
mod nesting;
mod tools;

use std::sync::Arc;

use rlf_http::HttpRules;
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
    http.chain([tools, execute]).collect()
}

/// Opens the gates of `wanted` as the grants say. The error describes the mistake in the grants.
pub(crate) fn open(
    wanted: impl IntoIterator<Item = GateName>,
    grants: &PluginGrants,
) -> Result<Vec<Arc<dyn OpenGate>>, String> {
    wanted
        .into_iter()
        .map(|gate| match gate {
            GateName::Http => {
                let rules = grants.http.as_ref().ok_or_else(|| {
                    "`http` is granted, but no host is named; add a table `http.hosts.\"api.example.com\" = {}`"
                        .to_owned()
                })?;
                let gate = http::HttpGate::open(rules).map_err(|error| error.to_string())?;
                Ok(Arc::new(gate) as Arc<dyn OpenGate>)
            }
            GateName::Tools if grants.tools.is_empty() => Err(
                "`tools` is granted, but no tool is named; add `tools = [\"calculate\"]`".to_owned(),
            ),
            GateName::Tools => Ok(Arc::new(tools::ToolsGate::open(&grants.tools)) as Arc<dyn OpenGate>),
            GateName::Execute if grants.execute.is_empty() => Err(
                "`execute` is granted, but no interpreter is named; add `execute = [\"python\"]`"
                    .to_owned(),
            ),
            GateName::Execute => {
                Ok(Arc::new(execute::ExecuteGate::open(&grants.execute)) as Arc<dyn OpenGate>)
            }
            other => Err(format!(
                "`{}` is not available in this version of rlf-host",
                other.as_str()
            )),
        })
        .collect()
}
