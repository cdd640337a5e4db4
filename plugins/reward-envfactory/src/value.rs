//! Equality of JSON values.

use rlf_plugin::serde_json::{Number, Value};

/// True if both are equal, with numbers compared by value.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    same(left, right, &equal_numbers)
}

/// True if both are equal, with numbers within 1e-6 of the larger one.
pub(crate) fn close(left: &Value, right: &Value) -> bool {
    same(left, right, &|left, right| {
        equal_numbers(left, right)
            || matches!((left.as_f64(), right.as_f64()), (Some(left), Some(right))
                if (left - right).abs() <= 1e-6 * left.abs().max(right.abs()))
    })
}

fn same(left: &Value, right: &Value, numbers: &impl Fn(&Number, &Number) -> bool) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right),
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| same(left, right, numbers))
        }
        (Value::Object(left), Value::Object(right)) => {
            let other = |name, value| {
                right
                    .get(name)
                    .is_some_and(|other| same(value, other, numbers))
            };
            left.len() == right.len() && left.iter().all(|(name, value)| other(name, value))
        }
        _ => left == right,
    }
}

fn equal_numbers(left: &Number, right: &Number) -> bool {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left == right,
        (None, None) => left.as_f64() == right.as_f64(),
        _ => false,
    }
}

/// The number if it is whole and cannot have lost digits.
fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from);
    let integer = integer.or_else(|| number.as_u64().map(i128::from));
    integer.or_else(|| {
        let float = number.as_f64()?;
        let fits = float.fract() == 0.0 && float.abs() < 1e30;
        fits.then_some(float as i128)
    })
}

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::{self, json};

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        for (left, right) in [
            (json!(1), json!(1.0)),
            (json!(-0.0), json!(0)),
            (
                json!([{ "a": 1, "b": [2.0] }]),
                json!([{ "b": [2], "a": 1.0 }]),
            ),
            (json!(1e20), json!(1e20)),
        ] {
            assert!(
                equal(&left, &right) && close(&left, &right),
                "{left} {right}"
            );
        }
        for (left, right) in [
            (json!(1), json!("1")),
            (json!(1), json!(true)),
            (json!(null), json!(0)),
            (json!([1, 2]), json!([2, 1])),
            (json!([1]), json!([1, 1])),
            (json!({ "a": null }), json!({})),
            (
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_992.0),
            ),
            (json!(u64::MAX), json!(-1)),
        ] {
            assert!(
                !equal(&left, &right) && !equal(&right, &left),
                "{left} {right}"
            );
        }
    }

    #[test]
    fn arguments_may_be_a_millionth_apart() {
        assert!(close(&json!(1_000_000), &json!(1_000_001)));
        assert!(!close(&json!(1_000_000), &json!(1_000_002)));
        assert!(close(
            &json!({ "a": [0.1] }),
            &json!({ "a": [0.100_000_01] })
        ));
        assert!(!close(&json!(0), &json!(1e-9)));
        assert!(!close(&json!("1"), &json!(1)));
        let huge: Value = serde_json::from_str("1e308").unwrap();
        assert!(!close(&huge, &json!(-1e308)));
    }
}
