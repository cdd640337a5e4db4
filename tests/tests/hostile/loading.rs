//! A plugin that cannot be loaded is refused with one clear line, through the process that prepares components. All
//! others load.

use std::fs::{self, File};

use rlf_sandbox::{Sandbox, SandboxConfig};
use rlf_tests::Host;
use serde_json::Value;

use rlf_stub_plugins::{ANY_OBJECT, Beside, ECHO, StubTool, tools, tools_beside};

fn tool(name: &'static str, schema: &'static str) -> Vec<u8> {
    tools(&[StubTool {
        name,
        schema,
        hints: 0,
        body: ECHO,
    }])
}

/// Small to read and endless to compile: nested blocks, with values live across all of them, many times over.
fn compile_bomb() -> Vec<u8> {
    let step = |n: usize| {
        format!(
            "(local.set {} (i64.add (local.get {}) (i64.mul (local.get {}) (i64.const {n}))))
             (if (i64.eqz (local.get 0)) (then (local.set 1 (i64.rotl (local.get 2) (local.get 3)))))",
            n % 50,
            (n * 7) % 50,
            (n * 13) % 50
        )
    };
    let body = (0..4_000).map(step).collect::<Vec<_>>().concat();
    let function = format!("(func (local {}) {body})", "i64 ".repeat(50));
    let beside = Beside {
        module: Box::leak(function.repeat(80).into_boxed_str()),
        ..Beside::default()
    };
    let tool = StubTool {
        name: "bomb",
        schema: ANY_OBJECT,
        hints: 0,
        body: ECHO,
    };
    tools_beside(&beside, &[tool])
}

#[test]
fn what_cannot_be_loaded_is_one_line_each_and_the_rest_loads() {
    let ours = Host::new();
    let guests = Host::with_test_plugins();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, bytes: &[u8]| {
        fs::write(at(&format!("{name}.wasm")), bytes).expect("can be written");
    };
    let whole = fs::read(ours.plugins().join("calculator/calculator.wasm")).expect("is built");
    write("calculator", &whole);
    write("text", b"this is no WebAssembly at all");
    write("empty", b"");
    write(
        "core",
        &wat::parse_str("(module (func (export \"call\")))").expect("valid"),
    );
    write("cut", &whole[..whole.len() / 3]);
    let mut flipped = whole.clone();
    for at in (1_000..flipped.len()).step_by(997) {
        flipped[at] ^= 0x55;
    }
    write("flipped", &flipped);
    let large = File::create(at("large.wasm")).expect("can be made");
    large.set_len(600 << 20).expect("a hole");
    write(
        "exports-nothing",
        &wat::parse_str("(component)").expect("valid"),
    );
    write(
        "exports-unknown",
        &wat::parse_str(
            "(component (instance $i) (export \"rlf:plugin/oracle@0.1.0\" (instance $i)))",
        )
        .expect("valid"),
    );
    write(
        "other-version",
        &wat::parse_str(
            "(component (instance $i) (export \"rlf:plugin/tool@0.9.0\" (instance $i)))",
        )
        .expect("valid"),
    );
    let mut escapes = wat::parse_str(
        "(component (instance $i) (export \"rlf:plugin/tool@0.9.0\" (instance $i)))",
    )
    .expect("valid");
    for at in 0..escapes.len() {
        if escapes[at..].starts_with(b"0.9.0") {
            escapes[at..at + 5].copy_from_slice(b"0\x1b[2J");
        }
    }
    write("escapes", &escapes);
    write(
        "wrong-shape",
        &wat::parse_str(
            "(component (instance $i) (export \"rlf:plugin/tool@0.1.0\" (instance $i)))",
        )
        .expect("valid"),
    );
    write(
        "imports-unknown",
        &wat::parse_str("(component (import \"wasi:sockets/raw@9.9.9\" (instance)) (instance $i) (export \"rlf:plugin/tool@0.1.0\" (instance $i)))").expect("valid"),
    );
    write(
        "twins",
        &tools(&["same", "same"].map(|name| StubTool {
            name,
            schema: ANY_OBJECT,
            hints: 0,
            body: ECHO,
        })),
    );
    write(
        "schema-invalid",
        &tool(
            "a",
            r#"{"type":"object","properties":{"x":{"type":"strin"}}}"#,
        ),
    );
    write(
        "schema-remote",
        &tool(
            "b",
            r#"{"type":"object","properties":{"x":{"$ref":"https://example.com/s"}}}"#,
        ),
    );
    write(
        "schema-cyclic",
        &tool(
            "c",
            r##"{"type":"object","properties":{"x":{"$ref":"#"}}}"##,
        ),
    );
    let sandbox = Sandbox::new(&SandboxConfig {
        instances: Some(1),
        ..SandboxConfig::default()
    })
    .expect("an engine");
    write(
        "compiled",
        &sandbox
            .engine()
            .precompile_component(&tool("d", ANY_OBJECT))
            .expect("compiles"),
    );
    write("bomb", &compile_bomb());
    for name in ["endless", "greedy"] {
        fs::create_dir(at(name)).expect("can be made");
        fs::copy(
            guests.plugins().join("bad-init/bad-init.wasm"),
            at(&format!("{name}/{name}.wasm")),
        )
        .expect("is built");
    }
    let config = at("operator.toml");
    fs::write(
        &config,
        "[sandbox]\nprepare_ms = 2500\n\
         [plugins.bomb.limits]\ninit_ms = 1\n\
         [plugins.endless]\nconfig.does = \"loop\"\nlimits.init_ms = 500\n\
         [plugins.greedy]\nconfig.does = \"grow\"\nlimits.init_ms = 5000\n",
    )
    .expect("can be written");

    let folder = folder.path().to_string_lossy().into_owned();
    let listed = ours
        .run([
            "plugin",
            "list",
            "--json",
            "--plugins",
            &folder,
            "--config",
            &config.to_string_lossy(),
        ])
        .succeeded()
        .json();
    assert_eq!(
        listed["plugins"][0]["tools"][0]["name"], "calculate",
        "{listed}"
    );
    assert_eq!(
        listed["plugins"].as_array().map(Vec::len),
        Some(1),
        "{listed}"
    );

    let problems = listed["problems"].as_array().expect("a list");
    let said = |plugin: &str| -> &str {
        let problem = problems.iter().find(|problem| problem["plugin"] == plugin);
        problem
            .and_then(|problem| problem["what"].as_str())
            .unwrap_or_else(|| panic!("{plugin}: nothing in {listed:#}"))
    };
    let cases: &[(&str, &[&str])] = &[
        ("text", &["not"]),
        ("empty", &["not"]),
        ("core", &["a core module, not a component"]),
        ("cut", &["damaged"]),
        ("flipped", &[]),
        ("escapes", &[]),
        ("large", &["629145600 bytes", "at most 536870912 are read"]),
        (
            "exports-nothing",
            &["exports none of rlf:plugin/tool, rlf:plugin/reward"],
        ),
        (
            "exports-unknown",
            &["exports none of rlf:plugin/tool, rlf:plugin/reward"],
        ),
        ("other-version", &["version 0.9.0", "speaks 0.1.0"]),
        ("wrong-shape", &["rlf:plugin/tool"]),
        ("imports-unknown", &["wasi:sockets/raw"]),
        ("twins", &["two tools called `same`"]),
        (
            "schema-invalid",
            &["tool `a`", "not a valid JSON Schema", "/properties/x/type"],
        ),
        (
            "schema-remote",
            &["tool `b`", "https://example.com/s", "is not allowed"],
        ),
        ("schema-cyclic", &["tool `c`", "leads back to itself"]),
        ("compiled", &["compiled"]),
        (
            "bomb",
            &["preparing it took more than 2501 ms", "prepare_ms"],
        ),
        ("endless", &["init_ms"]),
        ("greedy", &["memory_bytes"]),
    ];
    for (plugin, words) in cases {
        let said = said(plugin);
        assert_eq!(said.lines().count(), 1, "{plugin}: {said}");
        assert!(!said.contains(char::is_control), "{plugin}: {said:?}");
        for word in *words {
            assert!(said.contains(word), "{plugin}: {said}");
        }
        for inside in ["panicked", "signal: "] {
            assert!(!said.contains(inside), "{plugin}: {said}");
        }
    }
    let names: Vec<&Value> = problems.iter().map(|problem| &problem["plugin"]).collect();
    assert_eq!(problems.len(), cases.len(), "{names:?}");
}
