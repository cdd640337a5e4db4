//! Other tools, for plugins to which the operator opens the gate `tools`.
//!
//! A plugin asks for the gate in `plugin.toml` (`gates = ["tools"]`); the operator decides which tools it may call. A
//! call made here is handled like a model's call (checked arguments, the tool's own limits, an observation), ends at
//! the caller's deadline and counts against its CPU time. One call makes at most 64 others in total, unless the
//! operator sets another number, and calls nest three deep.

pub use crate::bindings::tools::rlf::plugin::tools::{Request, Response};

use serde_json::Value;

use crate::{Error, Observation, ToolDefinition};

/// The tools that can be called.
pub fn list() -> Vec<ToolDefinition> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::tools::rlf::plugin::tools::list_tools();
    #[cfg(not(target_family = "wasm"))]
    crate::stand_in::tools()
}

/// Makes the calls side by side; one result for each, in order.
pub fn invoke(requests: &[Request]) -> Vec<Result<Response, Error>> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::tools::rlf::plugin::tools::invoke(requests);
    #[cfg(not(target_family = "wasm"))]
    requests.iter().map(crate::stand_in::invoke).collect()
}

/// Makes one call. Its result is in the observation, also if it failed; a call that shows nothing is the error
/// `unavailable`.
pub fn invoke_one(name: &str, arguments: &Value) -> Result<Observation, Error> {
    let request = Request {
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    let response = invoke(&[request])
        .pop()
        .unwrap_or_else(|| Err(Error::Internal("the host gave no answer".to_owned())))?;
    response.observation.ok_or_else(|| {
        Error::Unavailable(format!(
            "`{name}` ended without an observation: {:?}",
            response.ended
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ended, IntoObservation as _, testing};
    use serde_json::json;

    #[test]
    fn a_native_test_answers_for_the_tools() {
        let arguments = json!({"expression": "1+1"});
        assert!(matches!(
            invoke_one("calculate", &arguments),
            Err(Error::Denied(_))
        ));
        testing::invoke_with(|request| {
            assert_eq!(request.name, "calculate");
            let observation = format!("called with {}", request.arguments).into_observation();
            Ok(Response {
                ended: Ended::Ok,
                observation: Some(observation),
            })
        });
        let observation = invoke_one("calculate", &arguments).unwrap();
        assert_eq!(
            testing::text(&observation),
            r#"called with {"expression":"1+1"}"#
        );
        assert!(list().is_empty());
    }
}
