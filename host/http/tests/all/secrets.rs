//! A secret is sent only to its host, and does not come back.

use std::io::Write as _;

use rlf_http::{HostRule, HttpRules, Request, Scheme, SecretRule, Value};
use tempfile::NamedTempFile;

use crate::server::{Answer, Server};
use crate::{call, client, denied, get, rules, unavailable, with_header};

const SECRET: &str = "correct-horse/battery";

/// Rules with the secret `key` for `api.test`, with a prefix.
fn with_secret(port: u16) -> (HttpRules, NamedTempFile) {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "{SECRET}").unwrap();
    let mut rules = rules(port);
    let other = rules.hosts["api.test"].clone();
    rules.hosts.insert("other.test".to_owned(), other);
    let rule = SecretRule {
        file: Some(file.path().to_owned()),
        host: "API.test".to_owned(),
        prefix: "Bearer ".to_owned(),
        ..SecretRule::default()
    };
    rules.secrets.insert("key".to_owned(), rule);
    (rules, file)
}

fn authorised(host: &str, port: u16, secret: &str) -> Request {
    let value = Value::Secret(secret.to_owned());
    Request {
        headers: vec![("authorization".to_owned(), value)],
        ..get(format!("http://{host}:{port}/"))
    }
}

#[tokio::test]
async fn the_server_gets_the_secret_and_the_plugin_does_not() {
    let mut server = Server::start(Answer::Echo).await;
    let (rules, _file) = with_secret(server.port);
    let answer = call(&rules)
        .fetch(authorised("api.test", server.port, "key"))
        .await
        .unwrap();
    let arrived = server.request().await;
    assert!(
        arrived.contains("\r\nauthorization: Bearer correct-horse/battery\r\n"),
        "{arrived}"
    );
    let seen = String::from_utf8(answer.body).unwrap();
    assert_eq!(seen, arrived.replace(SECRET, "[secret key]"));
}

#[tokio::test]
async fn every_part_of_an_answer_is_looked_through() {
    // Base64 of `user:correct-horse/battery`.
    let base64 = "dXNlcjpjb3JyZWN0LWhvcnNlL2JhdHRlcnk=";
    let headers = format!(
        "location: /?key=correct-horse%2Fbattery\r\nx-plain-token-42: it\r\nx-key: <{SECRET}>\r\nx-basic: {base64}\r\n"
    );
    let body = format!(
        r#"{{"key": "correct-horse\/battery", "basic": "{base64}", "KEY": "CORRECT-HORSE/BATTERY"}}"#
    );
    let server = Server::start(Answer::ok(&headers, &body)).await;
    let (mut rules, _file) = with_secret(server.port);
    let token = NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "Plain-Token-42").unwrap();
    let rule = SecretRule {
        file: Some(token.path().to_owned()),
        ..rules.secrets["key"].clone()
    };
    rules.secrets.insert("token".to_owned(), rule);
    // Even in a request that did not send it: the server may remember it.
    let answer = call(&rules)
        .fetch(get(format!("http://api.test:{}/", server.port)))
        .await
        .unwrap();
    let header = |name: &str| {
        let found = answer.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(header("location"), Some("/?key=[secret key]"));
    assert_eq!(header("x-[secret token]"), Some("it"));
    assert_eq!(header("x-key"), Some("<[secret key]>"));
    assert_eq!(header("x-basic"), Some("dXNlcj[secret key]="));
    assert_eq!(
        String::from_utf8(answer.body.clone()).unwrap(),
        r#"{"key": "[secret key]", "basic": "dXNlcj[secret key]=", "KEY": "[secret key]"}"#
    );
}

#[tokio::test]
async fn a_secret_is_sent_to_no_other_host() {
    let mut server = Server::start(Answer::Echo).await;
    let (rules, _file) = with_secret(server.port);
    assert_eq!(
        denied(
            call(&rules)
                .fetch(authorised("other.test", server.port, "key"))
                .await
        ),
        "secret `key` is bound to host `api.test` and is not sent to `other.test`"
    );
    assert_eq!(
        denied(
            call(&rules)
                .fetch(authorised("api.test", server.port, "keys"))
                .await
        ),
        "no secret `keys` is in the operator's HTTP rules"
    );
    assert!(server.is_untouched());
}

#[tokio::test]
async fn a_secret_bound_to_an_https_host_is_not_sent_in_the_clear() {
    let mut server = Server::start(Answer::Echo).await;
    let (mut rules, _file) = with_secret(server.port);
    let rule = rules.hosts.get_mut("api.test").unwrap();
    rule.scheme = Scheme::Https;
    rules.certificate_authorities = Some(crate::tls::authority());
    let reason = denied(
        call(&rules)
            .fetch(authorised("api.test", server.port, "key"))
            .await,
    );
    assert_eq!(reason, "host `api.test` is opened for https, not for http");
    assert!(server.is_untouched());
}

#[tokio::test]
async fn an_answer_that_cannot_be_looked_through_is_refused() {
    let server = Server::start(Answer::ok("content-encoding: gzip\r\n", "packed")).await;
    let (rules, _file) = with_secret(server.port);
    let reason = denied(
        call(&rules)
            .fetch(authorised("api.test", server.port, "key"))
            .await,
    );
    assert!(
        reason.contains("in which secrets cannot be looked for"),
        "{reason}"
    );
    // A host that receives no secret may use any encoding.
    let answer = call(&rules)
        .fetch(get(format!("http://other.test:{}/", server.port)))
        .await;
    assert_eq!(answer.unwrap().body, b"packed");

    let piece = with_header(
        authorised("api.test", server.port, "key"),
        "Range",
        "bytes=0-3",
    );
    let reason = denied(call(&rules).fetch(piece).await);
    assert_eq!(
        reason,
        "a request with a secret in it cannot ask for a range; leave `range` out"
    );
}

#[tokio::test]
async fn nothing_prints_a_secret() {
    let server = Server::start(Answer::text(&format!("{SECRET} is no status line\r\n"))).await;
    let (rules, _file) = with_secret(server.port);
    let client = client(&rules);
    let printed = format!(
        "{rules:?} {client:?} {:?}",
        authorised("api.test", 80, "key")
    );
    assert!(printed.contains("[secret key of api.test]"), "{printed}");
    assert!(!printed.contains("correct-horse"), "{printed}");
    let reason = unavailable(
        call(&rules)
            .fetch(authorised("api.test", server.port, "key"))
            .await,
    );
    assert!(!reason.contains("correct-horse"), "{reason}");
}

#[test]
fn an_environment_variable_holds_a_secret() {
    // Cargo sets this variable for every test.
    let mut rules = rules(80);
    let rule = SecretRule {
        env: Some("CARGO_MANIFEST_DIR".to_owned()),
        host: "api.test".to_owned(),
        ..SecretRule::default()
    };
    rules.secrets.insert("key".to_owned(), rule);
    let printed = format!("{:?}", client(&rules));
    assert!(printed.contains("[secret key of api.test]"), "{printed}");
}

#[test]
fn a_secret_without_use_or_value_is_refused_when_the_rules_are_opened() {
    let file = |text: &str| {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let [short, long, lines, good] = [
        file("1234567\n"),
        file(&"x".repeat(4097)),
        file("first line\nsecond line\n"),
        file("12345678\r\n"),
    ];
    let from = |file: &NamedTempFile| SecretRule {
        file: Some(file.path().to_owned()),
        host: "api.test".to_owned(),
        ..SecretRule::default()
    };
    let nothing = SecretRule {
        host: "api.test".to_owned(),
        ..SecretRule::default()
    };
    let env = |name: &str| SecretRule {
        env: Some(name.to_owned()),
        ..nothing.clone()
    };
    for (name, rule, because) in [
        ("key", from(&short), "it has 7 characters"),
        ("key", from(&long), "it has 4097 bytes"),
        ("key", from(&lines), "one line of ASCII"),
        ("k y", from(&good), "name it with"),
        ("", from(&good), "name it with"),
        ("key", nothing.clone(), "say where it is"),
        (
            "key",
            SecretRule {
                env: Some("HOME".to_owned()),
                ..from(&good)
            },
            "both `env` and `file`",
        ),
        (
            "key",
            env("RLF_HTTP_NO_SUCH_VARIABLE"),
            "`RLF_HTTP_NO_SUCH_VARIABLE` is not set",
        ),
        (
            "key",
            SecretRule {
                file: Some("/nowhere/at/all".into()),
                ..nothing.clone()
            },
            "cannot read /nowhere/at/all",
        ),
        (
            "key",
            SecretRule {
                host: String::new(),
                ..from(&good)
            },
            "bind it to the one host",
        ),
        (
            "key",
            SecretRule {
                host: "elsewhere.test".to_owned(),
                ..from(&good)
            },
            "host `elsewhere.test`, which is not one",
        ),
        (
            "key",
            SecretRule {
                prefix: "Bearer\n".to_owned(),
                ..from(&good)
            },
            "its `prefix`",
        ),
    ] {
        let mut rules = rules(80);
        rules.hosts.insert(
            "unused.test".to_owned(),
            HostRule {
                scheme: Scheme::Http,
                ..HostRule::default()
            },
        );
        rules.secrets.insert(name.to_owned(), rule);
        let error = rlf_http::HttpClient::open(&rules).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("http secret `{name}`: ")),
            "{error}"
        );
        assert!(error.contains(because), "{error}");
        assert!(
            !error.contains("1234567\n") && !error.contains("second line"),
            "{error}"
        );
    }
    let mut rules = rules(80);
    rules.secrets.insert("key".to_owned(), from(&good));
    client(&rules);
}
