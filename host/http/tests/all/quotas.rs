//! Limits on concurrent fetches, and on the fetches of one call.

use std::sync::Arc;
use std::time::Instant;

use rlf_http::{FetchError, HttpClient};
use tokio::task::JoinSet;

use crate::names::Busy;
use crate::{MAX_WAIT, client, denied, exhausted, get, rules};

#[tokio::test]
async fn no_more_fetches_run_at_once_than_the_rules_say() {
    let mut rules = rules(80);
    rules.max_concurrent = 3;
    rules.max_requests_per_call = 6;
    let busy = Arc::new(Busy::default());
    let client = HttpClient::open_with(&rules, busy.clone()).unwrap();
    let mut fetches = JoinSet::new();
    // Two calls of one plugin share its limit of concurrent fetches.
    for _ in 0..2 {
        let call = Arc::new(client.call(Instant::now() + MAX_WAIT));
        for _ in 0..6 {
            let call = call.clone();
            fetches.spawn(async move { call.fetch(get("http://api.test/")).await });
        }
    }
    for answer in fetches.join_all().await {
        let expected = FetchError::Unavailable("the name `api.test` has no address".to_owned());
        assert_eq!(answer, Err(expected));
    }
    assert_eq!(busy.most(), 3);
}

#[tokio::test]
async fn a_call_asks_for_no_more_than_its_share() {
    let mut rules = rules(80);
    rules.max_requests_per_call = 2;
    let client = client(&rules);
    let call = client.call(Instant::now() + MAX_WAIT);
    for _ in 0..2 {
        // Refused fetches count, because each of them is an attempt and costs work.
        denied(call.fetch(get("https://elsewhere.test/")).await);
    }
    let third = call.fetch(get("http://api.test/")).await;
    assert_eq!(
        third.clone().unwrap_err().to_string(),
        "the call has asked for too many fetches (max_requests_per_call = 2, used 3)"
    );
    assert_eq!(exhausted(third), ("max_requests_per_call", 2, 3));
    assert_eq!(call.requests(), 3);
    // Another call has its own quota.
    denied(
        client
            .call(Instant::now() + MAX_WAIT)
            .fetch(get("https://elsewhere.test/"))
            .await,
    );
}
