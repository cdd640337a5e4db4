//! The parameters of a request: those that decide how a turn is sampled, and those that must not be there.

use rlf_policy::SamplingParams;
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// A parameter, with a test for the values that change nothing.
pub(crate) type Neutral = (&'static str, fn(&Value) -> bool);

/// The sampling parameters that requests may have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sampling {
    /// Only this temperature, at which training samples. With other parameters, the recorded log-probabilities would be
    /// wrong.
    Fixed(f32),
    /// Any that the policy can be sampled with.
    Free,
}

/// Parameters that are read if sampling is free.
const FREE: [&str; 3] = ["temperature", "top_p", "top_k"];

/// Refuses parameters that would change what is sampled, if that is fixed, or the form of the answer. All others may be
/// left out or have neutral values.
pub(crate) fn check(
    request: &Map<String, Value>,
    used: &[&str],
    neutral: &[Neutral],
    sampling: Sampling,
) -> Result<(), Refusal> {
    for (name, value) in request {
        let is_in = |names: &[&str]| names.contains(&name.as_str());
        let known = neutral.iter().find(|(known, _)| known == name);
        let why = match (sampling, known) {
            _ if value.is_null() || is_in(used) => continue,
            (Sampling::Free, _) if is_in(&FREE) => continue,
            (Sampling::Fixed(only), _) if name == "temperature" => {
                let asked = value.as_f64();
                if asked.is_some_and(|asked| (asked as f32 - only).abs() < 1e-6) {
                    continue;
                }
                format!(
                    "`temperature` is {value}; the run decides how the policy is sampled ({only} in training), so leave it out"
                )
            }
            (_, Some((_, is_neutral))) if is_neutral(value) => continue,
            (_, Some(_)) => {
                format!("`{name}` = {value} would change what is sampled or recorded; leave it out")
            }
            (_, None) => format!("`{name}` is not known here; leave it out"),
        };
        return Err(Refusal::invalid(why));
    }
    Ok(())
}

/// The sampling parameters of a request, if sampling is free.
pub(crate) fn sampling_params(
    request: &Map<String, Value>,
    sampling: Sampling,
) -> Result<SamplingParams, Refusal> {
    let mut params = SamplingParams::default();
    if matches!(sampling, Sampling::Fixed(_)) {
        return Ok(params);
    }
    let number = |name: &str| match request.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => (value.as_f64().map(Some))
            .ok_or_else(|| Refusal::invalid(format!("`{name}` is {value}, and no number"))),
    };
    if let Some(temperature) = number("temperature")? {
        // Logits that are divided by less do not fit into single precision.
        if temperature != 0.0 && !(0.01..=100.0).contains(&temperature) {
            return Err(Refusal::invalid(format!(
                "`temperature` is {temperature}; write 0, or 0.01 to 100"
            )));
        }
        params.temperature = temperature as f32;
    }
    if let Some(top_p) = number("top_p")? {
        params.top_p = top_p as f32;
    }
    if let Some(top_k) = count(request, "top_k")? {
        params.top_k = usize::try_from(top_k).unwrap_or(usize::MAX);
    }
    Ok(params)
}

/// The maximum number of tokens that a request asks for, under the first of these names that it has.
pub(crate) fn max_tokens(
    request: &Map<String, Value>,
    names: &[&str],
) -> Result<Option<usize>, Refusal> {
    for name in names {
        match count(request, name)? {
            None => {}
            Some(0) => {
                return Err(Refusal::invalid(format!("`{name}` is 0; write at least 1")));
            }
            Some(count) => return Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
        }
    }
    Ok(None)
}

/// A whole number in a request, which may be missing.
pub(crate) fn count(request: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refusal> {
    match request.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => (value.as_u64().map(Some)).ok_or_else(|| {
            Refusal::invalid(format!("`{name}` is {value}; write a whole number from 0"))
        }),
    }
}

/// True for 1, 1.0.
pub(crate) fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

/// True for 0, 0.0.
pub(crate) fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

/// True for `[]`, `{}` and the empty text.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
