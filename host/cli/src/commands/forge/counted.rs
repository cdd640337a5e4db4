//! Numbers of things, in words.

use std::fmt::Display;

/// A number with its noun, in the plural unless it is one: `1 row`, `2 rows`.
pub(super) fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let end = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{end}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_no_plural() {
        let all = [0_u64, 1, 2].map(|count| counted(count, "row"));
        assert_eq!(all, ["0 rows", "1 row", "2 rows"]);
    }
}
