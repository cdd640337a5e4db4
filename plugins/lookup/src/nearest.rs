//! The nearest known names to an unknown one.

use crate::cells::Cells;

/// The letters that occur in a name. Two names differ by at least as many edits as there are letters in only one of
/// them. This excludes nearly all of a large table without comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Letters {
    occurring: u64,
    characters: u32,
}

impl Letters {
    pub(crate) fn new(text: &str) -> Self {
        let mut letters = Self {
            occurring: 0,
            characters: 0,
        };
        for character in text.chars() {
            letters.occurring |= 1 << (u32::from(character) % 64);
            letters.characters += 1;
        }
        letters
    }

    /// A lower bound of the edits between the two names.
    fn least_distance(self, other: Self) -> u32 {
        let missing = (self.occurring & !other.occurring).count_ones();
        let added = (other.occurring & !self.occurring).count_ones();
        missing
            .max(added)
            .max(self.characters.abs_diff(other.characters))
    }
}

/// Positions of at most `count` names within a third of the name's length in edits, nearest first; equally near names
/// keep the order of the table.
pub(crate) fn nearest(
    wanted: &str,
    names: &Cells,
    letters: &[Letters],
    count: usize,
) -> Vec<usize> {
    if count == 0 {
        return Vec::new();
    }
    let of_wanted = Letters::new(wanted);
    let farthest = (of_wanted.characters / 3).max(1) as usize;
    let mut found: Vec<(usize, usize)> = letters
        .iter()
        .enumerate()
        .filter(|(_, of_name)| of_wanted.least_distance(**of_name) as usize <= farthest)
        .map(|(position, _)| (strsim::osa_distance(wanted, names.get(position)), position))
        .filter(|(distance, _)| *distance <= farthest)
        .collect();
    found.sort_unstable();
    found.truncate(count);
    found.into_iter().map(|(_, position)| position).collect()
}
