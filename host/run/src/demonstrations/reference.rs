//! Reads gold calls and answers from the references of tasks.

use serde_json::Value;

use crate::error::GoldError;

/// The gold calls that a reference names: `calls` of `{name, arguments}`, or tau-bench's `actions` of `{name, kwargs}`.
/// None if it has neither. A call that cannot be read is an error, because the rest would be an incomplete solution.
pub fn gold_calls(reference: &Value) -> Result<Vec<(String, Value)>, GoldError> {
    let list = ["calls", "actions"]
        .iter()
        .find_map(|key| reference.get(*key).filter(|list| !list.is_null()));
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let list = list
        .as_array()
        .ok_or_else(|| GoldError::NotAList(list.clone()))?;
    let call = |(number, call): (usize, &Value)| {
        let arguments = call.get("arguments").or_else(|| call.get("kwargs"));
        match (call["name"].as_str(), arguments) {
            (Some(name), Some(arguments)) => Ok((name.to_owned(), arguments.clone())),
            _ => Err(GoldError::NotACall {
                number: number + 1,
                call: call.clone(),
            }),
        }
    };
    list.iter().enumerate().map(call).collect()
}

/// The answer that a reference wants after the calls: its `answer`, or its `outputs`, which the answer must contain.
pub fn gold_answer(reference: &Value) -> Result<Option<String>, GoldError> {
    let plain = |value: &Value, key: &'static str| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(GoldError::NotText {
            key,
            value: value.clone(),
        }),
    };
    let answer = &reference["answer"];
    if !answer.is_null() {
        return plain(answer, "answer").map(Some);
    }
    let outputs = reference["outputs"].as_array().into_iter().flatten();
    let outputs: Vec<String> = outputs
        .map(|output| plain(output, "outputs"))
        .collect::<Result<_, _>>()?;
    Ok((!outputs.is_empty()).then(|| outputs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gold_calls_are_read_in_either_form() {
        let one = (String::from("f"), json!({"x": 1}));
        assert_eq!(
            gold_calls(&json!({"calls": [{"name": "f", "arguments": {"x": 1}, "masked": []}]}))
                .unwrap(),
            std::slice::from_ref(&one)
        );
        assert_eq!(
            gold_calls(&json!({"actions": [{"name": "f", "kwargs": {"x": 1}}]})).unwrap(),
            [one]
        );
        assert!(gold_calls(&json!("text")).unwrap().is_empty());
        let good = json!({"name": "f", "arguments": {}});
        for bad in [
            json!(5),
            json!([good, {"name": "f", "args": {}}]),
            json!([good, {"name": 5, "arguments": {}}]),
            json!([good, 5]),
        ] {
            let error = gold_calls(&json!({ "calls": bad }))
                .unwrap_err()
                .to_string();
            assert!(error.contains("gold call"), "{error}");
        }
    }
}
