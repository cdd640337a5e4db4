//! Rules are checked in full when a client is opened; the error says what to write instead.

use rlf_http::{HostRule, HttpClient, HttpError, HttpRules, Scheme};

use crate::{client, rules};

fn read(text: &str) -> Result<HttpRules, String> {
    rlf_config::parse(text, "p.toml").map_err(|error| error.to_string())
}

#[test]
fn empty_rules_open_nothing_and_full_rules_are_read() {
    assert_eq!(read("").unwrap(), HttpRules::default());
    assert!(HttpRules::default().hosts.is_empty());
    let rules = read(
        r#"
max_request_bytes = 1
max_response_bytes = 2
max_headers = 3
max_header_bytes = 4
timeout_ms = 5
max_concurrent = 6
max_requests_per_call = 7
certificate_authorities = "ours.pem"

[hosts."api.example.com"]

[hosts."wiki.intranet"]
scheme = "http"
ports = [8080, 80]
allow_private_addresses = true

[secrets.search]
env = "SEARCH_KEY"
host = "api.example.com"
prefix = "Bearer "
"#,
    );
    let mut rules = rules.unwrap();
    assert_eq!(rules.hosts["api.example.com"], HostRule::default());
    assert_eq!(rules.hosts["api.example.com"].scheme, Scheme::Https);
    let wiki = &rules.hosts["wiki.intranet"];
    assert_eq!(
        (wiki.scheme, wiki.allow_private_addresses),
        (Scheme::Http, true)
    );
    assert_eq!(rules.timeout.as_millis(), 5);
    assert_eq!(rules.secrets["search"].prefix, "Bearer ");

    rules.secrets.get_mut("search").unwrap().file = Some("keys/search".into());
    rules.resolve_paths("/etc/host".as_ref());
    assert_eq!(
        rules.certificate_authorities.as_deref(),
        Some("/etc/host/ours.pem".as_ref())
    );
    assert_eq!(
        rules.secrets["search"].file.as_deref(),
        Some("/etc/host/keys/search".as_ref())
    );
}

#[test]
fn unknown_keys_are_errors_with_the_nearest_named() {
    for (text, message) in [
        (
            "max_response_byte = 1",
            "did you mean `max_response_bytes`?",
        ),
        ("hosts.\"a.test\" = { port = [1] }", "did you mean `ports`?"),
        (
            "hosts.\"a.test\" = { scheme = \"htp\" }",
            "did you mean `http`?",
        ),
        ("secrets.a = { evn = \"A\" }", "did you mean `env`?"),
        ("hosts.\"a.test\" = { ports = [70000] }", "invalid value"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_host_is_written_in_one_way_only() {
    for (host, because) in [
        ("", "not a host"),
        ("*", "wildcards open"),
        ("*.example.com", "wildcards open"),
        ("example.com.", "leave the dot out"),
        ("https://example.com", "without scheme, port and path"),
        ("example.com:443", "without scheme, port and path"),
        ("example.com/path", "without scheme, port and path"),
        ("user@example.com", "without scheme, port and path"),
        ("exa mple.com", "without scheme, port and path"),
        ("::1", "write `[::1]`, as in a URL"),
        ("[0:0::1]", "this is the address [::1]; write it so"),
        ("0x7f.1", "this is the address 127.0.0.1; write it so"),
        ("2130706433", "this is the address 127.0.0.1; write it so"),
    ] {
        let mut rules = rules(80);
        let rule = rules.hosts["api.test"].clone();
        rules.hosts.insert(host.to_owned(), rule);
        let error = HttpClient::open(&rules).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("http host `{host}`: ")),
            "{error}"
        );
        assert!(error.contains(because), "{error}");
    }
    let mut rules = rules(80);
    let mut rule = rules.hosts["api.test"].clone();
    rules.hosts.insert("API.test".to_owned(), rule.clone());
    let error = HttpClient::open(&rules).unwrap_err().to_string();
    assert!(error.contains("`api.test` stands here twice"), "{error}");
    rules.hosts.remove("API.test");
    rule.ports = [0].into();
    rules.hosts.insert("zero.test".to_owned(), rule);
    let error = HttpClient::open(&rules).unwrap_err().to_string();
    assert_eq!(
        error,
        "http host `zero.test`: port 0 is none; write the server's"
    );
}

#[test]
fn limits_that_stop_everything_or_nothing_are_refused() {
    for (text, message) in [
        (
            "max_response_bytes = 0",
            "http `max_response_bytes = 0`: this would stop every fetch",
        ),
        ("max_headers = 0", "http `max_headers = 0`: this would"),
        (
            "max_headers = 1_001",
            "http `max_headers = 1001`: write at most 1000",
        ),
        (
            "max_header_bytes = 2_000_000",
            "http `max_header_bytes = 2000000`: write at most 1048576",
        ),
        ("timeout_ms = 0", "http `timeout_ms = 0`: this would"),
        (
            "max_concurrent = 0",
            "http `max_concurrent = 0`: this would",
        ),
        (
            "max_requests_per_call = 0",
            "http `max_requests_per_call = 0`: this would",
        ),
    ] {
        let error = HttpClient::open(&read(text).unwrap()).unwrap_err();
        assert!(matches!(error, HttpError::Limit { .. }), "{error}");
        assert!(error.to_string().starts_with(message), "{error}");
    }
    client(&read("max_request_bytes = 0").unwrap());
}

#[test]
fn certificates_that_are_none_are_refused() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    for (path, because) in [
        (empty.path(), "there is none in the file"),
        ("/nowhere/at/all".as_ref(), "cannot be read"),
    ] {
        let mut rules = rules(80);
        rules.hosts.get_mut("api.test").unwrap().scheme = Scheme::Https;
        rules.certificate_authorities = Some(path.to_owned());
        let error = HttpClient::open(&rules).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("http certificates {}: ", path.display())),
            "{error}"
        );
        assert!(error.contains(because), "{error}");
    }
}
