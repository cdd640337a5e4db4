//! Configurations that are refused before anything is sent.

use rlf_endpoint::{Endpoint, EndpointConfig};

fn refused(text: &str) -> String {
    let parsed: Result<EndpointConfig, _> = rlf_config::parse(text, "test.toml");
    match parsed {
        Err(error) => error.to_string(),
        Ok(config) => Endpoint::open(config).expect_err(text).to_string(),
    }
}

#[test]
fn a_wrong_setting_is_named_with_what_to_write_instead() {
    let base = "url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    for (text, message) in [
        ("model = \"m\"", "url: it is missing; write"),
        ("url = \"localhost\"", "url: this is no URL"),
        ("url = \"ftp://a/b\"", "url: only http and https"),
        ("url = \"http://a:b@c/v1\"", "use `key_env` or `key_file`"),
        ("url = \"http://a/v1\"", "model: name the model"),
        ("modle = \"m\"", "did you mean `model`?"),
        (
            &format!("{base}temperature = 3.0"),
            "temperature: 3: write 0 to 2",
        ),
        (&format!("{base}temperature = nan"), "temperature: NaN"),
        (
            &format!("{base}timeout_ms = 0"),
            "timeout_ms: 0: write 1 to",
        ),
        (
            &format!("{base}max_concurrent = 0"),
            "max_concurrent: 0: write 1",
        ),
        (
            &format!("{base}retries = 1000"),
            "retries: 1000: write 0 to 100",
        ),
        (&format!("{base}extra = {{ seed = 1 }}"), "extra: `seed`"),
        (
            &format!("{base}key_env = \"A\"\nkey_file = \"b\""),
            "key_file: `key_env` says",
        ),
        (
            &format!("{base}key_env = \"RLF_ENDPOINT_TEST_IS_NOT_SET\""),
            "the environment variable `RLF_ENDPOINT_TEST_IS_NOT_SET` is not set",
        ),
        (
            &format!("{base}key_file = \"/does/not/exist\""),
            "key_file: http secret `key`: cannot read /does/not/exist",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn a_configuration_reads_back_as_it_was_written_out() {
    let text = "url = \"http://[::1]:8000\"\nmodel = \"m\"\nextra = { top_p = 0.9 }\n";
    let config: EndpointConfig = rlf_config::parse(text, "test.toml").unwrap();
    assert!(config.check().is_ok());
    let written = serde_json::to_string(&config).unwrap();
    let read: EndpointConfig = serde_json::from_str(&written).unwrap();
    assert_eq!(read, config);
}
