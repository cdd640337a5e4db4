//! The ways in which a question ends.

use std::time::Duration;

use rlf_endpoint::EndpointError;

use crate::server::{Answer, Server};
use crate::{config, open, question};

/// Asks one question; returns its outcome and the number of attempts.
async fn ask(answers: Vec<Answer>) -> (Result<String, EndpointError>, usize) {
    let server = Server::start(answers).await;
    let answered = open(config(server.port)).complete(&question(), None).await;
    let asked = server.requests().len();
    (answered.map(|completion| completion.text), asked)
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again() {
    let busy = Answer::Is(429, "retry-after: 0\r\n", "busy".to_owned());
    let (answer, asked) = ask(vec![busy, Answer::status(503), Answer::says("Fine.")]).await;
    assert_eq!(answer.expect("an answer"), "Fine.");
    assert_eq!(asked, 3);
}

#[tokio::test]
async fn a_broken_endpoint_is_given_up_after_the_last_attempt() {
    let answers = (0..9).map(|_| Answer::status(500)).collect();
    let (answer, asked) = ask(answers).await;
    assert_eq!(asked, 3);
    assert_eq!(
        answer.unwrap_err().to_string(),
        "the endpoint 127.0.0.1 failed 3 times, the last with status 500, and said \"status is 500\""
    );
}

#[tokio::test]
async fn an_endpoint_that_is_asked_once_is_not_counted() {
    for (answer, reason) in [
        (
            Answer::Is(503, "", String::new()),
            "the endpoint 127.0.0.1 failed with status 503",
        ),
        (
            Answer::HangUp,
            "the endpoint 127.0.0.1 gave no answer: `127.0.0.1` closed the connection before its answer was complete",
        ),
    ] {
        let server = Server::start(vec![answer]).await;
        let mut config = config(server.port);
        config.retries = 0;
        let error = open(config).complete(&question(), None).await.unwrap_err();
        assert_eq!(error.to_string(), reason);
    }
}

#[tokio::test]
async fn what_asking_again_cannot_mend_is_asked_once() {
    for status in [302, 400, 401, 404] {
        let (answer, asked) = ask(vec![Answer::status(status), Answer::says("Fine.")]).await;
        assert_eq!(asked, 1);
        let error = answer.unwrap_err();
        assert!(
            matches!(&error, EndpointError::Refused { status: seen, .. } if *seen == status),
            "{error}"
        );
        // A bad request may be one that is too long.
        assert_eq!(error.meets_every_question(), status != 400);
    }
}

#[tokio::test]
async fn an_answer_that_is_no_completion_is_an_error_that_shows_it() {
    for (body, shown) in [
        ("<html>Sign in</html>", "<html>Sign in</html>"),
        (r#"{"choices": []}"#, "no choices"),
        (r#"{"error": "no such model"}"#, "failed: no such model"),
        (
            r#"{"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"message": "502"}}]}"#,
            "failed: 502",
        ),
        (
            r#"{"choices": [{"text": "old"}]}"#,
            "missing field `message`",
        ),
    ] {
        let (answer, asked) = ask(vec![Answer::body(body)]).await;
        assert_eq!(asked, 1);
        let error = answer.unwrap_err();
        assert!(
            matches!(error, EndpointError::NoCompletion { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(shown), "{error}");
    }
}

#[tokio::test]
async fn an_answer_without_text_is_empty_and_says_whether_it_was_cut_short() {
    let body = r#"{"choices": [{"message": {"content": null}, "finish_reason": "length"}]}"#;
    let server = Server::start(vec![Answer::body(body)]).await;
    let answer = open(config(server.port)).complete(&question(), None).await;
    let answer = answer.expect("a completion");
    assert_eq!((answer.text.as_str(), answer.cut_short), ("", true));
}

#[tokio::test]
async fn an_answer_that_a_content_filter_removed_is_a_refusal_and_not_an_empty_answer() {
    for content in ["null", "\"\"", "\" \\n\""] {
        let body = format!(
            r#"{{"choices": [{{"message": {{"content": {content}}}, "finish_reason": "content_filter"}}]}}"#
        );
        let (answer, asked) = ask(vec![Answer::body(&body)]).await;
        assert_eq!(asked, 1);
        let error = answer.unwrap_err();
        assert!(matches!(error, EndpointError::Filtered { .. }), "{error}");
        assert!(!error.meets_every_question());
    }
    // What the filter left is an answer.
    let body =
        r#"{"choices": [{"message": {"content": "Well,"}, "finish_reason": "content_filter"}]}"#;
    let (answer, _) = ask(vec![Answer::body(body)]).await;
    assert_eq!(answer.expect("a completion"), "Well,");
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_it() {
    let (answer, _) = ask(vec![Answer::Flood]).await;
    let error = answer.unwrap_err();
    assert!(matches!(error, EndpointError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_silent_endpoint_is_left_when_its_time_is_over() {
    let server = Server::start(vec![Answer::Silence]).await;
    let mut config = config(server.port);
    config.timeout = Duration::from_millis(50);
    let error = open(config).complete(&question(), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the endpoint 127.0.0.1 had not answered after 50 ms; raise `timeout_ms` or lower `max_concurrent`"
    );
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_tried_as_often_as_a_busy_one() {
    let server = Server::start(Vec::new()).await;
    // The listener is closed after its task has seen that no answers are left.
    tokio::task::yield_now().await;
    let answer = open(config(server.port)).complete(&question(), None).await;
    let error = answer.unwrap_err();
    assert!(
        matches!(error, EndpointError::Unreachable { attempts: 3, .. }),
        "{error}"
    );
}
