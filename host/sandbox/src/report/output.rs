//! Printed output: head, tail and the count of bytes between them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::text::safe_text;

/// Text printed on one stream, safe to show to a person or a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Captured {
    /// Head, a marker where something is left out, tail. Control sequences are made visible and
    /// invalid UTF-8 is replaced.
    pub text: String,
    /// Bytes printed in all.
    pub total_bytes: u64,
    /// Number of printed bytes that `text` leaves out.
    pub omitted_bytes: u64,
}

impl Captured {
    /// True if nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }
}

/// Bytes printed on one stream: the first and the last ones, and the number between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Maximum number of bytes in head and in tail.
    half: usize,
    total: u64,
}

impl Output {
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            half: kept.div_ceil(2),
            total: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
    }

    /// The first bytes; all of them if nothing is left out.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The last bytes beyond the first ones.
    pub fn tail(&self) -> Vec<u8> {
        self.tail.iter().copied().collect()
    }

    /// Bytes printed in all.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes between head and tail, which are not kept.
    pub fn omitted_bytes(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// True if nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The output as text that is safe to show.
    pub fn captured(&self) -> Captured {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let mut omitted = self.omitted_bytes();
        let text = if omitted == 0 {
            safe_text(&[self.head.as_slice(), &tail].concat())
        } else {
            // A character cut in two by the gap is left out with it.
            let head = &self.head[..self.head.len() - cut_at_end(&self.head)];
            let tail = &tail[tail
                .iter()
                .take(3)
                .take_while(|byte| is_continuation(**byte))
                .count()..];
            omitted = self.total - (head.len() + tail.len()) as u64;
            format!(
                "{}\n[... {omitted} bytes left out ...]\n{}",
                safe_text(head),
                safe_text(tail)
            )
        };
        Captured {
            text,
            total_bytes: self.total,
            omitted_bytes: omitted,
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Length of the unfinished character at the end of `bytes`, or 0.
fn cut_at_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        _ => 0,
    }
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Observes a guest's output and is called for every piece as it is printed. It must be quick, because the guest waits
/// for it.
#[derive(Clone)]
pub struct Tee(Arc<Show>);

type Show = dyn Fn(Stream, &[u8]) + Send + Sync;

impl Tee {
    /// Calls `show` with every piece.
    pub fn new(show: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    pub(crate) fn show(&self, stream: Stream, bytes: &[u8]) {
        (self.0)(stream, bytes);
    }
}

impl fmt::Debug for Tee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tee")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(kept: usize, pieces: &[&[u8]]) -> Captured {
        let mut output = Output::new(kept);
        for piece in pieces {
            output.push(piece);
        }
        output.captured()
    }

    #[test]
    fn head_and_tail_survive_and_the_middle_is_counted() {
        assert_eq!(captured(8, &[b"abcd", b"efgh"]).text, "abcdefgh");
        let middle = captured(8, &[b"abcdef", b"ghijklmnop", b"qrst"]);
        assert_eq!(middle.text, "abcd\n[... 12 bytes left out ...]\nqrst");
        assert_eq!((middle.total_bytes, middle.omitted_bytes), (20, 12));
        assert_eq!(captured(8, &[b"abc", b"defghijklmnopqrst"]), middle);
    }

    #[test]
    fn a_character_cut_by_the_gap_is_left_out_whole() {
        let cut = captured(6, &["aaé".as_bytes(), b"............", "ébb".as_bytes()]);
        assert_eq!(
            cut.text,
            "aa\n[... 14 bytes left out ...]\nbb".replace("14", &cut.omitted_bytes.to_string())
        );
        assert!(!cut.text.contains('\u{fffd}'));
    }
}
