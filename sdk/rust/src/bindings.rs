//! Bindings that wit-bindgen generates for the contract in `wit/`.
//!
//! The contract's worlds all export `lifecycle`, and wit-bindgen cannot generate one export twice in a crate. So each
//! export has its own world here. A component that exports two of them has the contract's world.

// Generated code: raw pointers of the canonical ABI, and no documentation beyond the contract's.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic
)]

pub mod lifecycle {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package rlf:sdk-lifecycle;
            world lifecycle-export {
                import rlf:plugin/log@0.1.0;
                import rlf:plugin/data@0.1.0;
                export rlf:plugin/lifecycle@0.1.0;
            }
        ",
        world: "rlf:sdk-lifecycle/lifecycle-export",
        pub_export_macro: true,
        additional_derives: [PartialEq],
        generate_all,
    });
}

pub mod tool {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-tool; world tool-export { export rlf:plugin/tool@0.1.0; }",
        world: "rlf:sdk-tool/tool-export",
        pub_export_macro: true,
        additional_derives: [PartialEq],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}

pub mod tools {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-tools; world tools-import { import rlf:plugin/tools@0.1.0; }",
        world: "rlf:sdk-tools/tools-import",
        additional_derives: [PartialEq, Clone],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}

pub mod execute {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-execute; world execute-import { import rlf:plugin/execute@0.1.0; }",
        world: "rlf:sdk-execute/execute-import",
        additional_derives: [PartialEq, Clone],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}

pub mod model {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-model; world model-import { import rlf:plugin/model@0.1.0; }",
        world: "rlf:sdk-model/model-import",
        additional_derives: [PartialEq, Clone],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}

pub mod http {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-http; world http-import { import rlf:plugin/http@0.1.0; }",
        world: "rlf:sdk-http/http-import",
        additional_derives: [PartialEq, Clone],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}

pub mod reward {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-reward; world reward-export { export rlf:plugin/reward@0.1.0; }",
        world: "rlf:sdk-reward/reward-export",
        pub_export_macro: true,
        additional_derives: [PartialEq],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}

pub mod environment {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package rlf:sdk-environment; world environment-export { export rlf:plugin/environment@0.1.0; }",
        world: "rlf:sdk-environment/environment-export",
        pub_export_macro: true,
        additional_derives: [PartialEq, Clone],
        with: { "rlf:plugin/types@0.1.0": crate::bindings::lifecycle::rlf::plugin::types },
        generate_all,
    });
}
