//! The exports of `rlf:plugin` as typed Rust calls, generated from the contract.
//!
//! One WIT world with the exports of every kind: a component is called through the indices of the
//! interface it does export, so the kinds share their types. The imports (`log`, `data`, WASI) are
//! the sandbox's business.

// What is generated has the contract's documentation and its own style.
#![allow(missing_docs, unreachable_pub, clippy::pedantic)]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package rlf:host;
        world plugin-exports {
            export rlf:plugin/tool@0.1.0;
            export rlf:plugin/reward@0.1.0;
            export rlf:plugin/interpreter@0.1.0;
            export rlf:plugin/environment@0.1.0;
        }
    ",
    world: "rlf:host/plugin-exports",
    exports: { default: async },
});

pub use self::exports::rlf::plugin::{environment, interpreter, reward, tool};
pub use self::rlf::plugin::{code, types};
