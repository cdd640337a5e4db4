//! Output of a guest, in every amount.

use std::io::Write;

use rlf_plugin::{Content, IntoObservation, Observation, log, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Print {
    /// For standard output
    stdout: String,
    /// For standard error
    stderr: String,
    /// Whether to loop without end afterwards
    then_loop: bool,
}

/// Prints, and then returns or never does.
#[tool]
pub(crate) fn print(
    Print {
        stdout,
        stderr,
        then_loop,
    }: Print,
) -> String {
    print!("{stdout}");
    let _ = std::io::stdout().flush();
    eprint!("{stderr}");
    log::info("printed");
    while std::hint::black_box(then_loop) {}
    "printed".to_owned()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Amount {
    /// How much, in bytes
    bytes: u64,
}

/// Prints numbered lines, 16 bytes each.
#[tool]
pub(crate) fn flood_output(Amount { bytes }: Amount) -> String {
    let stdout = std::io::stdout();
    let mut stdout = std::io::BufWriter::with_capacity(1 << 14, stdout.lock());
    for line in 0..bytes / 16 {
        if writeln!(stdout, "line {line:010}").is_err() {
            return format!("refused after line {line}");
        }
    }
    let _ = stdout.flush();
    "printed it all".to_owned()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Lines {
    /// How many
    lines: u32,
}

/// Writes to the operator's log.
#[tool]
pub(crate) fn flood_log(Lines { lines }: Lines) -> String {
    for line in 0..lines {
        log::info(&format!("line {line}"));
    }
    "logged it all".to_owned()
}

/// Returns a long text.
#[tool]
pub(crate) fn huge_result(Amount { bytes }: Amount) -> String {
    "x".repeat(bytes as usize)
}

/// Returns structured content that is not JSON.
#[tool]
pub(crate) fn invalid_result() -> Observation {
    vec![Content::Structured("{not json".to_owned())].into_observation()
}

/// Returns a metric that is not a number.
#[tool]
pub(crate) fn invalid_metric() -> Observation {
    Observation::text("fine").metric("share", f64::NAN)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Bytes {
    /// As they are, whatever they mean
    bytes: Vec<u8>,
}

/// Prints bytes that need not be text.
#[tool]
pub(crate) fn print_bytes(Bytes { bytes }: Bytes) -> String {
    let mut stdout = std::io::stdout();
    let printed = stdout.write_all(&bytes).and_then(|()| stdout.flush());
    printed.map_or_else(|error| error.to_string(), |()| "printed".to_owned())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Depth {
    /// Arrays in each other
    depth: usize,
}

/// Returns structured content that is nested very deep.
#[tool]
pub(crate) fn deep_result(Depth { depth }: Depth) -> Observation {
    vec![Content::Structured("[".repeat(depth) + &"]".repeat(depth))].into_observation()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Words {
    /// What to say
    text: String,
}

/// Returns its text, and logs it.
#[tool]
pub(crate) fn say(Words { text }: Words) -> String {
    log::info(&text);
    text
}

/// Refuses, in these words.
#[tool]
pub(crate) fn refuse(Words { text }: Words) -> Result<String, String> {
    Err(text)
}
