//! Tiny components, written in WAT against the contract in `wit/` and made in microseconds, so that these tests need
//! no guest toolchain. Records are laid out by hand according to the canonical ABI: a string or a list is (pointer,
//! length), a variant is its case followed by its payload.

use std::fmt::Write as _;

use rlf_sandbox::{Sandbox, SandboxConfig};

/// A bit of `hints` in the contract.
pub const IDEMPOTENT: u8 = 2;
/// A bit of `hints` in the contract.
pub const DETERMINISTIC: u8 = 4;

/// One tool of a stub: its definition, and WAT that leaves a pointer to its result.
pub struct StubTool {
    /// Its name.
    pub name: &'static str,
    /// Its input schema, as JSON.
    pub schema: &'static str,
    /// Bits of `hints`.
    pub hints: u8,
    /// WAT that leaves a pointer to the result.
    pub body: &'static str,
}

/// A schema that every object fits.
pub const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// Returns the arguments as text.
pub const ECHO: &str = "(call $text (local.get $arguments) (local.get $arguments_len))";
/// Returns the arguments as a structured part without their last byte, which is not valid JSON.
pub const BROKEN_JSON: &str = "(drop (call $text (local.get $arguments)
    (i32.sub (local.get $arguments_len) (i32.const 1))))
    (i32.store8 (i32.const 2048) (i32.const 1)) (i32.const 1024)";
/// Unreachable code.
pub const TRAP: &str = "unreachable";
/// Never ends.
pub const SPIN: &str = "(loop $again (br $again)) unreachable";
/// The error `unavailable`, always.
pub const DOWN: &str = "(call $unavailable)";
/// The error `unavailable` on the first attempt, the arguments on the second.
pub const FLAKY: &str = "(if (result i32) (local.get $attempt)
    (then (call $text (local.get $arguments) (local.get $arguments_len)))
    (else (call $unavailable)))";
/// The eight bytes of the seed as hexadecimal digits.
pub const SEED: &str = "(local.set $attempt (i32.const 16))
    (loop $digit
      (local.set $attempt (i32.sub (local.get $attempt) (i32.const 1)))
      (i32.store8 (i32.add (i32.const 3072) (local.get $attempt))
        (i32.add (i32.const 97) (i32.wrap_i64 (i64.and (local.get $seed) (i64.const 15)))))
      (local.set $seed (i64.shr_u (local.get $seed) (i64.const 4)))
      (br_if $digit (local.get $attempt)))
    (call $text (i32.const 3072) (i32.const 16))";

const PRELUDE: &str = r#"
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then (drop (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get 3) (i32.const 65536)))))))
    (local.get $at))
  ;; ok(observation with one text)
  (func $text (param $at i32) (param $len i32) (result i32)
    (i32.store8 (i32.const 2048) (i32.const 0))
    (i32.store (i32.const 2052) (local.get $at))
    (i32.store (i32.const 2056) (local.get $len))
    (i32.store8 (i32.const 1024) (i32.const 0))
    (i32.store (i32.const 1028) (i32.const 2048))
    (i32.store (i32.const 1032) (i32.const 1))
    (i32.const 1024))
  ;; err(unavailable(""))
  (func $unavailable (result i32)
    (i32.store8 (i32.const 1024) (i32.const 1))
    (i32.store8 (i32.const 1028) (i32.const 4))
    (i32.const 1024))
"#;

/// WAT that one stub adds to the parts of every stub.
#[derive(Default)]
pub struct Beside {
    /// Text before everything else in the component: lowered imports.
    pub component: &'static str,
    /// Arguments of the core module.
    pub with: &'static str,
    /// Imports of the core module.
    pub imports: &'static str,
    /// Further definitions of the core module.
    pub module: &'static str,
}

/// A component of WIT world `tool-plugin` without its `lifecycle`. The first letters of the tools' names tell them
/// apart.
pub fn tools(tools: &[StubTool]) -> Vec<u8> {
    tools_beside(&Beside::default(), tools)
}

/// The same, with further WAT.
pub fn tools_beside(beside: &Beside, tools: &[StubTool]) -> Vec<u8> {
    // Texts begin at 8192, definitions at 4096, 48 bytes each.
    let (mut texts, mut definitions) = (String::new(), Vec::new());
    let mut place = |text: &str| {
        let at = 8192 + texts.len();
        texts.push_str(text);
        [at as u32, text.len() as u32]
    };
    for tool in tools {
        let mut words = Vec::new();
        words.extend(place(tool.name));
        words.extend(place("A stub."));
        words.extend(place(tool.schema));
        words.extend([0, 0, 0, u32::from(tool.hints), 0, 0]);
        definitions.extend(words.into_iter().flat_map(u32::to_le_bytes));
    }
    let mut dispatch = String::new();
    for tool in tools {
        let letter = tool.name.as_bytes()[0];
        writeln!(
            dispatch,
            "(if (i32.eq (i32.load8_u (local.get $name)) (i32.const {letter})) (then (return {})))",
            tool.body
        )
        .unwrap();
    }
    let list = [4096_u32.to_le_bytes(), (tools.len() as u32).to_le_bytes()].concat();
    component(
        "rlf:plugin/tool@0.1.0",
        beside,
        "",
        &format!(
            r#"{} {PRELUDE} {}
  (data (i32.const 512) "{}") (data (i32.const 4096) "{}") (data (i32.const 8192) "{}")
  (func (export "list-tools") (result i32) (i32.const 512))
  (func (export "call")
    (param $name i32) (param $name_len i32) (param $arguments i32) (param $arguments_len i32)
    (param $call_id i32) (param $call_id_len i32) (param $attempt i32)
    (param $trajectory i32) (param $trajectory_len i32) (param $turn i32) (param $seed i64)
    (param $budget i32) (param $extra i32) (param $extra_len i32) (result i32)
    {dispatch} unreachable)"#,
            beside.imports,
            beside.module,
            escaped(&list),
            escaped(&definitions),
            escaped(texts.as_bytes()),
        ),
        &[
            ("list-tools", "(result (list $definition))"),
            (
                "call",
                r#"(param "name" string) (param "arguments" string) (param "context" $context)
                (result (result $observation (error $error)))"#,
            ),
        ],
    )
}

/// A component of WIT world `reward-plugin` without its `lifecycle`: gives each trajectory the terms `em` = `value`
/// and `f1` = 0.5, and returns `surplus` more scores than there are trajectories.
pub fn reward(value: &str, surplus: i32) -> Vec<u8> {
    component(
        "rlf:plugin/reward@0.1.0",
        &Beside::default(),
        REWARD_TYPES,
        &format!(
            r#"{PRELUDE}
  (data (i32.const 512) "emf1")
  ;; terms: (name, value) of 16 bytes each
  (func $terms
    (i32.store (i32.const 600) (i32.const 512)) (i32.store (i32.const 604) (i32.const 2))
    (f64.store (i32.const 608) (f64.const {value}))
    (i32.store (i32.const 616) (i32.const 514)) (i32.store (i32.const 620) (i32.const 2))
    (f64.store (i32.const 624) (f64.const 0.5)))
  (func (export "grade") (param $request i32) (result i32)
    (local $count i32) (local $at i32)
    (call $terms)
    ;; the group's length, after the five strings and lists of the task
    (local.set $count (i32.add (i32.load offset=44 (local.get $request)) (i32.const {surplus})))
    (i32.store8 (i32.const 1024) (i32.const 0))
    (i32.store (i32.const 1028) (i32.const 4096))
    (i32.store (i32.const 1032) (local.get $count))
    (local.set $at (i32.const 4096))
    (loop $next
      (if (local.get $count) (then
        (i32.store8 (local.get $at) (i32.const 0))
        (i32.store offset=4 (local.get $at) (i32.const 600))
        (i32.store offset=8 (local.get $at) (i32.const 2))
        (local.set $at (i32.add (local.get $at) (i32.const 28)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next))))
    (i32.const 1024))"#
        ),
        &[(
            "grade",
            r#"(param "task" $task) (param "group" (list $trajectory)) (param "grading" $grading)
            (result (result (list (result $score (error $error))) (error $error)))"#,
        )],
    )
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "\\{byte:02x}").unwrap();
        text
    })
}

/// The contract's types. Types of exported functions must have names, so they are exported too.
const TYPES: &str = r#"
  (type $blob0 (record (field "media-type" string) (field "data" (list u8))))
  (export $blob "blob" (type $blob0))
  (type $content0 (variant (case "text" string) (case "structured" string)
    (case "image" $blob) (case "audio" $blob) (case "file" $blob)))
  (export $content "content" (type $content0))
  (type $role0 (enum "system" "user" "assistant" "tool"))
  (export $role "role" (type $role0))
  (type $message0 (record (field "role" $role) (field "content" (list $content))))
  (export $message "message" (type $message0))
  (type $metric0 (record (field "name" string) (field "value" f64)))
  (export $metric "metric" (type $metric0))
  (type $extra (list (tuple string string)))
  (type $observation0 (record (field "content" (list $content)) (field "failed" bool)
    (field "metrics" (list $metric)) (field "extra" $extra)))
  (export $observation "observation" (type $observation0))
  (type $ended0 (enum "ok" "failed" "invalid-arguments" "timeout" "memory-limit" "output-limit"
    "trap" "exited" "denied" "unavailable" "cancelled"))
  (export $ended "ended" (type $ended0))
  (type $error0 (variant (case "invalid-arguments" string) (case "not-found" string)
    (case "denied" string) (case "exhausted" string) (case "unavailable" string)
    (case "cancelled") (case "internal" string)))
  (export $error "error" (type $error0))
  (type $hints0 (flags "read-only" "idempotent" "deterministic" "open-world"))
  (export $hints "hints" (type $hints0))
  (type $definition0 (record (field "name" string) (field "description" string)
    (field "input-schema" string) (field "output-schema" (option string))
    (field "hints" $hints) (field "extra" $extra)))
  (export $definition "tool-definition" (type $definition0))
  (type $context0 (record (field "call-id" string) (field "attempt" u32)
    (field "trajectory-id" string) (field "turn" u32) (field "seed" u64) (field "budget-ms" u32)
    (field "extra" $extra)))
  (export $context "call-context" (type $context0))
  (type $verdict0 (record (field "success" bool) (field "score" f64) (field "reason" string)))
  (export $verdict "verdict" (type $verdict0))
"#;

const REWARD_TYPES: &str = r#"
  (type $call0 (record (field "call-id" string) (field "name" string) (field "arguments" string)))
  (export $call "tool-call" (type $call0))
  (type $malformed0 (record (field "text" string) (field "diagnostic" string)))
  (export $malformed "malformed-call" (type $malformed0))
  (type $turn0 (record (field "text" string) (field "reasoning" (option string))
    (field "visible" string) (field "calls" (list $call)) (field "malformed" (list $malformed))
    (field "tokens" u32)))
  (export $turn "model-turn" (type $turn0))
  (type $result0 (record (field "call-id" string) (field "ended" $ended)
    (field "observation" (option $observation)) (field "step-reward" (option f64))))
  (export $result "call-result" (type $result0))
  (type $event0 (variant (case "turn" $turn) (case "outcome" $result) (case "user" $message)))
  (export $event "event" (type $event0))
  (type $finish0 (enum "answered" "terminated" "max-turns" "length" "aborted"))
  (export $finish "finish" (type $finish0))
  (type $task0 (record (field "id" string) (field "source" string)
    (field "prompt" (list $message)) (field "reference" string) (field "extra" $extra)))
  (export $task "task" (type $task0))
  (type $trajectory0 (record (field "id" string) (field "tools" (list $definition))
    (field "events" (list $event)) (field "answer" (option string)) (field "finish" $finish)
    (field "final-state" (option string)) (field "verdict" (option $verdict))
    (field "extra" $extra)))
  (export $trajectory "trajectory" (type $trajectory0))
  (type $grading0 (record (field "split" string) (field "step" u64) (field "steps" u64)
    (field "seed" u64)))
  (export $grading "grading" (type $grading0))
  (type $term0 (record (field "name" string) (field "value" f64)))
  (export $term "term" (type $term0))
  (type $score0 (record (field "terms" (list $term))
    (field "per-event" (list (tuple u32 $term))) (field "metrics" (list $metric))))
  (export $score "score" (type $score0))
"#;

/// A lifted function of the core module: its name, parameters and result.
fn lifted(name: &str, signature: &str) -> String {
    format!(
        r#"(func ${name} {signature}
    (canon lift (core func $guest "{name}") (memory (core memory $guest "memory"))
      (realloc (core func $guest "cabi_realloc")) string-encoding=utf8))"#
    )
}

fn component(
    interface: &str,
    beside: &Beside,
    types: &str,
    module: &str,
    functions: &[(&str, &str)],
) -> Vec<u8> {
    let lifts: String = functions
        .iter()
        .map(|(name, signature)| lifted(name, signature))
        .collect();
    let exports = functions.iter().fold(String::new(), |text, (name, _)| {
        text + "(export \"" + name + "\" (func $" + name + "))"
    });
    let text = format!(
        r#"(component {} {TYPES} {types}
  (core module $module {module})
  (core instance $guest (instantiate $module {}))
  {lifts}
  (instance $exports {exports})
  (export "{interface}" (instance $exports)))"#,
        beside.component, beside.with
    );
    wat::parse_str(text).expect("the stub's WAT is valid")
}

/// A sandbox for one test.
///
/// # Panics
/// If the machine cannot run one.
pub fn sandbox() -> Sandbox {
    let config = SandboxConfig {
        instances: Some(16),
        workers: Some(2),
        ..SandboxConfig::default()
    };
    Sandbox::new(&config).expect("the machine can hold a small sandbox")
}
