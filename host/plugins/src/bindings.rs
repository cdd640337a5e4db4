//! The exports of `rlf:plugin` as typed Rust calls, generated from the contract.
//!
//! The WIT world has the exports of every kind. A component is called through the indices of the interface that it
//! exports, so all kinds share their types. `rlf-sandbox` provides the imports (`log`, `data`, WASI).

// Generated code has the contract's documentation and a style of its own.
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
