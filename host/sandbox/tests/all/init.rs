//! `init` runs once, and every call starts from the memory that it left. If that memory cannot be kept, `init` runs
//! in every call, and the reason is reported.

use crate::guest::{
    ADDER, Load, STDOUT, assert_unharmed, component, run, sandbox, try_load, with_init,
};
use rlf_sandbox::{InitMode, Limits, LoadError, Sandbox, Template};

/// Counts its runs in memory, and keeps the length of the configuration.
const COUNTS: &str = r#"(memory (export "memory") 1)
    (global $calls (mut i32) (i32.const 0))
    (func (export "init") (param i32 i32) (result i32)
        (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (i32.store (i32.const 100) (i32.add (i32.load (i32.const 100)) (i32.const 1)))
        (i32.store (i32.const 104) (local.get 1))
        (i32.const 0))
    (func (export "runs") (result i32) (i32.add (i32.mul (global.get $calls) (i32.const 100)) (i32.load (i32.const 100))))
    (func (export "length") (result i32)
        (i32.store (i32.const 100) (i32.const 77))
        (i32.load (i32.const 104)))"#;
const EXPORTS: &str = r#"(func (export "runs") (result u32) (canon lift (core func $i "runs")))
    (func (export "length") (result u32) (canon lift (core func $i "length")))"#;

fn load(sandbox: &Sandbox, text: &str, config_json: &str) -> Result<Template, LoadError> {
    try_load(
        sandbox,
        &component(text),
        &Load {
            config_json,
            ..Load::default()
        },
    )
}

#[test]
fn init_runs_once_and_its_state_is_what_calls_start_from() {
    let sandbox = sandbox();
    let template = load(&sandbox, &with_init("", COUNTS, "", EXPORTS), r#"{"k":1}"#).unwrap();
    assert_eq!(*template.init(), InitMode::Snapshot);
    for _ in 0..10 {
        assert_eq!(run::<_, u32>(&template, "length", ()).outcome, Ok(7));
        assert_eq!(
            run::<_, u32>(&template, "runs", ()).outcome,
            Ok(101),
            "memory and globals, from the snapshot"
        );
    }
    assert_unharmed(&sandbox);
}

#[test]
fn a_component_without_init_needs_none() {
    let sandbox = sandbox();
    assert_eq!(*load(&sandbox, ADDER, "{}").unwrap().init(), InitMode::None);
}

#[test]
fn what_cannot_be_kept_is_done_in_every_call() {
    let sandbox = sandbox();
    let module = format!(
        "(table 2 funcref) (func $unused (table.set (i32.const 0) (ref.null func))) {COUNTS}"
    );
    let template = load(&sandbox, &with_init("", &module, "", EXPORTS), r#"{"k":1}"#).unwrap();
    let InitMode::PerCall { reason } = template.init() else {
        panic!("{:?}", template.init())
    };
    assert!(
        reason.contains("unsupported `table.set` instruction"),
        "{reason}"
    );
    assert_eq!(run::<_, u32>(&template, "length", ()).outcome, Ok(7));
    assert_eq!(run::<_, u32>(&template, "runs", ()).outcome, Ok(101));
    assert_unharmed(&sandbox);
}

#[test]
fn handles_that_init_leaves_open_forbid_the_snapshot() {
    let sandbox = sandbox();
    let before = STDOUT.replace("(core func $print (canon lower (func $streams \"[method]output-stream.blocking-write-and-flush\") (memory $mem)))", "");
    let module = r#"(import "h" "stdout" (func $stdout (result i32)))
        (memory (export "memory") 1)
        (func (export "init") (param i32 i32) (result i32) (i32.store (i32.const 100) (call $stdout)) (i32.const 0))
        (func (export "runs") (result i32) (i32.load (i32.const 100)))"#;
    let with = r#"(with "h" (instance (export "stdout" (func $stdout))))"#;
    let exports = r#"(func (export "runs") (result u32) (canon lift (core func $i "runs")))"#;
    let template = load(&sandbox, &with_init(&before, module, with, exports), "{}").unwrap();
    let InitMode::PerCall { reason } = template.init() else {
        panic!("{:?}", template.init())
    };
    assert!(
        reason.contains("handles do not survive a snapshot"),
        "{reason}"
    );
    assert!(run::<_, u32>(&template, "runs", ()).outcome.unwrap() > 0);
}

/// An `init` that returns an error with the given case and text.
fn failing(case: u32, body: &str) -> String {
    let module = format!(
        r#"(memory (export "memory") 1) (data (i32.const 200) "no corpus")
        (func (export "init") (param i32 i32) (result i32)
            {body}
            (i32.store8 (i32.const 16) (i32.const 1))
            (i32.store8 (i32.const 20) (i32.const {case}))
            (i32.store (i32.const 24) (i32.const 200))
            (i32.store (i32.const 28) (i32.const 9))
            (i32.const 16))"#
    );
    with_init("", &module, "", "")
}

#[test]
fn an_init_that_fails_refuses_the_plugin_with_its_words() {
    let sandbox = sandbox();
    let error = load(&sandbox, &failing(1, ""), "{}").err().unwrap();
    assert_eq!(error.to_string(), "its init failed: not found: no corpus");
    let error = load(&sandbox, &failing(6, ""), "{}").err().unwrap();
    assert_eq!(error.to_string(), "its init failed: no corpus");
    let error = load(&sandbox, &failing(0, ""), "{}").err().unwrap();
    assert!(matches!(error, LoadError::Config { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "its init failed: invalid arguments: no corpus"
    );
    // The same if no snapshot is possible.
    let text = failing(6, "").replace(
        "(memory (export",
        "(func $unused data.drop 0) (memory (export",
    );
    let error = load(&sandbox, &text, "{}").err().unwrap();
    assert_eq!(error.to_string(), "its init failed: no corpus");
    assert_unharmed(&sandbox);
}

#[test]
fn an_init_that_breaks_or_never_ends_refuses_the_plugin() {
    let sandbox = sandbox();
    let error = load(&sandbox, &failing(6, "unreachable"), "{}")
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("wasm `unreachable` instruction executed"),
        "{error}"
    );
    let limits = Limits {
        init: std::time::Duration::from_millis(40),
        ..Limits::default()
    };
    let bytes = component(&failing(6, "(loop $again (br $again))"));
    let error = try_load(
        &sandbox,
        &bytes,
        &Load {
            limits,
            ..Load::default()
        },
    )
    .err()
    .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("its init failed: it took longer than it may (init_ms = 40, used "),
        "{error}"
    );
    assert_unharmed(&sandbox);
}

#[test]
fn a_plugin_may_be_loaded_inside_a_runtime() {
    crate::guest::block_on(async {
        let sandbox = sandbox();
        let template = load(&sandbox, &with_init("", COUNTS, "", EXPORTS), "{}").unwrap();
        assert_eq!(*template.init(), InitMode::Snapshot);
    });
}
