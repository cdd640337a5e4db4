//! The host's side of the contract, generated from `wit/`.
#![allow(missing_docs, clippy::pedantic)] // generated

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package rlf:sandbox;
        world guest {
            import rlf:plugin/log@0.1.0;
            import rlf:plugin/data@0.1.0;
            import rlf:plugin/process@0.1.0;
            export rlf:plugin/lifecycle@0.1.0;
        }
    ",
    world: "rlf:sandbox/guest",
    imports: { "rlf:plugin/process.sleep": async | trappable, default: trappable },
    exports: { default: async },
});
