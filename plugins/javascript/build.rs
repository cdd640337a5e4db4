//! The engine's stack is in linear memory: room for the part that `engine::STACK` lets programs use, and for Rust's.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo:rustc-link-arg-cdylib=-zstack-size=4194304");
    }
}
