//! The findings that a revision says it mended, and those of them that are found again.

use serde::{Deserialize, Serialize};

use super::examine::{Finding, is_same};

/// The claims of a revision against what the next examination found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Findings of the round before that the model says it mended.
    pub mended: Vec<Finding>,
    /// Findings in `mended` that were found again.
    pub untrue: Vec<Finding>,
}

/// Numbers of the findings that an answer says it mended: lines such as `2: mended, by ..`.
fn claimed(answer: &str) -> Vec<usize> {
    let lines = answer
        .lines()
        .take_while(|line| !line.trim_start().starts_with("```"));
    let mut numbers: Vec<usize> = lines
        .filter_map(|line| {
            let line = line.trim_start_matches([' ', '-', '*', '#']);
            let digits = line.len()
                - line
                    .trim_start_matches(|one: char| one.is_ascii_digit())
                    .len();
            let (number, rest) = line.split_at(digits);
            let said = rest.trim_start_matches([':', '.', ')', ' ', '*']);
            let said = said.to_ascii_lowercase();
            let is_mended = ["mended", "fixed", "done", "corrected"]
                .iter()
                .any(|word| said.starts_with(word));
            is_mended.then(|| number.parse().ok())?
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl Claims {
    /// Compares an answer to `before`, whose findings it was shown in order, with what was found `after` it.
    pub(super) fn new(answer: &str, before: &[Finding], after: &[Finding]) -> Self {
        let mended: Vec<Finding> = claimed(answer)
            .into_iter()
            .filter_map(|number| before.get(number.checked_sub(1)?).cloned())
            .collect();
        let untrue = mended
            .iter()
            .filter(|finding| after.iter().any(|other| is_same(other, finding)))
            .cloned()
            .collect();
        Self { mended, untrue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_before_the_file_only() {
        let answer = "1: mended, by a condition\n2: not mended, because\n - **3**: fixed\n```toml\n4: mended\n```\n5: mended";
        assert_eq!(claimed(answer), [1, 3]);
        assert_eq!(
            claimed("1. Mended.\n2) done\n3: corrected\nmended: all\n1: fixed"),
            [1, 2, 3]
        );
    }
}
