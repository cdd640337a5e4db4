//! Data reaches a guest under the names that were granted, and nothing else does.

use std::fs;

use crate::guest::{Load, MEMORY, assert_unharmed, component, run, sandbox, try_load};
use wasmtime::component::{ComponentType, Lift, Lower};

/// The contract's `error`, as an untyped caller sees it.
#[derive(ComponentType, Lift, Lower, Debug, PartialEq)]
#[component(variant)]
enum Error {
    #[component(name = "invalid-arguments")]
    InvalidArguments(String),
    #[component(name = "not-found")]
    NotFound(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "exhausted")]
    Exhausted(String),
    #[component(name = "unavailable")]
    Unavailable(String),
    #[component(name = "cancelled")]
    Cancelled,
    #[component(name = "internal")]
    Internal(String),
}

/// Passes its arguments to `data.read` and returns the outcome.
fn reader() -> String {
    format!(
        r#"(component {MEMORY}
        (import "rlf:plugin/types@0.1.0" (instance $types
            (type $variant (variant (case "invalid-arguments" string) (case "not-found" string) (case "denied" string)
                (case "exhausted" string) (case "unavailable" string) (case "cancelled") (case "internal" string)))
            (export "error" (type (eq $variant)))))
        (alias export $types "error" (type $error))
        (import "rlf:plugin/data@0.1.0" (instance $data
            (alias outer 1 $error (type $outer))
            (export "error" (type $e (eq $outer)))
            (export "read" (func (param "name" string) (param "path" string) (param "offset" u64) (param "length" u32)
                (result (result (list u8) (error $e)))))))
        (core func $read (canon lower (func $data "read") (memory $mem) (realloc $realloc)))
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "read" (func $read (param i32 i32 i32 i32 i64 i32 i32)))
            (func (export "read") (param i32 i32 i32 i32 i64 i32) (result i32)
                (call $read (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (i32.const 16))
                (i32.const 16)))
        (core instance $i (instantiate $m (with "h" (instance (export "memory" (memory $mem)) (export "read" (func $read))))))
        (func (export "read") (param "name" string) (param "path" string) (param "offset" u64) (param "length" u32)
            (result (result (list u8) (error $error)))
            (canon lift (core func $i "read") (memory $mem) (realloc $realloc))))"#
    )
}

#[test]
fn a_guest_reads_what_is_bound_and_nothing_beside_it() {
    let sandbox = sandbox();
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("corpus/part")).unwrap();
    fs::write(root.path().join("secret"), "secret").unwrap();
    fs::write(root.path().join("corpus/part/one.txt"), "hello data").unwrap();
    std::os::unix::fs::symlink("../secret", root.path().join("corpus/link")).unwrap();
    let data = [("corpus", root.path().join("corpus"))];
    let template = try_load(
        &sandbox,
        &component(&reader()),
        &Load {
            data: &data,
            ..Load::default()
        },
    )
    .unwrap();
    let read = |name: &str, path: &str, offset: u64, length: u32| {
        let arguments = (name.to_owned(), path.to_owned(), offset, length);
        run::<_, Result<Vec<u8>, Error>>(&template, "read", arguments)
            .outcome
            .unwrap()
    };
    assert_eq!(read("corpus", "part/one.txt", 6, 100), Ok(b"data".to_vec()));
    assert_eq!(read("corpus", "part/one.txt", 0, 5), Ok(b"hello".to_vec()));
    for path in [
        "../secret",
        "link",
        "/etc/passwd",
        "part/../../secret",
        "part/one.txt/",
    ] {
        let message = format!("data `corpus` has no entry `{path}`; `entries` lists them");
        assert_eq!(read("corpus", path, 0, 100), Err(Error::NotFound(message)));
    }
    assert!(matches!(
        read("other", "part/one.txt", 0, 1),
        Err(Error::NotFound(_))
    ));
    assert_unharmed(&sandbox);
}

#[test]
fn without_a_grant_there_is_no_data() {
    let sandbox = sandbox();
    let template = try_load(&sandbox, &component(&reader()), &Load::default()).unwrap();
    let arguments = ("corpus".to_owned(), "a".to_owned(), 0_u64, 1_u32);
    let outcome = run::<_, Result<Vec<u8>, Error>>(&template, "read", arguments)
        .outcome
        .unwrap();
    assert_eq!(
        outcome,
        Err(Error::NotFound(
            "no data is bound to `corpus`; the operator's grants bind it".into()
        ))
    );
}

#[test]
fn a_binding_that_cannot_be_opened_refuses_the_plugin() {
    let sandbox = sandbox();
    let data = [("corpus", "/nowhere/at/all".into())];
    let error = try_load(
        &sandbox,
        &component(&reader()),
        &Load {
            data: &data,
            ..Load::default()
        },
    )
    .err()
    .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("data `corpus`: cannot read /nowhere/at/all"),
        "{error}"
    );
}
