//! The two forms of a reply: calls of tools, or an answer.

use rlf_plugin::model::Answer;
use rlf_plugin::serde_json::{self, Map, Value};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use with_model::{cut, object};

/// Maximum number of characters of a parser's message, which may quote the reply.
const MAX_EXPLANATION_CHARS: usize = 300;

/// The next step that the model wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Step(Step),
    Conclusion(Conclusion),
}

/// Calls of tools, and what is known so far.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) calls: Vec<Call>,
    #[serde(default)]
    pub(crate) note: Option<String>,
}

/// One call of a tool.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
}

/// The answer to the question.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conclusion {
    pub(crate) answer: String,
    #[serde(default)]
    pub(crate) sources: Vec<String>,
}

impl Reply {
    /// Reads a reply with at most `max_calls` calls. An error says to the model what was wrong.
    pub(crate) fn read(answer: &Answer, max_calls: usize) -> Result<Self, String> {
        let reply = object(answer)?;
        match (reply.contains_key("calls"), reply.contains_key("answer")) {
            (true, false) => {
                let step: Step = typed(reply)?;
                if !(1..=max_calls).contains(&step.calls.len()) {
                    let count = step.calls.len();
                    return Err(format!("`calls` has 1 to {max_calls} calls, not {count}"));
                }
                Ok(Self::Step(step))
            }
            (false, true) => {
                let conclusion: Conclusion = typed(reply)?;
                if conclusion.answer.trim().is_empty() {
                    return Err("the answer is empty".to_owned());
                }
                Ok(Self::Conclusion(conclusion))
            }
            (true, true) => Err("it has both `calls` and `answer`".to_owned()),
            (false, false) => Err("it has neither `calls` nor `answer`".to_owned()),
        }
    }
}

fn typed<T: DeserializeOwned>(reply: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(reply))
        .map_err(|error| cut(&error.to_string(), MAX_EXPLANATION_CHARS))
}

impl Conclusion {
    /// The answer, then one line with the sources if there are any.
    pub(crate) fn shown(&self) -> String {
        let on_one_line = |source: &String| source.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut sources: Vec<String> = self.sources.iter().map(on_one_line).collect();
        sources.retain(|source| !source.is_empty());
        let answer = self.answer.trim();
        if sources.is_empty() {
            return answer.to_owned();
        }
        format!("{answer}\n\nsources: {}", sources.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Reply, String> {
        Reply::read(&Answer::text(text), 2)
    }

    #[test]
    fn both_forms_are_read_with_what_may_be_left_out() {
        let step = read(
            r#"{"calls": [{"tool": "search", "arguments": {"query": "x"}}, {"tool": "list"}], "note": "n"}"#,
        );
        let Ok(Reply::Step(step)) = step else {
            panic!("{step:?}");
        };
        let arguments: Vec<Value> = step
            .calls
            .iter()
            .map(|call| json!(call.arguments))
            .collect();
        assert_eq!(arguments, [json!({ "query": "x" }), json!({})]);
        assert_eq!(
            (&*step.calls[1].tool, step.note.as_deref()),
            ("list", Some("n"))
        );

        let conclusion = read(r#"{"answer": " 4\n", "sources": ["a\n b", " ", "c"]}"#);
        let Ok(Reply::Conclusion(conclusion)) = conclusion else {
            panic!("{conclusion:?}");
        };
        assert_eq!(conclusion.shown(), "4\n\nsources: a b; c");
        let Ok(Reply::Conclusion(bare)) = read(r#"{"answer": "4"}"#) else {
            panic!();
        };
        assert_eq!(bare.shown(), "4");
    }

    #[test]
    fn any_other_reply_says_what_was_wrong() {
        for (reply, wrong) in [
            ("I will search.", "one JSON object"),
            ("{}", "neither `calls` nor `answer`"),
            (
                r#"{"calls": [{"tool": "a"}], "answer": "b"}"#,
                "both `calls` and `answer`",
            ),
            (r#"{"calls": []}"#, "1 to 2 calls, not 0"),
            (
                r#"{"calls": [{"tool": "a"}, {"tool": "a"}, {"tool": "a"}]}"#,
                "1 to 2 calls, not 3",
            ),
            (r#"{"calls": [{"name": "a"}]}"#, "unknown field `name`"),
            (
                r#"{"calls": [{"tool": "a", "arguments": "{}"}]}"#,
                "expected a map",
            ),
            (
                r#"{"calls": [{"tool": "a"}], "thought": "b"}"#,
                "unknown field `thought`",
            ),
            (r#"{"answer": " "}"#, "empty"),
            (r#"{"answer": 4}"#, "expected a string"),
            (r#"{"answer": "4", "sources": "a"}"#, "expected a sequence"),
        ] {
            let why = read(reply).unwrap_err();
            assert!(why.contains(wrong), "{reply}: {why}");
        }
    }
}
