//! Numbers in the units that people read.

use serde_json::Value;

/// Formats a limit in its unit, which the end of its key names.
pub(super) fn limit(key: &str, value: &Value) -> String {
    match (value, value.as_u64()) {
        (_, Some(number)) if key.ends_with("_ms") => format!("{} ms", grouped(number)),
        (_, Some(number)) if key.ends_with("bytes") => bytes(number),
        (_, Some(number)) => grouped(number),
        (Value::String(text), _) => text.clone(),
        (other, _) => other.to_string(),
    }
}

/// Formats a number of bytes.
pub(in super::super) fn bytes(value: u64) -> String {
    let exact = |unit: u64| value >= unit && value.is_multiple_of(unit);
    match value {
        _ if exact(1 << 20) => format!("{} MiB", grouped(value >> 20)),
        _ if exact(1 << 10) && value < 1 << 20 => format!("{} KiB", value >> 10),
        _ if value >= 1 << 20 => format!("{:.1} MiB", value as f64 / f64::from(1 << 20)),
        _ if value >= 1 << 10 => format!("{:.1} KiB", value as f64 / 1024.0),
        _ => format!("{} bytes", grouped(value)),
    }
}

/// Formats a number with its digits in groups of three.
pub(in super::super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance_and_exact_ones_stay_exact() {
        for (value, expected) in [
            (0, "0 bytes"),
            (4_096, "4 KiB"),
            (999, "999 bytes"),
            (9_999, "9.8 KiB"),
            (364_345, "355.8 KiB"),
            (128 << 20, "128 MiB"),
            ((128 << 20) + 1, "128.0 MiB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(limit("wall_ms", &json!(10_000)), "10,000 ms");
        assert_eq!(limit("log_level", &json!("info")), "info");
    }
}
