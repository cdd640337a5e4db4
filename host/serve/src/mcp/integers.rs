//! Requests with integers of more than 64 bits, which the protocol's library would round: they are refused by name.

use rmcp::model::{CustomRequest, ErrorCode, ErrorData};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};

/// The method of the request that takes the place of a refused one in a stream.
const REFUSED: &str = "rlf-host/refused";
/// Bytes that are read ahead of the protocol's library.
const AHEAD: usize = 64 << 10;

/// The id of a message with an integer that would be rounded, and the reason why it is refused. The library says what is
/// wrong with a message that is not JSON.
pub(super) fn refusal(message: &[u8]) -> Option<(Option<Value>, String)> {
    let error = rlf_json::check(message).err()?;
    let message: Value = serde_json::from_slice(message).ok()?;
    Some((message.get("id").cloned(), error.to_string()))
}

/// The answer for a refused message.
pub(super) fn invalid(reason: String) -> ErrorData {
    ErrorData::invalid_params(reason, None)
}

/// The answer to a request with a method of no standard, such as one that took the place of a refused request.
pub(super) fn answer_custom(request: CustomRequest) -> ErrorData {
    let reason = (request.params.as_ref()).and_then(|params| params["reason"].as_str());
    match reason {
        Some(reason) if request.method == REFUSED => invalid(reason.to_owned()),
        _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None),
    }
}

/// The messages of a stream, one in each line of at most `most` bytes. The library reads a stream itself, so another request
/// takes the place of each one that is refused, and [`answer_custom`] answers it. Longer lines are left to the library.
pub(super) fn exact(stream: impl AsyncRead + Send + Unpin + 'static, most: usize) -> DuplexStream {
    let (exact, mut written) = tokio::io::duplex(AHEAD);
    tokio::spawn(async move {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        let mut begins = true;
        loop {
            line.clear();
            let mut part = (&mut stream).take(most as u64);
            let read = part.read_until(b'\n', &mut line).await;
            if !matches!(read, Ok(1..)) {
                break;
            }
            let ends = line.ends_with(b"\n");
            // The last line needs no end.
            let is_last = !ends && line.len() < most;
            if begins && (ends || is_last) {
                replace_refused(&mut line);
            }
            begins = ends;
            if written.write_all(&line).await.is_err() {
                break;
            }
        }
    });
    exact
}

/// Replaces a line that is refused. One that wants no answer is removed.
fn replace_refused(line: &mut Vec<u8>) {
    let Some((id, reason)) = refusal(line) else {
        return;
    };
    line.clear();
    if let Some(id) = id {
        let params = json!({ "reason": reason });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": REFUSED, "params": params });
        line.extend_from_slice(format!("{request}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(n: &str) -> String {
        let params = format!(r#"{{"name":"add","arguments":{{"n":{n}}}}}"#);
        format!(r#"{{"id":7,"method":"tools/call","params":{params}}}"#)
    }

    /// Bytes that the library reads of a stream.
    async fn read(stream: String, most: usize) -> String {
        let mut read = String::new();
        let mut stream = exact(std::io::Cursor::new(stream.into_bytes()), most);
        stream.read_to_string(&mut read).await.unwrap();
        read
    }

    #[tokio::test]
    async fn a_request_with_an_integer_that_would_be_rounded_is_answered_with_its_name() {
        let whole = call("18446744073709551615");
        let rounded = call("18446744073709551616");
        let notice = rounded.replace("\"id\":7,", "");
        let stream = format!("{whole}\n{rounded}\n{notice}\n{rounded} not JSON\n{whole}\n");
        let read = read(stream, 1 << 20).await;
        let lines: Vec<&str> = read.lines().collect();
        let broken = format!("{rounded} not JSON");
        assert_eq!(lines.len(), 4, "{read}");
        assert_eq!((lines[0], lines[2], lines[3]), (&*whole, &*broken, &*whole));
        let refused: Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(refused["id"], 7);
        let method = refused["method"].as_str().unwrap();
        let request = CustomRequest::new(method, Some(refused["params"].clone()));
        let answer = answer_custom(request);
        assert_eq!(answer.code, ErrorCode::INVALID_PARAMS);
        let says = "the integer 18446744073709551616 has more than 64 bits";
        assert!(answer.message.contains(says), "{}", answer.message);
        let other = answer_custom(CustomRequest::new("tools/try", None));
        assert_eq!(other.code, ErrorCode::METHOD_NOT_FOUND);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_reaches_the_library_as_it_is() {
        let long = format!("{}\n{}\n", call("18446744073709551616"), call("1"));
        assert_eq!(read(long.clone(), 40).await, long);
    }

    #[tokio::test]
    async fn the_last_message_of_a_stream_is_checked_if_no_newline_ends_it() {
        let (whole, rounded) = (call("1"), call("18446744073709551616"));
        assert_eq!(read(whole.clone(), 1 << 20).await, whole);
        let read = read(format!("{whole}\n{rounded}"), 1 << 20).await;
        let lines: Vec<&str> = read.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, &*whole), "{read}");
        let refused: Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(
            (&refused["id"], &refused["method"]),
            (&json!(7), &json!(REFUSED))
        );
    }
}
