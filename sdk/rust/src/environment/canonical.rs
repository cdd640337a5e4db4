//! A unique form of each state.

use serde_json::{Map, Number, Value};

/// The same value with the keys of every object sorted, so that equal values give equal bytes.
pub(crate) fn canonical(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(String, Value)> = object.into_iter().collect();
            entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            let sorted = |(key, value)| (key, canonical(value));
            Value::Object(entries.into_iter().map(sorted).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        // Equal to 0.0, but written differently.
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => {
            Number::from_f64(0.0).map_or(Value::Null, Value::Number)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_give_equal_bytes_whatever_order_they_were_made_in() {
        let one = json!({ "b": [{ "d": 1, "c": -0.0 }], "a": null });
        let other = json!({ "a": null, "b": [{ "c": 0.0, "d": 1 }] });
        assert_eq!(one, other);
        assert_ne!(one.to_string(), other.to_string());
        assert_eq!(
            canonical(one).to_string(),
            r#"{"a":null,"b":[{"c":0.0,"d":1}]}"#
        );
        assert_eq!(
            canonical(other).to_string(),
            r#"{"a":null,"b":[{"c":0.0,"d":1}]}"#
        );
    }

    #[test]
    fn different_values_stay_different() {
        let written = |value: Value| canonical(value).to_string();
        assert_ne!(written(json!([1, 2])), written(json!([2, 1])));
        assert_ne!(written(json!(1)), written(json!(1.0)));
        assert_ne!(written(json!({ "a": 1 })), written(json!({ "a": null })));
    }
}
