//! Bindings that wit-bindgen generates for the contract's world `interpreter-plugin`.

// Generated: raw pointers of the canonical ABI, no documentation beyond the contract's.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic
)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "rlf:plugin/interpreter-plugin",
    generate_all,
});
