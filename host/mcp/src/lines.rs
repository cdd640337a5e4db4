//! The messages of a server that is a process: one on each line of its standard output.
//!
//! Programs print other things there by mistake. A line that does not begin like a message is skipped. A line that does, and
//! cannot be read, ends the connection: it may be the answer to any call that waits, and each of them would wait until its
//! deadline.

use std::io;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader, Empty};

use crate::config::MAX_MESSAGE_BYTES;
use crate::ending::Ending;

/// The byte order mark, which some programs write before a text.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A transport over the pipes of a process.
pub(crate) struct Lines<R, W: AsyncWrite> {
    read: BufReader<R>,
    /// The line that is being read. Kept here, because reading may be cancelled and begun again.
    line: Vec<u8>,
    /// True if the rest of the line is to be skipped.
    is_skipping: bool,
    /// Writes messages, and reads none.
    write: AsyncRwTransport<RoleClient, Empty, W>,
    ending: Ending,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads from `read` and writes to `write`. `ending` gets the reason if the server sends what cannot be read.
    pub(crate) fn new(read: R, write: W, ending: Ending) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_skipping: false,
            write: AsyncRwTransport::new_client(tokio::io::empty(), write),
            ending,
        }
    }

    /// Reads until `line` is a whole line. False if no message can follow.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(read) = self.read.fill_buf().await else {
                return false;
            };
            if read.is_empty() {
                return false;
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(read.len(), |end| end + 1);
            if !self.is_skipping {
                self.line.extend_from_slice(&read[..count]);
            }
            self.read.consume(count);
            if self.line.len() > MAX_MESSAGE_BYTES as usize {
                if begins_like_a_message(&self.line) {
                    self.ending.set(format!(
                        "the server sent a message of more than {} MiB",
                        MAX_MESSAGE_BYTES >> 20
                    ));
                    return false;
                }
                self.line = Vec::new();
                self.is_skipping = true;
            }
            if end.is_some() && !std::mem::take(&mut self.is_skipping) {
                return true;
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.write.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        while self.read_line().await {
            let message = read_message(&self.line);
            self.line.clear();
            match message {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(reason) => {
                    self.ending.set(reason);
                    return None;
                }
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.close().await
    }
}

/// True if a line can be the beginning of a JSON object with a key. What programs print by mistake seldom is: a dictionary
/// of Python begins with `{'`, and an object of JavaScript with `{ a`.
fn begins_like_a_message(line: &[u8]) -> bool {
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii_start();
    let inside = line.strip_prefix(b"{").unwrap_or_default();
    inside.trim_ascii_start().starts_with(b"\"")
}

/// Reads one line. `None` if it is no message, and none was lost. The error is the reason to end the connection.
fn read_message(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii();
    if !begins_like_a_message(line) {
        if !line.is_empty() {
            tracing::debug!("an MCP server wrote a line that is no message to its standard output");
        }
        return Ok(None);
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let object: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|error| format!("the server sent a message that is not JSON: {error}"))?;
    let is_answer = object.contains_key("jsonrpc")
        && (object.contains_key("result") || object.contains_key("error"));
    if is_answer {
        return Err(format!(
            "the server sent an answer that cannot be read: {error}"
        ));
    }
    // A line of a log in JSON, or a notification of another protocol.
    tracing::debug!(%error, "an MCP server wrote JSON that is no message to its standard output");
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;

    #[test]
    fn noise_is_skipped_and_a_broken_message_is_told() {
        assert!(read_message(PING.as_bytes()).unwrap().is_some());
        let marked = [MARK, PING.as_bytes(), b"\r\n"].concat();
        assert!(read_message(&marked).unwrap().is_some());
        for noise in [
            "",
            "loading ...",
            "{",
            "{'jsonrpc': '2.0'}",
            "{ id: 1 }",
            "[\"a\"]",
            r#"{"level": "error", "error": "no such file"}"#,
        ] {
            assert!(read_message(noise.as_bytes()).unwrap().is_none(), "{noise}");
        }
        for (broken, says) in [
            (
                r#"{"jsonrpc": "2.0", "id": 1, "result": {"#,
                "not JSON: EOF",
            ),
            (
                r#" {"jsonrpc": "2.0", "id": 1, "error": "text"}"#,
                "an answer that cannot be read",
            ),
        ] {
            let reason = read_message(broken.as_bytes()).unwrap_err();
            assert!(reason.contains(says), "{reason}");
        }
    }

    #[tokio::test]
    async fn a_long_line_of_noise_is_skipped_and_a_long_message_ends_the_connection() {
        let long = vec![b'x'; MAX_MESSAGE_BYTES as usize + 1];
        let noise = [&long[..], b"\n", PING.as_bytes(), b"\n"].concat();
        let ending = Ending::default();
        let mut lines = Lines::new(io::Cursor::new(noise), tokio::io::sink(), ending.clone());
        assert!(lines.receive().await.is_some());
        assert!(lines.receive().await.is_none());
        assert_eq!(ending.reason(), None);

        // It is not read to its end, which may never come.
        let message = [&b"{\"result\": \""[..], &long[..]].concat();
        let mut lines = Lines::new(io::Cursor::new(message), tokio::io::sink(), ending.clone());
        assert!(lines.receive().await.is_none());
        let reason = "the server sent a message of more than 16 MiB";
        assert_eq!(ending.reason(), Some(reason));
    }
}
