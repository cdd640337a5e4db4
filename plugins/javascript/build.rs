//! The engine's stack lies in linear memory: room for what `engine::STACK` lets programs use of it, and for Rust's.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo:rustc-link-arg-cdylib=-zstack-size=4194304");
    }
}
