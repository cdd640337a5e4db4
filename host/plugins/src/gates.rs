//! The gates that this host has: ways out of the sandbox which an operator can open to a plugin.

mod http;

use std::sync::Arc;

use rlf_http::HttpPolicy;
use rlf_sandbox::Gate as OpenGate;

use crate::manifest::Gate;
use crate::policy::PluginPolicy;

/// What an operator can open in this version.
pub(crate) const AVAILABLE: &[Gate] = &[Gate::Http, Gate::RealClock, Gate::RealRandom];

/// Every gate there is, leading nowhere: for the process that prepares components, where none opens.
pub fn shut() -> Vec<Arc<dyn OpenGate>> {
    let http = http::HttpGate::open(&HttpPolicy::default());
    http.into_iter()
        .map(|gate| Arc::new(gate) as Arc<dyn OpenGate>)
        .collect()
}

/// The gates of `wanted` as the policy opens them. The error says what is wrong with the policy.
pub(crate) fn open(
    wanted: impl IntoIterator<Item = Gate>,
    policy: &PluginPolicy,
) -> Result<Vec<Arc<dyn OpenGate>>, String> {
    wanted
        .into_iter()
        .map(|gate| match gate {
            Gate::Http => {
                let policy = policy.http.as_ref().ok_or_else(|| {
                    "`http` is granted, but no host is named; add a table `http.hosts.\"api.example.com\" = {}`"
                        .to_owned()
                })?;
                let gate = http::HttpGate::open(policy).map_err(|error| error.to_string())?;
                Ok(Arc::new(gate) as Arc<dyn OpenGate>)
            }
            other => Err(format!(
                "`{}` is not available in this version of rlf-host",
                other.as_str()
            )),
        })
        .collect()
}
