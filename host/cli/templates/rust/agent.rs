//! Leads trajectories: asks the policy for a turn, makes its calls, and goes on until it answers.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::tools::{self, Request, Response};
use rlf_plugin::{Content, Error, error_message, model, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Lead {
    /// The task's prompt, in OpenAI's form
    messages: Vec<Value>,
    /// The task's tools, in OpenAI's form
    tools: Vec<Value>,
}

/// Leads the trajectory of one task.
#[tool]
fn lead(Lead { mut messages, tools: offered }: Lead) -> Result<&'static str, String> {
    loop {
        // A turn of the policy. Training counts each token that it samples here once.
        let said = model::chat(&json!({ "messages": messages, "tools": offered }));
        // For example, the turns are used up. What happened until then is graded.
        let said = said.map_err(|error| error_message(&error).to_owned())?;
        let made = said["tool_calls"].as_array().cloned().unwrap_or_default();
        if made.is_empty() {
            // The answer is in the policy's last turn. An agent may return one: a text, or {"answer": .., "reward": ..}.
            return Ok("");
        }
        messages.push(said);
        let requests: Vec<Request> = made.iter().map(request).collect();
        // The policy waits for one result of each call. A shorter or another history would be a new conversation.
        for (call, done) in made.iter().zip(tools::invoke(&requests)) {
            let content = shown(done);
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": content }));
        }
    }
}

fn request(call: &Value) -> Request {
    let text = |key: &str| call["function"][key].as_str().unwrap_or_default().to_owned();
    Request { name: text("name"), arguments: text("arguments") }
}

/// Text that the policy reads of a call.
fn shown(done: Result<Response, Error>) -> String {
    let content = match done {
        Ok(response) => response.observation.map(|shown| shown.content).unwrap_or_default(),
        Err(error) => return error_message(&error).to_owned(),
    };
    let texts = content.iter().map(|part| match part {
        Content::Text(text) | Content::Structured(text) => text.as_str(),
        Content::Image(_) | Content::Audio(_) | Content::File(_) => "[no text]",
    });
    texts.collect()
}

plugin!(tools: [lead]);

#[cfg(test)]
mod tests {
    use rlf_plugin::model::Answer;
    use rlf_plugin::serde_json::{self, Value, json};
    use rlf_plugin::tools::Response;
    use rlf_plugin::{Ended, Error, IntoObservation, testing};

    fn lead() -> (bool, String) {
        let task = json!({ "messages": [{ "role": "user", "content": "1 + 2?" }], "tools": [] });
        let led = testing::call::<super::Plugin>("lead", task).unwrap();
        (led.failed, testing::text(&led))
    }

    #[test]
    fn the_policy_reads_the_results_of_its_calls() {
        testing::answer_questions_with(|question| {
            let request: Value = serde_json::from_str(&question.extra[0].1).unwrap();
            let call = json!({ "id": "a", "function": { "name": "add", "arguments": "{}" } });
            let message = match request["messages"].as_array().map(Vec::len) {
                Some(1) => json!({ "role": "assistant", "content": "", "tool_calls": [call] }),
                _ => json!({ "role": "assistant", "content": request["messages"][2]["content"] }),
            };
            assert!(message["content"] == "" || message["content"] == "3", "{message}");
            let extra = vec![("message".to_owned(), message.to_string())];
            Ok(Answer { extra, ..Answer::text("") })
        });
        testing::invoke_with(|request| {
            assert_eq!(request.name, "add");
            let observation = Some("3".into_observation());
            Ok(Response { ended: Ended::Ok, observation })
        });
        assert_eq!(lead(), (false, String::new()));
    }

    #[test]
    fn no_further_turn_is_a_failure_and_no_bug() {
        testing::answer_questions_with(|_| Err(Error::Exhausted("no turn is left".to_owned())));
        assert_eq!(lead(), (true, "no turn is left".to_owned()));
    }
}
