//! A fetch that its caller or its deadline cancels leaves no connection behind.

use std::time::{Duration, Instant};

use rlf_http::FetchError;

use crate::server::{Answer, Server};
use crate::{MAX_WAIT, client, get, rules};

#[tokio::test]
async fn a_dropped_fetch_closes_its_connection_and_makes_room() {
    let drip = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nx".to_vec();
    for answer in [
        Answer::Silence,
        Answer::Drip(drip.clone()),
        Answer::Flood(drip),
    ] {
        let mut server = Server::start(answer).await;
        let mut rules = rules(server.port);
        rules.max_concurrent = 1;
        let client = client(&rules);
        for _ in 0..2 {
            let call = client.call(Instant::now() + MAX_WAIT);
            let request = get(format!("http://api.test:{}/", server.port));
            let fetch = tokio::spawn(async move { call.fetch(request).await });
            server.request().await;
            fetch.abort();
            server.closed().await;
        }
    }
}

#[tokio::test]
async fn a_fetch_that_times_out_closes_its_connection() {
    let mut server = Server::start(Answer::Silence).await;
    let client = client(&rules(server.port));
    let call = client.call(Instant::now() + Duration::from_millis(100));
    let answer = call
        .fetch(get(format!("http://api.test:{}/", server.port)))
        .await;
    assert!(
        matches!(answer, Err(FetchError::Timeout { .. })),
        "{answer:?}"
    );
    server.closed().await;
}
