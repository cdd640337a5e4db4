//! No request and no answer is larger than the rules allow, however its size is announced.

use std::fmt::Write as _;

use rlf_http::{HttpRules, Request};

use crate::server::{Answer, Server};
use crate::{call, exhausted, fetch, get, rules, unavailable, with_header};

fn small(port: u16) -> HttpRules {
    HttpRules {
        max_request_bytes: 10,
        max_response_bytes: 1_000,
        max_headers: 5,
        max_header_bytes: 200,
        ..rules(port)
    }
}

#[tokio::test]
async fn an_answer_that_says_it_is_too_large_is_not_read() {
    let answer = Answer::text("HTTP/1.1 200 OK\r\ncontent-length: 123456789012\r\n\r\n");
    let server = Server::start(answer).await;
    let answer = fetch(&small(server.port), server.port).await;
    assert_eq!(
        answer.clone().unwrap_err().to_string(),
        "the answer's body is too large (max_response_bytes = 1000, used 123456789012)"
    );
    assert_eq!(
        exhausted(answer),
        ("max_response_bytes", 1_000, 123_456_789_012)
    );
}

#[tokio::test]
async fn an_answer_without_end_is_counted_as_it_comes() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\nx",
        "HTTP/1.0 200 OK\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\nx",
    ] {
        let mut server = Server::start(Answer::Flood(head.into())).await;
        let (name, value, used) = exhausted(fetch(&small(server.port), server.port).await);
        assert_eq!((name, value), ("max_response_bytes", 1_000));
        // The limit is exceeded by one buffer at most.
        assert!((1_001..100_000).contains(&used), "{used}");
        server.closed().await;
    }
}

#[tokio::test]
async fn an_answer_of_just_the_size_is_whole() {
    let body = "x".repeat(1_000);
    let server = Server::start(Answer::ok("", &body)).await;
    let answer = fetch(&small(server.port), server.port).await.unwrap();
    assert_eq!(answer.body, body.as_bytes());

    let chunked = |chunks: [&str; 2]| {
        let mut text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
        for chunk in chunks {
            let _ = write!(text, "{:x}\r\n{chunk}\r\n", chunk.len());
        }
        Answer::text(&format!("{text}0\r\na: trailer\r\n\r\n"))
    };
    let server = Server::start(chunked([&body[..500], &body[500..]])).await;
    let answer = fetch(&small(server.port), server.port).await.unwrap();
    assert_eq!(answer.body, body.as_bytes());
    assert!(answer.headers.iter().all(|(name, _)| name != "a"));

    let server = Server::start(chunked([&body, "x"])).await;
    let answer = fetch(&small(server.port), server.port).await;
    assert_eq!(exhausted(answer), ("max_response_bytes", 1_000, 1_001));

    // The body that a GET would have does not come.
    let server = Server::start(Answer::text(
        "HTTP/1.1 200 OK\r\ncontent-length: 123456\r\n\r\n",
    ))
    .await;
    let request = Request {
        method: "HEAD".to_owned(),
        ..get(format!("http://api.test:{}/", server.port))
    };
    let answer = call(&small(server.port)).fetch(request).await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}

#[tokio::test]
async fn headers_of_an_answer_are_counted() {
    let headers = |count: usize, bytes: usize| {
        let mut lines = String::new();
        for at in 1..count {
            let _ = write!(lines, "h{at:05}: {}\r\n", "x".repeat(bytes));
        }
        Answer::ok(&lines, "")
    };
    for (answer, expected) in [
        (headers(6, 1), ("max_headers", 5, 6)),
        (headers(500, 1), ("max_headers", 5, 6)),
        // Four headers of 110 bytes, and `content-length: 0`.
        (headers(5, 100), ("max_header_bytes", 200, 4 * 110 + 19)),
    ] {
        let server = Server::start(answer).await;
        assert_eq!(
            exhausted(fetch(&small(server.port), server.port).await),
            expected
        );
    }
    for endless in ["HTTP/1.1 200 OK\r\nheader: v", "HTTP/1.1 200 OK"] {
        let server = Server::start(Answer::Flood(endless.into())).await;
        let (name, value, used) = exhausted(fetch(&small(server.port), server.port).await);
        assert_eq!((name, value), ("max_header_bytes", 200));
        assert!((201..100_000).contains(&used), "{used}");
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_is_not_sent() {
    let mut server = Server::start(Answer::Echo).await;
    let url = format!("http://api.test:{}/", server.port);
    let call = call(&small(server.port));

    let request = Request {
        method: "POST".to_owned(),
        body: vec![b'x'; 11],
        ..get(&url)
    };
    assert_eq!(
        exhausted(call.fetch(request).await),
        ("max_request_bytes", 10, 11)
    );

    let many = (0..6).fold(get(&url), |request, _| with_header(request, "a", "b"));
    assert_eq!(exhausted(call.fetch(many).await), ("max_headers", 5, 6));

    let wide = with_header(get(&url), "name", &"x".repeat(200));
    let used = "GET".len() as u64 + url.len() as u64 + 4 + 2 + 200 + 2;
    assert_eq!(
        exhausted(call.fetch(wide).await),
        ("max_header_bytes", 200, used)
    );

    let long = get(format!("{url}{}", "x".repeat(200)));
    let used = "GET".len() as u64 + url.len() as u64 + 200;
    assert_eq!(
        exhausted(call.fetch(long).await),
        ("max_header_bytes", 200, used)
    );
    assert!(server.is_untouched());
}

#[tokio::test]
async fn a_compressed_answer_is_not_unpacked() {
    // A gzip header. The unpacked body could be a thousand times larger.
    let packed = "\u{1f}packed";
    let server = Server::start(Answer::ok("content-encoding: gzip\r\n", packed)).await;
    let answer = fetch(&small(server.port), server.port).await.unwrap();
    assert_eq!(answer.body, packed.as_bytes());
}

#[tokio::test]
async fn an_answer_that_is_none_is_unavailable() {
    for (bytes, because) in [
        ("", "closed the connection before its answer was complete"),
        (
            "HTTP/1.1 200",
            "closed the connection before its answer was complete",
        ),
        ("SSH-2.0-OpenSSH_9.9\r\n", "something that is not HTTP/1.1"),
        (
            "HTTP/1.1 99999 No\r\n\r\n",
            "something that is not HTTP/1.1",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "something that is not HTTP/1.1",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhal",
            "the connection to `api.test` failed",
        ),
    ] {
        let server = Server::start(Answer::text(bytes)).await;
        let reason = unavailable(fetch(&small(server.port), server.port).await);
        assert!(reason.contains(because), "{bytes:?}: {reason}");
    }
    // No server listens on a port that was just released.
    let closed = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let reason = unavailable(fetch(&small(port), port).await);
    let said = format!("cannot connect to `api.test:{port}`: connection refused");
    assert_eq!(reason, said);
}
