//! Misbehaving endpoints, and the client's errors.

mod configuration;
mod embeddings;
mod endings;
mod questions;
mod server;

use rlf_endpoint::{ChatMessage, Endpoint, EndpointConfig};

const KEY: &str = "correct-horse-battery";

/// An endpoint at `port` of this machine, with immediate retries.
fn config(port: u16) -> EndpointConfig {
    let text = format!(
        "url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"m\"\nbackoff_ms = 0\nretries = 2\n"
    );
    rlf_config::parse(&text, "test.toml").expect("well written")
}

fn open(config: EndpointConfig) -> Endpoint {
    Endpoint::open(config).expect("it can be asked")
}

fn question() -> Vec<ChatMessage> {
    vec![ChatMessage::system("Be brief."), ChatMessage::user("Hm?")]
}
