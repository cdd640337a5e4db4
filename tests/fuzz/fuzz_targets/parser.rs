//! Any text parses as a turn, and calls name tools that exist.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rlf_dialogue::{Protocol, parser};

#[allow(dead_code, unused_imports)]
#[path = "../../../host/dialogue/tests/all/parser.rs"]
mod property_tests;

fn check(text: &str) {
    for protocol in Protocol::ALL {
        for in_think in [false, true] {
            let turn = parser::parse(text, in_think, protocol.spec(), &property_tests::TOOLS);
            for (_, call) in turn.attempts() {
                if let Ok((name, arguments)) = call {
                    assert!(property_tests::TOOLS.contains(&name.as_str()));
                    assert!(arguments.is_object());
                }
            }
            let _ = turn.visible();
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(&String::from_utf8_lossy(bytes));
    if let Some(text) = rlf_fuzz::draw(&property_tests::pieces(), bytes) {
        check(&text);
    }
});
