//! The calls and the state that a task asks for.

use rlf_plugin::serde_json::{Map, Value};

/// A task's reference.
#[derive(Debug)]
pub(crate) struct Reference<'r> {
    pub(crate) calls: Vec<GoldCall<'r>>,
    /// End states by server.
    pub(crate) state: &'r Map<String, Value>,
    /// Initial states of the servers that it names.
    pub(crate) initial: Option<&'r Map<String, Value>>,
}

/// A call that must be made.
#[derive(Debug)]
pub(crate) struct GoldCall<'r> {
    pub(crate) name: &'r str,
    /// The arguments that are compared.
    pub(crate) arguments: Vec<(&'r str, &'r Value)>,
}

impl<'r> Reference<'r> {
    pub(crate) fn read(reference: &'r Value) -> Result<Self, String> {
        let Some(Value::Array(calls)) = reference.get("calls") else {
            return Err(
                "the reference lacks `calls`: a list of gold calls, be it empty".to_owned(),
            );
        };
        let Some(Value::Object(state)) = reference.get("state") else {
            return Err(
                "the reference lacks `state`: an object from the names of servers to their end states, be it empty"
                    .to_owned(),
            );
        };
        let initial = match reference.get("initial") {
            None | Some(Value::Null) => None,
            Some(Value::Object(initial)) => Some(initial),
            Some(_) => return Err("the reference's `initial` is not an object".to_owned()),
        };
        let calls = calls.iter().enumerate().map(|(at, call)| {
            GoldCall::read(call).map_err(|why| format!("the reference's `calls[{at}]` {why}"))
        });
        Ok(Self {
            calls: calls.collect::<Result<_, _>>()?,
            state,
            initial,
        })
    }
}

impl<'r> GoldCall<'r> {
    fn read(call: &'r Value) -> Result<Self, String> {
        let Some(Value::String(name)) = call.get("name") else {
            return Err("lacks `name`, a text".to_owned());
        };
        let Some(Value::Object(arguments)) = call.get("arguments") else {
            return Err("lacks `arguments`, an object".to_owned());
        };
        let masked: Vec<&str> = match call.get("masked") {
            None | Some(Value::Null) => Vec::new(),
            Some(masked) => {
                let names = masked
                    .as_array()
                    .map(|names| names.iter().map(Value::as_str));
                let names = names.and_then(Iterator::collect);
                names.ok_or("has a `masked` that is not a list of names")?
            }
        };
        let compared = arguments
            .iter()
            .filter(|(name, _)| !masked.contains(&name.as_str()));
        Ok(Self {
            name,
            arguments: compared
                .map(|(name, value)| (name.as_str(), value))
                .collect(),
        })
    }
}
