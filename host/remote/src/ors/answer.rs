//! A server's answers in the host's form.

use rlf_dialogue::message::{Message, Role};
use rlf_plugins::bindings::types;
use rlf_plugins::offered_tools::{LoadedTool, OfferedToolsError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::SiteError;
use crate::host_form::{ListedTool, beginning, brief, load, of_content, safe};
use crate::rewards::Failure;
use crate::token::{Token, without_token};

/// The reason why there is no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The server did not answer well.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The answer cannot be read. `begins` is its beginning.
    #[error("its answer does not follow ORS: {source}; it begins with {begins:?}")]
    Unreadable {
        begins: String,
        source: serde_json::Error,
    },
    /// A required part of the answer is missing.
    #[error("its answer has no {0}")]
    Missing(&'static str),
    /// The server refused a call, because its episode is over. The host had not learned that.
    #[error("its episode had ended before this call: {0}")]
    Ended(String),
    /// The tools cannot be offered to a model.
    #[error("its tools cannot be offered: {0}")]
    Tools(#[from] OfferedToolsError),
}

/// Reads an answer that is JSON.
pub(crate) fn read<T: DeserializeOwned>(answer: &str) -> Result<T, AnswerError> {
    rlf_json::from_str(answer).map_err(|source| AnswerError::Unreadable {
        begins: beginning(answer),
        source,
    })
}

/// The content of a stream of server-sent events.
#[derive(Debug, Default)]
struct Stream {
    /// The data of the event `task_id`.
    id: String,
    /// The data of the events `chunk` and `end` together, or that of `error`. `None` if neither `end` nor `error` came.
    result: Option<Result<String, String>>,
}

impl Stream {
    fn read(text: &str) -> Self {
        let mut stream = Self::default();
        let mut result = String::new();
        let text = text.replace("\r\n", "\n");
        for event in text.split("\n\n") {
            let mut name = "";
            let mut data = Vec::new();
            for line in event.lines() {
                match line.split_once(':') {
                    Some(("event", value)) => name = value.trim(),
                    Some(("data", value)) => data.push(value.strip_prefix(' ').unwrap_or(value)),
                    _ => {}
                }
            }
            let data = data.join("\n");
            match name {
                "task_id" => stream.id = data,
                "chunk" => result += &data,
                "end" => {
                    stream.result = Some(Ok(result + &data));
                    return stream;
                }
                "error" => {
                    stream.result = Some(Err(data));
                    return stream;
                }
                _ => {}
            }
        }
        stream
    }
}

/// The id in the answer to `create_session`. The specification writes an object, and published servers write events.
pub(crate) fn session_id(answer: &str) -> Result<String, AnswerError> {
    let id = match rlf_json::from_str::<Value>(answer) {
        Ok(answer) => answer["sid"].as_str().unwrap_or_default().to_owned(),
        Err(_) => Stream::read(answer).id,
    };
    let missing = AnswerError::Missing("id of a session");
    Some(id).filter(|id| !id.is_empty()).ok_or(missing)
}

#[derive(Deserialize)]
struct Listed {
    tools: Vec<ListedTool>,
}

/// The tools of a session.
pub(crate) fn tools(answer: &str) -> Result<Vec<LoadedTool>, AnswerError> {
    Ok(load(read::<Listed>(answer)?.tools)?)
}

/// The first message of an episode.
pub(crate) fn messages(answer: &str) -> Result<Vec<Message>, AnswerError> {
    let blocks: Vec<Value> = read(answer)?;
    let message = (!blocks.is_empty()).then(|| Message::text(Role::User, safe(&text_of(&blocks))));
    Ok(message.into_iter().collect())
}

/// The text of blocks. A model does not see images.
fn text_of(blocks: &[Value]) -> String {
    let text = |block: &Value| match (block["text"].as_str(), block["mimeType"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(kind)) => format!("[an image of type {kind}, which is not shown]"),
        (None, None) => block.to_string(),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The answer of a server to a call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) result: Result<types::Observation, Failure>,
    pub(crate) reward: Option<f64>,
    /// True if the episode is over.
    pub(crate) finished: bool,
}

/// The answer to a call: its output, or the reason why the call was not made.
#[derive(Deserialize)]
struct Answer {
    output: Option<Output>,
    error: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Output {
    blocks: Vec<Value>,
    reward: Option<f64>,
    #[serde(default)]
    finished: bool,
}

/// Reads the answer to a call, without the token.
pub(crate) fn called(stream: &str, token: Option<&Token>) -> Result<Called, AnswerError> {
    let failed = |failure| Called {
        result: Err(failure),
        reward: None,
        finished: false,
    };
    let answer = match Stream::read(stream).result {
        // The token may have come in two pieces.
        Some(Ok(answer)) => read::<Answer>(&without_token(&answer, token))?,
        Some(Err(why)) => return Ok(failed(Failure::Inside(why))),
        None => return Err(AnswerError::Missing("result of the call")),
    };
    if let Some(output) = answer.output {
        let content = types::Content::Text(text_of(&output.blocks));
        return Ok(Called {
            result: Ok(of_content(content, false)),
            reward: output.reward,
            finished: output.finished,
        });
    }
    let neither = AnswerError::Missing("`output` and no `error`");
    let why = answer.error.ok_or(neither)?;
    let reason = answer.reason.as_deref();
    if reason == Some("episode_finished") {
        return Err(AnswerError::Ended(brief(&why)));
    }
    let is_misfit = match reason {
        Some(reason) => reason == "input_validation",
        // ors-sdk gives no reasons.
        None => why.starts_with("Tool input validation error"),
    };
    Ok(failed(if is_misfit {
        Failure::Arguments(why)
    } else {
        Failure::Inside(why)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The golden streams and lists are of openreward 0.1.167 and ors-sdk 0.1.0.

    fn seen(called: &Called) -> &str {
        match &called.result.as_ref().unwrap().content[..] {
            [types::Content::Text(text)] => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_comes_whole_or_in_pieces_among_pings() {
        let whole = concat!(
            "event: task_id\r\ndata: dd97f152fca94e4b9c4e26b53877beaa\r\n\r\n",
            "event: end\r\ndata: {\"ok\":true,\"output\":{\"blocks\":[{\"text\":\"3\",\"detail\":null,",
            "\"type\":\"text\"}],\"metadata\":null,\"reward\":1.0,\"finished\":true}}\r\n\r\n",
        );
        let answer = called(whole, None).unwrap();
        assert_eq!((seen(&answer), answer.reward), ("3", Some(1.0)));
        assert!(answer.finished);
        // The second piece begins with a space of the text.
        let pieces = concat!(
            ": ping - 2026-11-28 01:03:47\n\n",
            "event: task_id\ndata: dd97\n\n",
            "event: chunk\ndata: {\"ok\":true,\"output\":{\"blocks\":[{\"text\":\"one\n\n",
            ": ping\n\n",
            "event: end\ndata:  two\",\"type\":\"text\"},{\"data\":\"aGk=\",\"mimeType\":\"image/png\"}]}}\n\n",
        );
        let answer = called(pieces, None).unwrap();
        assert_eq!(
            seen(&answer),
            "one two\n[an image of type image/png, which is not shown]"
        );
        assert_eq!((answer.reward, answer.finished), (None, false));
    }

    #[test]
    fn a_call_that_does_not_fit_is_told_from_a_failure() {
        let failure = |stream: &str| called(stream, None).unwrap().result.unwrap_err();
        let arguments = |why: &str| Failure::Arguments(why.to_owned());
        let inside = |why: &str| Failure::Inside(why.to_owned());
        for (stream, expected) in [
            (
                "event: end\ndata: {\"ok\":false,\"error\":\"by: missing\",\"reason\":\"input_validation\"}\n\n",
                arguments("by: missing"),
            ),
            // ors-sdk gives no reasons.
            (
                "event: end\ndata: {\"ok\":false,\"error\":\"Tool input validation error: []\"}\n\n",
                arguments("Tool input validation error: []"),
            ),
            (
                "event: end\ndata: {\"ok\":false,\"error\":\"Tool name collision: 'add'\"}\n\n",
                inside("Tool name collision: 'add'"),
            ),
            // The server listed the tool that it does not find.
            (
                "event: end\ndata: {\"ok\":false,\"error\":\"'add' is not a valid tool\",\"reason\":\"not_found\"}\n\n",
                inside("'add' is not a valid tool"),
            ),
            (
                "event: end\ndata: {\"ok\":false,\"error\":\"two\",\"reason\":\"name_collision\"}\n\n",
                inside("two"),
            ),
            (
                "event: error\ndata: no negative\ndata: numbers\n\n",
                inside("no negative\nnumbers"),
            ),
        ] {
            assert_eq!(failure(stream), expected, "{stream}");
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for (stream, says) in [
            ("", "no result of the call"),
            ("event: task_id\ndata: a\n\n", "no result of the call"),
            ("event: end\ndata: {]\n\n", "does not follow ORS"),
            ("event: end\ndata: {\"ok\":true}\n\n", "no `output`"),
            (
                "event: end\ndata: {\"ok\":false,\"error\":\"'add' was not run\",\"reason\":\"episode_finished\"}\n\n",
                "its episode had ended before this call: 'add' was not run",
            ),
        ] {
            let error = called(stream, None).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let error = tools(r#"{"tools": []}"#).unwrap_err().to_string();
        assert!(error.contains("it offers no tools"), "{error}");
        let error = messages(r#"{"text": "a"}"#).unwrap_err().to_string();
        assert!(error.contains("does not follow ORS"), "{error}");
    }

    #[test]
    fn sessions_tools_and_prompts_are_read() {
        let streamed = "event: task_id\r\ndata: bf8ba5e7\r\n\r\nevent: end\r\ndata: \r\n\r\n";
        assert_eq!(session_id(streamed).unwrap(), "bf8ba5e7");
        assert_eq!(session_id(r#"{"sid": "abc-123"}"#).unwrap(), "abc-123");
        for none in ["", "{}", "event: task_id\ndata: \n\n"] {
            assert!(session_id(none).is_err(), "{none}");
        }
        let listed = r#"{"tools": [
            {"name": "add", "description": "Adds.", "input_schema": {"properties": {"by": {"type": "integer"}}, "type": "object"}},
            {"name": "show", "description": "Shows.", "input_schema": null}
        ], "terminal_tool": null}"#;
        let listed = tools(listed).unwrap();
        let names = listed.iter().map(|tool| tool.definition.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["add", "show"]);
        let prompt = r#"[{"text": "Count to 3.", "detail": null, "type": "text"}]"#;
        let told = [Message::text(Role::User, "Count to 3.")];
        assert_eq!(messages(prompt).unwrap(), told);
        assert!(messages("[]").unwrap().is_empty());
    }
}
