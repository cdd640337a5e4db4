//! Files that are not components, or that import unknown interfaces, are refused with a line that says what to do.

use crate::guest::{ADDER, Load, assert_unharmed, component, run, sandbox, sandbox_with, try_load};
use rlf_sandbox::{ComponentInfo, Limits, LoadError, Sandbox, SandboxConfig};
use wasmtime::component::Component;

fn refusal(sandbox: &Sandbox, bytes: &[u8]) -> LoadError {
    try_load(sandbox, bytes, &Load::default())
        .err()
        .expect("refused")
}

#[test]
fn other_files_are_refused_by_what_they_are() {
    let sandbox = sandbox();
    assert!(matches!(refusal(&sandbox, b""), LoadError::NotWasm { .. }));
    let text = refusal(&sandbox, b"#!/bin/sh\necho hi");
    assert!(
        text.to_string()
            .starts_with(r##"not WebAssembly (it begins with "#!/bin/sh"##),
        "{text}"
    );
    let module = wat::parse_str("(module)").unwrap();
    assert!(
        refusal(&sandbox, &module)
            .to_string()
            .contains("cargo build --target wasm32-wasip2")
    );
    let compiled = Component::new(sandbox.engine(), component(ADDER))
        .unwrap()
        .serialize()
        .unwrap();
    assert!(matches!(
        refusal(&sandbox, &compiled),
        LoadError::Precompiled
    ));
    assert_unharmed(&sandbox);
}

#[test]
fn a_truncated_component_is_refused_unless_nothing_of_it_is_missing() {
    let sandbox = sandbox();
    let whole = component(ADDER);
    for length in 8..whole.len() {
        // A file cut between sections is a smaller component, without the export or without its debugging names.
        if let Ok(template) = try_load(&sandbox, &whole[..length], &Load::default())
            && template.info().exports.contains(&"add".to_owned())
        {
            let sum = run::<_, u32>(&template, "add", (1_u32, 2_u32)).outcome;
            assert_eq!(sum, Ok(3), "cut at {length}");
        }
    }
    let mut wrong = whole.clone();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 0xff;
    assert!(matches!(
        refusal(&sandbox, &wrong),
        LoadError::Damaged { .. } | LoadError::Compile { .. }
    ));
    assert_unharmed(&sandbox);
}

#[test]
fn a_component_too_big_to_look_at_is_refused_unread() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(1),
        max_component_bytes: 100,
        ..SandboxConfig::default()
    });
    assert!(matches!(
        refusal(&sandbox, &[0; 101]),
        LoadError::TooLarge {
            size: 101,
            limit: 100
        }
    ));
}

#[test]
fn imports_that_are_not_there_are_named_all_at_once() {
    let sandbox = sandbox();
    let text = r#"(component
        (import "rlf:plugin/model@0.1.0" (instance))
        (import "wasi:http/types@0.2.0" (instance))
        (import "wasi:io/poll@0.2.0" (instance))
        (import "anything" (func)))"#;
    let LoadError::Imports { missing } = refusal(&sandbox, &component(text)) else {
        panic!("imports")
    };
    assert_eq!(
        missing,
        [
            "`rlf:plugin/model@0.1.0` is not granted or does not exist",
            "`wasi:http/types@0.2.0` is not granted or does not exist",
            "`anything` is not granted or does not exist",
        ]
    );
}

#[test]
fn another_version_of_the_contract_is_refused_and_both_are_named() {
    let sandbox = sandbox();
    let import = refusal(
        &sandbox,
        &component(r#"(component (import "rlf:plugin/log@0.2.0" (instance)))"#),
    )
    .to_string();
    assert!(
        import.contains("`rlf:plugin/log` is wanted in version 0.2.0, this host has 0.1.0"),
        "{import}"
    );
    let wasi = refusal(
        &sandbox,
        &component(r#"(component (import "wasi:io/poll@0.3.0" (instance)))"#),
    )
    .to_string();
    assert!(
        wasi.contains("wanted in version 0.3.0, this host has 0.2"),
        "{wasi}"
    );
    let export = r#"(component (instance $i) (export "rlf:plugin/lifecycle@0.2.0" (instance $i)))"#;
    let export = refusal(&sandbox, &component(export)).to_string();
    assert!(
        export.starts_with("built for version 0.2.0 of rlf:plugin, this host speaks 0.1.0"),
        "{export}"
    );
}

#[test]
fn everything_said_to_be_linked_is_linked() {
    let sandbox = sandbox();
    let interfaces = [
        "rlf:plugin/code@0.1.0",
        "rlf:plugin/data@0.1.0",
        "rlf:plugin/log@0.1.0",
        "rlf:plugin/process@0.1.0",
        "rlf:plugin/types@0.1.0",
        "wasi:cli/environment@0.2.0",
        "wasi:cli/exit@0.2.0",
        "wasi:cli/stderr@0.2.0",
        "wasi:cli/stdin@0.2.0",
        "wasi:cli/stdout@0.2.0",
        "wasi:cli/terminal-input@0.2.0",
        "wasi:cli/terminal-output@0.2.0",
        "wasi:cli/terminal-stderr@0.2.0",
        "wasi:cli/terminal-stdin@0.2.0",
        "wasi:cli/terminal-stdout@0.2.0",
        "wasi:clocks/monotonic-clock@0.2.0",
        "wasi:clocks/wall-clock@0.2.0",
        "wasi:filesystem/preopens@0.2.0",
        "wasi:filesystem/types@0.2.0",
        "wasi:io/error@0.2.0",
        "wasi:io/poll@0.2.0",
        "wasi:io/streams@0.2.0",
        "wasi:random/insecure@0.2.0",
        "wasi:random/insecure-seed@0.2.0",
        "wasi:random/random@0.2.0",
        "wasi:sockets/instance-network@0.2.0",
        "wasi:sockets/ip-name-lookup@0.2.0",
        "wasi:sockets/network@0.2.0",
        "wasi:sockets/tcp@0.2.0",
        "wasi:sockets/tcp-create-socket@0.2.0",
        "wasi:sockets/udp@0.2.0",
        "wasi:sockets/udp-create-socket@0.2.0",
    ];
    let imports = interfaces.map(|name| format!("(import \"{name}\" (instance))"));
    let text = format!("(component {})", imports.concat());
    try_load(&sandbox, &component(&text), &Load::default()).unwrap();
}

#[test]
fn a_function_that_an_interface_lacks_is_named() {
    let sandbox = sandbox();
    let text = r#"(component (import "wasi:random/random@0.2.0" (instance (export "get-dice" (func (result u32))))))"#;
    let message = refusal(&sandbox, &component(text)).to_string();
    assert!(message.contains("get-dice"), "{message}");
}

#[test]
fn a_component_says_what_it_is_without_being_compiled() {
    let bytes = component(ADDER);
    let info = ComponentInfo::read(&bytes).unwrap();
    assert_eq!(info.hash, blake3::hash(&bytes).to_hex().to_string());
    assert_eq!(
        (info.size, info.exports.as_slice()),
        (bytes.len() as u64, &["add".to_owned()][..])
    );
    let text = crate::guest::with_init(
        "",
        r#"(memory (export "memory") 1) (func (export "init") (param i32 i32) (result i32) (i32.const 0))"#,
        "",
        "",
    );
    let info = ComponentInfo::read(&component(&text)).unwrap();
    assert_eq!(info.exported_version("rlf:plugin/lifecycle"), Some("0.1.0"));
    assert_eq!(info.exported_version("rlf:plugin/tool"), None);
    assert_eq!(info.imports, Vec::<String>::new());
}

#[test]
fn limits_that_the_pool_cannot_keep_are_refused() {
    let sandbox = sandbox();
    let limits = Limits {
        memory_bytes: 1 << 40,
        ..Limits::default()
    };
    let refused = try_load(
        &sandbox,
        &component(ADDER),
        &Load {
            limits,
            ..Load::default()
        },
    );
    assert!(matches!(refused, Err(LoadError::Limits(_))));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refused = |change: fn(&mut SandboxConfig)| {
        let mut config = SandboxConfig {
            instances: Some(1),
            ..SandboxConfig::default()
        };
        change(&mut config);
        Sandbox::new(&config).err().unwrap().to_string()
    };
    let said = refused(|config| config.tick = std::time::Duration::ZERO);
    assert!(said.contains("tick_ms = 0"), "{said}");
    for (said, name) in [
        (
            refused(|config| config.instances = Some(u32::MAX)),
            "instances",
        ),
        (
            refused(|config| config.sessions = Some(u32::MAX)),
            "sessions",
        ),
        (
            refused(|config| config.workers = Some(usize::MAX)),
            "workers",
        ),
        (
            refused(|config| config.tick = std::time::Duration::from_hours(1)),
            "tick_ms",
        ),
        (
            refused(|config| config.prepare = std::time::Duration::MAX),
            "prepare_ms",
        ),
    ] {
        assert!(said.contains(&format!("{name} = ")), "{said}");
        assert!(said.contains(": write "), "{said}");
    }
    for said in [
        refused(|config| config.instances = Some(0)),
        refused(|config| config.programs = Some(0)),
        refused(|config| config.sessions = Some(0)),
        refused(|config| config.workers = Some(0)),
    ] {
        assert!(said.contains(" = 0: write 1 to "), "{said}");
    }
}
