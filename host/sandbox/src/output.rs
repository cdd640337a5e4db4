//! What a guest prints: head, tail and the count of what lies between, safe to show.

use std::collections::VecDeque;
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::ended::{Ended, LimitReached, Stopped};
use crate::record::Record;

/// What was printed on one stream, as text that is safe to show to a person or a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Captured {
    /// Head, a marker where something is left out, tail. Control sequences are made visible and
    /// invalid UTF-8 is replaced.
    pub text: String,
    /// Bytes printed in all.
    pub total_bytes: u64,
    /// Bytes of them that `text` leaves out.
    pub omitted_bytes: u64,
}

impl Captured {
    /// True where nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }
}

/// What was printed on one stream: the first and the last bytes, and how many lie between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// For each of head and tail.
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

    /// The first bytes; all of them where nothing is left out.
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

    /// True where nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// As text that is safe to show.
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

/// Length of the unfinished character at the end of `bytes`, 0 if there is none.
fn cut_at_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        _ => 0,
    }
}

/// Text that can be shown as it is: invalid UTF-8 becomes U+FFFD; control characters other than
/// newline and tab become their visible pictures, so that nothing can move a cursor, recolour or
/// rename a terminal; characters that reorder or hide text become U+FFFD.
///
/// ```
/// assert_eq!(rlf_sandbox::safe_text(b"ok\x1b[2J\r\n\xff"), "ok\u{241b}[2J\n\u{fffd}");
/// ```
pub fn safe_text(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    if !lossy.chars().any(is_unsafe) {
        return lossy.into_owned();
    }
    let mut text = String::with_capacity(lossy.len());
    let mut characters = lossy.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\u{7f}' => text.push('\u{2421}'),
            c if is_unsafe(c) && c < ' ' => {
                text.push(
                    char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
                );
            }
            c if is_unsafe(c) => text.push(char::REPLACEMENT_CHARACTER),
            c => text.push(c),
        }
    }
    text
}

fn is_unsafe(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

/// Cuts a line at `limit` bytes, at a character, and says so.
pub(crate) fn shortened(mut line: String, limit: usize) -> String {
    if line.len() > limit {
        let total = line.len();
        line.truncate(line.floor_char_boundary(limit));
        let omitted = total - line.len();
        let _ = write!(line, " [... {omitted} bytes left out]");
    }
    line
}

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Is shown what a guest prints, as it prints it. Must be quick: the guest waits for it.
#[derive(Clone)]
pub struct Tee(Arc<Show>);

type Show = dyn Fn(Stream, &[u8]) + Send + Sync;

impl Tee {
    /// Calls `show` with every piece.
    pub fn new(show: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }
}

impl fmt::Debug for Tee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tee")
    }
}

/// A guest's standard output or error: never full, never waits, ends the call at the hard stop.
#[derive(Clone)]
pub(crate) struct Printed {
    record: Arc<Record>,
    stream: Stream,
}

impl Printed {
    /// What `write` takes at once; also bounds what the host allocates for `write-zeroes`.
    const CHUNK: usize = 64 << 10;

    pub(crate) fn new(record: Arc<Record>, stream: Stream) -> Self {
        Self { record, stream }
    }

    fn print(&self, bytes: &[u8]) -> Result<(), Stopped> {
        Self::print_to(&self.record, self.stream, bytes)
    }

    /// Keeps what a guest prints, or ends its call where it is too much.
    pub(crate) fn print_to(record: &Record, stream: Stream, bytes: &[u8]) -> Result<(), Stopped> {
        if let Some(tee) = record.tee() {
            (tee.0)(stream, bytes);
        }
        let output = match stream {
            Stream::Stdout => &record.stdout,
            Stream::Stderr => &record.stderr,
        };
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push(bytes);
        let stop = record.limits().output_stop_bytes;
        if output.total <= stop {
            return Ok(());
        }
        let limit = LimitReached::new("output_stop_bytes", stop, output.total);
        let reason = format!("the plugin printed more than it may ({limit})");
        Err(Stopped::by_limit(Ended::OutputLimit, reason, limit))
    }
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.print(&bytes)
            .map_err(|stopped| StreamError::Trap(stopped.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(Self::CHUNK)
    }
}

impl AsyncWrite for Printed {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(
            self.print(bytes)
                .map(|()| bytes.len())
                .map_err(io::Error::other),
        )
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
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

    #[test]
    fn terminal_tricks_become_visible() {
        assert_eq!(
            safe_text(b"a\x1b]0;title\x07b\x00\x7f"),
            "a\u{241b}]0;title\u{2407}b\u{2400}\u{2421}"
        );
        assert_eq!(
            safe_text("x\u{9b}31m\u{202e}y".as_bytes()),
            "x\u{fffd}31m\u{fffd}y"
        );
        assert_eq!(
            safe_text(b"line\r\nover\rwritten\ttab"),
            "line\nover\u{240d}written\ttab"
        );
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        assert_eq!(shortened("ééé".into(), 3), "é [... 4 bytes left out]");
        assert_eq!(shortened("abc".into(), 3), "abc");
    }
}
