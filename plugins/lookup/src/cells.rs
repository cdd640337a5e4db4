//! Many short texts in one piece of memory.

/// Texts, one after the other. A table of 100,000 rows is two allocations, not a million, and its
/// snapshot is as large as its text.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    text: String,
    /// The end of each text.
    ends: Vec<u32>,
}

impl Cells {
    /// Adds a text; false once there are 4 GiB of them.
    #[must_use]
    pub(crate) fn push(&mut self, text: &str) -> bool {
        match u32::try_from(self.text.len() + text.len()) {
            Ok(end) => {
                self.text.push_str(text);
                self.ends.push(end);
                true
            }
            Err(_) => false,
        }
    }

    /// The text at a position, which must exist.
    pub(crate) fn get(&self, position: usize) -> &str {
        let start = if position == 0 {
            0
        } else {
            self.ends[position - 1] as usize
        };
        &self.text[start..self.ends[position] as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}
