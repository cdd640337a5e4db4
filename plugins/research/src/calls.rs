//! The calls of one step, and their results as the model reads them.

use rlf_plugin::tools::{self, Request, Response};
use rlf_plugin::{Content, Ended, Error, Observation, error_message};
use with_model::{cut, delimited};

use crate::offer::Offer;
use crate::reply::Call;

/// The results of one step.
pub(crate) struct Results {
    /// All results, for the model.
    pub(crate) text: String,
    /// Number of calls that were made.
    pub(crate) made: u32,
    /// True if a call succeeded.
    pub(crate) any_succeeded: bool,
    /// The reason why a call was not made, if the budget of calls is spent.
    pub(crate) spent: Option<String>,
}

/// Makes the calls side by side. A call that fails, or of a tool that is not offered, has a result that says so.
pub(crate) fn make(calls: &[Call], offer: &Offer, max_chars: usize, seed: u64) -> Results {
    let requests: Vec<Request> = calls
        .iter()
        .filter(|call| offer.has(&call.tool))
        .map(|call| Request {
            name: call.tool.clone(),
            arguments: rlf_plugin::serde_json::Value::Object(call.arguments.clone()).to_string(),
        })
        .collect();
    let mut responses = tools::invoke(&requests).into_iter();
    let mut results = Results {
        text: String::new(),
        made: 0,
        any_succeeded: false,
        spent: None,
    };
    let mut shown = Vec::with_capacity(calls.len());
    for (number, call) in (1..).zip(calls) {
        let outcome = if offer.has(&call.tool) {
            outcome(responses.next())
        } else {
            let names = offer.names();
            Outcome::NotMade(format!("no tool has this name; there are: {names}"))
        };
        let (how, text) = match outcome {
            Outcome::Succeeded(text) => {
                results.made += 1;
                results.any_succeeded = true;
                ("succeeded", text)
            }
            Outcome::Failed(text) => {
                results.made += 1;
                ("failed", text)
            }
            Outcome::NotMade(text) => ("was not made", text),
            Outcome::Spent(text) => {
                results.spent = Some(text.clone());
                ("was not made", text)
            }
        };
        let data = delimited(&format!("RESULT {number}"), &cut(&text, max_chars), seed);
        shown.push(format!("Call {number} {how}.\n{data}"));
    }
    results.text = shown.join("\n\n");
    results
}

/// The end of one call, with the text that the model reads.
enum Outcome {
    Succeeded(String),
    Failed(String),
    NotMade(String),
    Spent(String),
}

fn outcome(response: Option<Result<Response, Error>>) -> Outcome {
    match response {
        Some(Ok(Response { ended, observation })) => match observation {
            Some(observation) if ended == Ended::Ok => Outcome::Succeeded(text(&observation)),
            Some(observation) => Outcome::Failed(text(&observation)),
            None => Outcome::Failed("it ended without a result".to_owned()),
        },
        Some(Err(error @ Error::Exhausted(_))) => Outcome::Spent(error_message(&error).to_owned()),
        Some(Err(error)) => Outcome::NotMade(error_message(&error).to_owned()),
        None => Outcome::NotMade("the host gave no answer".to_owned()),
    }
}

/// The parts of an observation as text. Bytes are only named, because the model reads text alone.
fn text(observation: &Observation) -> String {
    let parts = observation.content.iter().map(|part| match part {
        Content::Text(text) | Content::Structured(text) => text.clone(),
        Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => {
            format!("[{}, {} bytes]", blob.media_type, blob.data.len())
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}
