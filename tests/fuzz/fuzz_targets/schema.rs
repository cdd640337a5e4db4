//! Untrusted schemas and model-written arguments are accepted or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rlf_plugins::arguments;
use rlf_plugins::schema::ToolSchema;

fuzz_target!(|bytes: &[u8]| {
    // A schema, a NUL, arguments.
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (Some(schema), Some(arguments)) = (parts.next(), parts.next()) else {
        return;
    };
    let Ok(schema) = ToolSchema::parse(&String::from_utf8_lossy(schema)) else {
        return;
    };
    if let Ok(arguments) = serde_json::from_slice(arguments) {
        let _ = arguments::validate(&schema, &arguments);
        let _ = arguments::canonical_json(&arguments);
    }
});
