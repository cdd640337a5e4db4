//! The changes between two states, leaf by leaf.

use serde_json::Value;

/// Returns one line, with its path, for each value that was added, removed or changed.
#[must_use]
pub fn difference(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", before, after, &mut lines);
    lines
}

fn compare(place: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                match new.get(key) {
                    Some(other) => compare(&join(place, key), value, other, lines),
                    None => lines.push(format!("- {}: {value}", join(place, key))),
                }
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                lines.push(format!("+ {}: {value}", join(place, key)));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, value) in old.iter().enumerate() {
                let place = join(place, &index.to_string());
                match new.get(index) {
                    Some(other) => compare(&place, value, other, lines),
                    None => lines.push(format!("- {place}: {value}")),
                }
            }
            for (index, value) in new.iter().enumerate().skip(old.len()) {
                lines.push(format!("+ {}: {value}", join(place, &index.to_string())));
            }
        }
        _ if before == after => {}
        _ => lines.push(format!("~ {place}: {before} -> {after}")),
    }
}

fn join(place: &str, key: &str) -> String {
    if place.is_empty() {
        key.to_owned()
    } else {
        format!("{place}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_that_differs_has_its_line() {
        let before = json!({"a": 1, "b": {"c": [1, 2]}, "gone": null, "same": "x"});
        let after = json!({"a": 2, "b": {"c": [1, 3, 4]}, "new": true, "same": "x"});
        assert_eq!(
            difference(&before, &after),
            [
                "~ a: 1 -> 2",
                "~ b.c.1: 2 -> 3",
                "+ b.c.2: 4",
                "- gone: null",
                "+ new: true"
            ]
        );
        assert!(difference(&after, &after).is_empty());
    }
}
