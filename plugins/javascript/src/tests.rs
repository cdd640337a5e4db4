use crate::{
    engine::{Ended, Engine, Program},
    files::{Files, Refused, normalize},
    host::native::printed,
};

/// The end of a program, and its output on both streams.
fn run(engine: &Engine, code: &str) -> (Ended, String, String) {
    let ended = engine.execute(&Program {
        code,
        arguments: Vec::new(),
    });
    let (out, err) = printed();
    (ended, out, err)
}

fn prints(code: &str) -> String {
    let (ended, out, err) = run(Engine::new().unwrap(), code);
    assert_eq!((ended, &*err), (Ended::Completed, ""), "{code}");
    out
}

#[test]
fn what_is_random_follows_from_the_seed() {
    let numbers = |seed| {
        let engine = Engine::new().unwrap();
        engine.state().seed(seed);
        run(engine, "console.log(Math.random(), crypto.randomUUID())").1
    };
    assert_eq!(numbers(7), numbers(7));
    assert_ne!(numbers(7), numbers(8));
}

#[test]
fn time_passes_by_sleeping_and_costs_none() {
    let code = "const t = performance.now(); setTimeout(() => console.log(performance.now() - t), 3_600_000);";
    assert_eq!(prints(code), "3600000\n");
}

#[test]
fn arguments_and_the_environment_are_the_runs_own() {
    let engine = Engine::new().unwrap();
    engine.execute(&Program {
        code: "console.log(process.argv.slice(1), process.env, __filename, module.id)",
        arguments: vec!["lib/tool.js".to_owned(), "--fast".to_owned()],
    });
    assert_eq!(
        printed().0,
        "[ '/lib/tool.js', '--fast' ] {} /lib/tool.js .\n"
    );
}

#[test]
fn compiled_modules_are_required_and_imported() {
    let engine = Engine::new().unwrap();
    for (name, source) in [
        ("tests", "exports.check = (f) => f(2) === 4;"),
        (
            "esm",
            "import { sep } from 'path'; export const answer = 42; export default sep;",
        ),
    ] {
        let compiled = engine.compile(name, source).unwrap();
        engine
            .state()
            .compiled
            .borrow_mut()
            .insert(name.to_owned(), compiled);
    }
    let code = "import { check } from 'tests'; import sep, { answer } from 'esm'; console.log(check((x) => x * x), sep, answer);";
    assert_eq!(
        run(engine, code),
        (Ended::Completed, "true / 42\n".to_owned(), String::new())
    );
}

#[test]
fn a_module_that_does_not_parse_is_an_exception_with_its_line() {
    let engine = Engine::new().unwrap();
    let fault = engine
        .compile("tests", "const a = 1;\nconst b = ;")
        .unwrap_err();
    assert_eq!(
        (&*fault.kind, &*fault.message),
        ("SyntaxError", "Unexpected token ';'")
    );
    assert!(
        fault.traceback.contains("/tests.js:2"),
        "{}",
        fault.traceback
    );
    assert_eq!(printed(), (String::new(), String::new()));
}

#[test]
fn modules_of_the_run_are_found_as_node_finds_them() {
    let engine = Engine::new().unwrap();
    for (path, text) in [
        ("/lib/a.js", "exports.a = require('./b').b + 1;"),
        ("/lib/b.js", "exports.b = require('../data.json').n;"),
        ("/data.json", "{\"n\": 41}"),
        ("/m.mjs", "export const m = import.meta ? 1 : 0;"),
    ] {
        engine
            .state()
            .files
            .borrow_mut()
            .place(path, text.as_bytes())
            .unwrap();
    }
    let code = "console.log(require('./lib/a').a); import('./m.mjs').then((m) => console.log(m.m)); \
                try { require('lodash') } catch (error) { console.log(error.code) }";
    assert_eq!(run(engine, code).1, "42\nMODULE_NOT_FOUND\n1\n");
}

#[test]
fn a_program_that_does_not_parse_is_rejected_and_prints_nothing_else() {
    let (ended, out, err) = run(Engine::new().unwrap(), "console.log(1);\nlet = = 3;");
    assert!(matches!(ended, Ended::Rejected(fault) if fault.kind == "SyntaxError"));
    assert_eq!(out, "");
    assert!(err.starts_with("/main.js:2\n"), "{err}");
}

#[test]
fn endless_recursion_is_an_error_that_can_be_caught() {
    let code = "function f() { f(); } try { f(); } catch (error) { console.log(error instanceof RangeError, error.message); }";
    assert_eq!(prints(code), "true Maximum call stack size exceeded\n");
}

#[test]
fn nothing_runs_after_exit() {
    let code = "async function f() { process.exit(2); } f(); console.log('on'); setTimeout(() => console.log('later'));";
    assert_eq!(
        run(Engine::new().unwrap(), code),
        (Ended::Exited(2), String::new(), String::new())
    );
}

#[test]
fn cells_leave_their_names_to_the_next_one() {
    let engine = Engine::new().unwrap();
    let cell = |code: &str| engine.cell(code, "/cell.js");
    let completed = |value: Option<&str>| (Ended::Completed, value.map(str::to_owned), Vec::new());
    assert_eq!(
        cell("let a = 2; const b = 3; function f(x) { return x * a; }"),
        completed(None)
    );
    assert_eq!(cell("f(b)"), completed(Some("6")));
    assert_eq!(
        cell("await Promise.resolve({ a })"),
        completed(Some("{ a: 2 }"))
    );
    let (ended, value, _) = cell("a += 1; throw new TypeError('no')");
    assert!(
        matches!(ended, Ended::Raised(fault) if fault.kind == "TypeError" && fault.message == "no")
    );
    assert_eq!(value, None);
    assert!(matches!(cell("let = ;").0, Ended::Rejected(_)));
    assert_eq!(cell("a"), completed(Some("3")));
    assert_eq!(
        cell("require('path').join('x', 'y')"),
        completed(Some("'x/y'"))
    );
    printed();
}

#[test]
fn a_value_that_knows_its_pictures_shows_them() {
    let engine = Engine::new().unwrap();
    let code = "({ [Symbol.for('Jupyter.display')]: () => ({ 'text/html': '<b>x</b>' }) })";
    let (_, _, displays) = engine.cell(code, "/cell.js");
    assert_eq!(displays, [("text/html".to_owned(), "<b>x</b>".to_owned())]);
    let (_, _, displays) = engine.cell("display('here'); 1", "/cell.js");
    assert_eq!(displays, [("text/plain".to_owned(), "here".to_owned())]);
}

#[test]
fn files_stay_within_their_limit_and_their_tree() {
    let mut files = Files::default();
    files.limit(10);
    files.write("/a", b"12345678", false).unwrap();
    assert_eq!(files.write("/b", b"123", false), Err(Refused::Full));
    // Replacing a file frees its space.
    files.write("/a", b"1234567890", false).unwrap();
    assert_eq!(files.write("/a", b"1", true), Err(Refused::Full));
    files.remove("/a").unwrap();
    assert_eq!(files.write("/none/b", b"1", false), Err(Refused::Missing));
    assert_eq!(files.write("/tmp", b"1", false), Err(Refused::Directory));
    assert_eq!(normalize("/a/b", "../../../c/./d"), "/c/d");
}

const DICE: &str = r"
import { Failure, data, init } from 'rlf';
import { twice } from './more.js';

let sides = 6;
init((config) => { sides = config.sides ?? sides; });

/**
 * Rolls dice.
 * @tool
 * @param {integer} count How many.
 */
export async function roll(count) {
  if (count < 1) throw new Failure('roll one at least');
  console.log('rolling');
  await new Promise((resolve) => { setTimeout(resolve, 1000); });
  setInterval(() => {}, 1);
  return twice(count * sides) + new TextDecoder().decode(data('words').get('a.txt'));
}

/** @tool */
export function crash() { return nothing.there; }

/** @tool */
export function hang() { return new Promise(() => {}); }
";

#[test]
fn a_plugin_reaches_its_gates() {
    let source = r"
        import { callTool, fetch } from 'rlf';
        /** @tool */
        export function reach() { return callTool('other', {}).text; }
        /** @tool */
        export function get() { return fetch('https://a').text(); }
    ";
    let engine = plugin(source).unwrap();
    let (_, reached) = asked(engine, "reach", "{}");
    assert!(reached.contains("35 bytes"), "{reached}");
    let (_, refused) = asked(engine, "get", "{}");
    assert!(refused.contains(r#""kind":"internal""#), "{refused}");
    _ = printed();
}

fn plugin(source: &str) -> Result<&'static Engine, String> {
    let engine = Engine::new().unwrap();
    let config = format!(
        r#"{{"plugin": {{"file": "dice.js", "source": {source:?}, "beside": {{"more.js": "export const twice = (n) => n * 2;"}}, "config": {{"sides": 4}}}}}}"#
    );
    engine.configure(&config).map(|()| engine)
}

fn asked(engine: &Engine, tool: &str, arguments: &str) -> (Ended, String) {
    let facts = r#"{"call_id": "a", "attempt": 0, "trajectory_id": "t", "turn": 0, "seed": 1, "budget_ms": 9}"#;
    let (ended, answer) =
        engine.request(&format!("[\"call\", [{tool:?}, {arguments:?}, {facts}]]"));
    (ended, answer.unwrap_or_default())
}

#[test]
fn a_file_is_a_plugin() {
    let engine = plugin(DICE).unwrap();
    assert!(engine.has_plugin());
    let (ended, described) = engine.request("[\"describe\", []]");
    assert_eq!(ended, Ended::Completed);
    let described = described.unwrap();
    assert!(
        described.contains(r#""name":"roll","description":"Rolls dice.""#),
        "{described}"
    );
    assert_eq!(
        asked(engine, "roll", "{\"count\": 2}"),
        (
            Ended::Completed,
            r#"{"answer":{"content":[{"text":"16fox"}],"failed":false,"metrics":[]}}"#.to_owned()
        )
    );
    assert_eq!(printed(), ("rolling\n".to_owned(), String::new()));
    let (_, failed) = asked(engine, "roll", "{\"count\": 0}");
    assert!(
        failed.contains(r#"[{"text":"roll one at least"}],"failed":true"#),
        "{failed}"
    );
    let (_, missing) = asked(engine, "rol", "{}");
    assert!(missing.contains(r#""kind":"not-found""#), "{missing}");
    let (_, crashed) = asked(engine, "crash", "{}");
    assert!(
        crashed.contains("ReferenceError: nothing is not defined"),
        "{crashed}"
    );
    let (_, stack) = printed();
    assert!(stack.contains("/dice.js:22"), "{stack}");
    // No interval is left by an earlier call.
    let (Ended::Raised(fault), _) = asked(plugin(DICE).unwrap(), "hang", "{}") else {
        panic!("it hangs");
    };
    assert!(
        fault.message.contains("nobody settles"),
        "{}",
        fault.message
    );
}

#[test]
fn a_file_that_cannot_be_a_plugin_is_refused_with_its_line() {
    for (source, refusal) in [
        (
            "\nexport const a = ;",
            "dice.js:2: SyntaxError: Unexpected token ';'",
        ),
        (
            "export const a = 1;\n\nnothing();",
            "dice.js:3: ReferenceError: nothing is not defined",
        ),
        (
            "export const a = 1;",
            "dice.js: TypeError: no exported function has @tool",
        ),
        (
            "\n/** @tool\n * @param {Date} day\n */\nexport function f() {}",
            "dice.js:2: f: the type {Date} is not understood",
        ),
        (
            "import x from 'left-pad';",
            "Cannot find package 'left-pad'",
        ),
        (
            "await new Promise(() => {});\nexport const a = 1;",
            "nobody settles",
        ),
        ("export const a = 1; process.exit(3);", "process.exit(3)"),
    ] {
        let Err(said) = plugin(source) else {
            panic!("{source} is loaded")
        };
        assert!(said.contains(refusal), "{source}: {said}");
    }
    printed();
    let engine = Engine::new().unwrap();
    assert!(
        engine
            .configure("{\"a\": 1}")
            .unwrap_err()
            .contains("has none")
    );
    let imported = run(Engine::new().unwrap(), "import 'rlf'").2;
    assert!(imported.contains("Cannot find package 'rlf'"), "{imported}");
}
