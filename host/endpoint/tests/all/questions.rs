//! The contents of requests.

use std::io::Write as _;

use rlf_endpoint::{ChatCall, ChatMessage, ChatTool, ResponseFormat, Sampling, Usage};
use serde_json::{Value, json};

use crate::server::{Answer, Server};
use crate::{KEY, config, open, question};

fn body(request: &str) -> Value {
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

#[tokio::test]
async fn a_question_carries_the_messages_the_model_and_how_to_sample() {
    let server = Server::start(vec![Answer::says("Fine.")]).await;
    let mut config = config(server.port);
    config.extra.insert("reasoning_effort".into(), "low".into());
    let answer = open(config).complete(&question(), Some(u64::MAX)).await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.text.as_str(), answer.cut_short), ("Fine.", false));
    let request = &server.requests()[0];
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(!request.to_lowercase().contains("authorization"));
    assert_eq!(
        body(request),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hm?"},
            ],
            "temperature": 1.0,
            "max_tokens": 1024,
            "seed": 0x7fff_ffff,
            "reasoning_effort": "low",
        })
    );
}

#[tokio::test]
async fn the_form_of_an_answer_goes_out_in_the_place_of_the_configured_one() {
    let server = Server::start(vec![Answer::says("{}"), Answer::says("{}")]).await;
    let mut config = config(server.port);
    let text = json!({"type": "text"});
    config.extra.insert("response_format".into(), text);
    let endpoint = open(config);
    let schema = json!({"type": "object", "required": ["a"]});
    for format in [
        ResponseFormat::JsonObject,
        ResponseFormat::JsonSchema(&schema),
    ] {
        let answer = endpoint.complete_in_form(&question(), format, Sampling::default());
        assert_eq!(answer.await.expect("an answer").text, "{}");
    }
    let sent: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| body(request)["response_format"].clone())
        .collect();
    let named = json!({"name": "answer", "schema": schema});
    assert_eq!(
        sent,
        [
            json!({"type": "json_object"}),
            json!({"type": "json_schema", "json_schema": named}),
        ]
    );
}

#[tokio::test]
async fn tools_go_out_and_calls_come_back() {
    let call = json!({
        "id": "a", "type": "function", "function": {"name": "add", "arguments": "{\"x\": "},
    });
    let bare = json!({"function": {"name": "add", "arguments": {"x": 1}}});
    let message = json!({
        "content": null, "reasoning_content": "Hm.", "reasoning": "Hm.", "tool_calls": [call, bare],
    });
    let answer = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    let server = Server::start(vec![Answer::body(&answer.to_string())]).await;
    let made = |id: &str, arguments: &str| ChatCall {
        id: id.to_owned(),
        name: "add".to_owned(),
        arguments: arguments.to_owned(),
    };
    let messages = [
        ChatMessage::user("Hm?"),
        ChatMessage {
            tool_calls: vec![made("z", "{}")],
            ..ChatMessage::assistant("")
        },
        ChatMessage::tool("z", "2"),
    ];
    let tools = [ChatTool {
        name: "add".to_owned(),
        description: "Adds.".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    let endpoint = open(config(server.port));
    let answer = endpoint.complete_with_tools(&messages, &tools, Sampling::default());
    let answer = answer.await.expect("an answer");
    // Arguments are as they were written, whether they are JSON or not.
    let calls = [made("a", "{\"x\": "), made("", "{\"x\":1}")];
    assert_eq!(answer.calls, calls);
    assert_eq!(answer.reasoning.as_deref(), Some("Hm."));
    assert_eq!((answer.text.as_str(), answer.cut_short), ("", false));
    let body = body(&server.requests()[0]);
    let function = json!({"name": "add", "arguments": "{}"});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "Hm?"},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "z", "type": "function", "function": function}]},
            {"role": "tool", "content": "2", "tool_call_id": "z"},
        ])
    );
    let function = json!({
        "name": "add", "description": "Adds.", "parameters": {"type": "object"},
    });
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": function}])
    );
}

#[tokio::test]
async fn tokens_are_those_that_the_endpoint_counted() {
    let body = |usage: &str| {
        let choice = r#""choices": [{"message": {"content": "Fine."}}]"#;
        Answer::body(&format!("{{{choice}{usage}}}"))
    };
    let server = Server::start(vec![
        body(r#", "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}"#),
        body(r#", "usage": null"#),
        body(r#", "usage": {"input": 7}"#),
        body(""),
    ])
    .await;
    let endpoint = open(config(server.port));
    let counted = Usage {
        prompt_tokens: 7,
        completion_tokens: 2,
    };
    for expected in [Some(counted), None, None, None] {
        let answer = endpoint.complete(&question(), None).await;
        assert_eq!(answer.expect("an answer").usage, expected);
    }
}

#[tokio::test]
async fn what_an_endpoint_refuses_can_be_left_out() {
    let server = Server::start(vec![Answer::says("Fine.")]).await;
    let mut config = config(server.port);
    config.max_tokens = 0;
    config.send_seed = false;
    let answer = open(config).complete(&question(), Some(3)).await;
    answer.expect("an answer");
    let body = body(&server.requests()[0]);
    assert!(body.get("max_tokens").is_none() && body.get("seed").is_none());
}

#[tokio::test]
async fn the_key_is_sent_and_is_nowhere_else() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{KEY}").unwrap();
    let server = Server::start(vec![Answer::Is(401, "", format!("{KEY} is no key"))]).await;
    let mut config = config(server.port);
    config.key_file = Some(file.path().to_owned());
    let endpoint = open(config);
    let error = endpoint.complete(&question(), None).await.unwrap_err();
    assert!(server.requests()[0].contains(&format!("authorization: Bearer {KEY}\r\n")));
    for shown in [
        format!("{endpoint:?}"),
        error.to_string(),
        format!("{error:?}"),
    ] {
        assert!(!shown.contains(KEY), "{shown}");
    }
}
