//! The request is sent as the plugin asked, without anything that changes its destination or its parsing.

use rlf_http::{Request, Value};

use crate::server::{Answer, Server};
use crate::{call, denied, get, invalid, rules, with_header};

#[tokio::test]
async fn a_request_arrives_as_written_with_nothing_added_but_its_frame() {
    let mut server = Server::start(Answer::Echo).await;
    let request = Request {
        method: "POST".to_owned(),
        url: format!("http://api.test:{}/search?q=x", server.port),
        headers: vec![
            (
                "Content-Type".to_owned(),
                Value::Text("text/plain".to_owned()),
            ),
            ("x-twice".to_owned(), Value::Text("one".to_owned())),
            ("x-twice".to_owned(), Value::Text("zwölf".to_owned())),
        ],
        body: b"the body".to_vec(),
    };
    let answer = call(&rules(server.port)).fetch(request).await.unwrap();
    let expected = format!(
        "POST /search?q=x HTTP/1.1\r\nhost: api.test:{}\r\nconnection: close\r\naccept-encoding: identity\r\n\
         content-type: text/plain\r\nx-twice: one\r\nx-twice: zwölf\r\ncontent-length: 8\r\n\r\nthe body",
        server.port
    );
    assert_eq!(server.request().await, expected);
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers,
        [("content-length".to_owned(), expected.len().to_string())]
    );
    assert_eq!(String::from_utf8(answer.body).unwrap(), expected);
}

#[tokio::test]
async fn headers_of_the_connection_are_the_hosts() {
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "Keep-Alive",
        "Proxy-Authorization",
        "proxy-connection",
        "PROXY-ANYTHING",
        "upgrade",
        "http2-settings",
        "TE",
        "trailer",
        "expect",
        "accept-encoding",
    ] {
        let request = with_header(get("http://api.test/"), name, "x");
        let reason = denied(call(&rules(80)).fetch(request).await);
        let lower = name.to_lowercase();
        assert_eq!(
            reason,
            format!("header `{lower}` is set by the host alone; leave it out")
        );
    }
}

#[tokio::test]
async fn what_could_end_a_header_is_refused() {
    for (name, value) in [
        ("", "x"),
        ("na me", "x"),
        ("name:", "x"),
        ("name\r\nhost", "x"),
        ("naïve", "x"),
        ("name", "x\r\nhost: elsewhere.test"),
        ("name", "x\n"),
        ("name", "\r"),
        ("name", "x\0"),
        ("name", "\u{1b}[31m"),
        ("name", "\t"),
        ("name", "\u{85}"),
        ("name", "\u{7f}"),
    ] {
        let request = with_header(get("http://api.test/"), name, value);
        invalid(call(&rules(80)).fetch(request).await);
    }
}

#[tokio::test]
async fn only_methods_of_plain_requests_are_sent() {
    let mut server = Server::start(Answer::text("HTTP/1.1 204 No Content\r\n\r\n")).await;
    let with_method = |method: &str| Request {
        method: method.to_owned(),
        ..get(format!("http://api.test:{}/", server.port))
    };
    let mut requests = Vec::new();
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        requests.push((method, with_method(method)));
    }
    for method in [
        "", "get", "CONNECT", "TRACE", "PROPFIND", "GET /", "GET\r\n",
    ] {
        let reason = invalid(call(&rules(server.port)).fetch(with_method(method)).await);
        assert!(
            reason.starts_with(&format!("method {method:?} cannot be used")),
            "{reason}"
        );
    }
    for (method, request) in requests {
        let answer = call(&rules(server.port)).fetch(request).await;
        assert_eq!(answer.unwrap().status, 204, "{method}");
        assert!(
            server
                .request()
                .await
                .starts_with(&format!("{method} / HTTP/1.1\r\n"))
        );
    }
}

#[tokio::test]
async fn no_cookie_and_no_referrer_is_kept() {
    let mut server = Server::start(Answer::ok("set-cookie: id=1\r\n", "")).await;
    let call = call(&rules(server.port));
    for _ in 0..2 {
        call.fetch(get(format!("http://api.test:{}/", server.port)))
            .await
            .unwrap();
        let request = server.request().await.to_lowercase();
        assert!(
            !request.contains("cookie") && !request.contains("referer"),
            "{request}"
        );
    }
}
