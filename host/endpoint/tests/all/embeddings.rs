//! Embeddings of texts.

use rlf_endpoint::{Embedded, EndpointError};
use serde_json::{Value, json};

use crate::server::{Answer, Server};
use crate::{config, open};

fn vectors() -> Answer {
    let rows =
        json!([{"index": 0, "embedding": [1.0, 0.5]}, {"index": 1, "embedding": [0.0, -2.0]}]);
    Answer::body(&json!({"data": rows, "usage": {"prompt_tokens": 4}}).to_string())
}

async fn embed(answers: Vec<Answer>) -> (Result<Embedded, EndpointError>, Vec<String>) {
    let server = Server::start(answers).await;
    let texts = ["one".to_owned(), "two".to_owned()];
    let embedded = open(config(server.port)).embed(&texts).await;
    (embedded, server.requests())
}

#[tokio::test]
async fn texts_go_out_at_once_and_a_vector_of_each_comes_back() {
    let (embedded, requests) = embed(vec![vectors()]).await;
    let embedded = embedded.expect("vectors");
    assert_eq!(embedded.vectors, [[1.0, 0.5], [0.0, -2.0]]);
    assert_eq!(embedded.tokens, Some(4));
    let (head, body) = requests[0].split_once("\r\n\r\n").expect("a request");
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1"), "{head}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body, json!({"model": "m", "input": ["one", "two"]}));
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_for_vectors_again() {
    let (embedded, requests) = embed(vec![Answer::status(503), Answer::HangUp, vectors()]).await;
    assert_eq!(embedded.expect("vectors").vectors.len(), 2);
    assert_eq!(requests.len(), 3);
}

#[tokio::test]
async fn a_missing_row_is_an_error_that_names_the_host() {
    let one = json!({"data": [{"index": 0, "embedding": [1.0]}]});
    let (embedded, requests) = embed(vec![Answer::body(&one.to_string())]).await;
    assert_eq!(
        embedded.unwrap_err().to_string(),
        "the endpoint 127.0.0.1 answered something else than an embedding of each text: it has 1 vectors for 2 texts"
    );
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn no_text_asks_nothing() {
    let server = Server::start(Vec::new()).await;
    let embedded = open(config(server.port)).embed(&[]).await;
    assert!(embedded.expect("nothing").vectors.is_empty());
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_end_of_a_url_is_that_of_the_service() {
    for end in ["", "/", "/embeddings", "/chat/completions"] {
        let server = Server::start(vec![vectors()]).await;
        let mut config = config(server.port);
        config.url += end;
        let texts = ["one".to_owned(), "two".to_owned()];
        open(config).embed(&texts).await.expect("vectors");
        assert!(server.requests()[0].starts_with("POST /v1/embeddings HTTP"));
    }
}
