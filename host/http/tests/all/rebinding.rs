//! A name is resolved once for a fetch, and the connection goes to the address that was checked.

use std::sync::Arc;
use std::time::Instant;

use rlf_http::HttpClient;

use crate::names::Names;
use crate::server::{Answer, Server};
use crate::{LOOPBACK, MAX_WAIT, denied, get, rules};

#[tokio::test]
async fn an_answer_that_changes_is_asked_for_once() {
    let server = Server::start(Answer::ok("", "here")).await;
    let names = Arc::new(Names::in_turn([
        vec![LOOPBACK],
        vec!["169.254.169.254".parse().unwrap()],
    ]));
    let client = HttpClient::open_with(&rules(server.port), names.clone()).unwrap();
    let call = client.call(Instant::now() + MAX_WAIT);
    let url = format!("http://api.test:{}/", server.port);

    let answer = call.fetch(get(&url)).await.unwrap();
    assert_eq!(
        (answer.body.as_slice(), names.asked()),
        (b"here".as_slice(), 1)
    );
    // The next fetch checks again.
    let reason = denied(call.fetch(get(&url)).await);
    assert_eq!(
        reason,
        "host `api.test` leads to a link-local address, which is closed"
    );
    assert_eq!(names.asked(), 2);
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let server = Server::start(Answer::ok("", "here")).await;
    // Nothing listens at 127.0.0.2: the server is bound to 127.0.0.1 alone.
    let names = Names::in_turn([vec!["127.0.0.2".parse().unwrap(), LOOPBACK]]);
    let client = HttpClient::open_with(&rules(server.port), Arc::new(names)).unwrap();
    let call = client.call(Instant::now() + MAX_WAIT);
    let answer = call
        .fetch(get(format!("http://api.test:{}/", server.port)))
        .await
        .unwrap();
    assert_eq!(answer.body, b"here");
}
