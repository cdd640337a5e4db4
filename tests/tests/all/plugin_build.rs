//! `plugin build` makes one file of a plugin, which works without its source and without an interpreter beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rlf_tests::{Ended, Host, PluginFolder};
use serde_json::{Value, json};

const GREET: &str = r#""""Greets people."""

import words

import rlf


@rlf.init
def begin(config):
    global end
    end = config["end"]


@rlf.tool
def greet(name: str) -> str:
    return words.HELLO + name + end


@rlf.tool
def corpus() -> list[str]:
    return sorted(rlf.data("corpus"))
"#;

const SHELF: &str = r#"
from mcp.server.fastmcp import FastMCP


class Shelf:
    def load_scenario(self, scenario):
        self.books = scenario

    def save_scenario(self):
        return self.books


api = Shelf()
mcp = FastMCP(name="Shelf")


@mcp.tool()
def lend(title: str) -> int:
    api.books[title] -= 1
    return api.books[title]
"#;

const SCENARIOS: &str = r#"[{"id": "lent", "task": {"servers": {"Shelf": {"a": 2}}},
 "calls": [["Shelf-lend", {"title": "a"}]], "expect": {"Shelf": {"a": 1}}}]"#;

/// Plugins, and an empty plugin directory to build into.
struct Folders {
    plugins: PluginFolder,
    built: tempfile::TempDir,
}

impl Folders {
    fn new(files: &[(&str, &str)]) -> Self {
        Self {
            plugins: PluginFolder::new(files),
            built: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn host(&self) -> &Host {
        &self.plugins.host
    }

    fn file(&self, name: &str) -> PathBuf {
        self.built.path().join(name)
    }

    /// Builds a plugin of the folder into the file `name`.
    fn build(&self, source: &str, name: &str, further: &[&str]) -> Ended {
        let source = self.plugins.path().join(source);
        let output = self.file(name);
        let arguments = ["build", text(&source), "--output", text(&output), "--json"];
        self.plugins.plugin(&[&arguments[..], further].concat())
    }

    /// The text that a tool of a built plugin answers. No other plugin is there, and no interpreter.
    fn answer(&self, plugin: &str, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        let folder = text(self.built.path());
        let call = ["call", plugin, tool, &arguments, "--json"];
        let call = [&["plugin"], &call[..], &["--plugins", folder]].concat();
        let outcome = self.host().run(call).succeeded().json();
        outcome["observation"]["content"][0]["text"].clone()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

#[test]
fn a_built_plugin_has_its_source_its_manifest_and_its_interpreter() {
    let folders = Folders::new(&[
        ("greet/greet.py", GREET),
        ("greet/words.py", "HELLO = 'Hello, '"),
        ("greet/plugin.toml", "[config]\nend = '!'\n"),
        (
            "add.js",
            "/** @tool\n * @param {number} a */\nexport function add(a) { return `${a + 1}` }",
        ),
    ]);
    let built = folders.build("greet", "welcome.wasm", &[]);
    let report = built.succeeded().json();
    let bytes = fs::read(folders.file("welcome.wasm")).expect("was written");
    let hash = blake3::hash(&bytes).to_hex().to_string();
    assert_eq!(report["hash"], json!(hash));
    assert_eq!(report["plugin"]["hash"], json!(hash));
    folders.build("add.js", "add.wasm", &[]).succeeded();
    let said = folders.answer("welcome", "greet", &json!({"name": "Ann"}));
    assert_eq!(said, json!("Hello, Ann!"));
    assert_eq!(folders.answer("add", "add", &json!({"a": 2})), json!("3"));
}

#[test]
fn a_built_environment_plays_its_scenarios() {
    let folders = Folders::new(&[
        ("shelf/Shelf.py", SHELF),
        ("shelf/scenarios.json", SCENARIOS),
    ]);
    folders
        .build("shelf", "shelf.wasm", &[])
        .refused_with(&["if it is an environment, add --environment"]);
    folders
        .build("shelf/Shelf.py", "shelf.wasm", &[])
        .refused_with(&["Shelf.py is an environment", "add --environment"]);
    let advice = "use `rlf-host env check ";
    let checked = folders.plugins.check("shelf");
    checked.refused_with(&["there is no .wasm file", advice]);
    let inspected = folders.plugins.plugin(&["inspect", "shelf"]);
    inspected.refused_with(&["there is no plugin `shelf`", advice]);
    let built = folders.build("shelf", "shelf.wasm", &["--environment"]);
    assert_eq!(
        built.succeeded().json()["plugin"]["servers"],
        json!(["Shelf"])
    );
    let file = folders.file("shelf.wasm");
    let check = folders.host().run(["env", "check", text(&file)]);
    assert!(check.succeeded().stdout.contains("lent"), "{check:?}");
}

#[test]
fn what_an_operator_must_give_is_said_and_does_not_stop_a_build() {
    let folders = Folders::new(&[
        ("greet/greet.py", GREET),
        ("greet/words.py", "HELLO = ''"),
        ("greet/plugin.toml", "data = ['corpus']\nconfig.end = ''\n"),
    ]);
    let report = folders.build("greet", "greet.wasm", &[]).succeeded().json();
    assert_eq!(report["needs"]["kind"], json!("data"));
    let corpus = folders.plugins.write("texts/a.txt", "a");
    let binding = format!("corpus={}", text(&corpus));
    let arguments = [
        "call",
        "greet",
        "corpus",
        "--plugins",
        text(folders.built.path()),
    ];
    let call = [&["plugin"], &arguments[..], &["--data", &binding]].concat();
    assert!(
        folders
            .host()
            .run(call)
            .succeeded()
            .stdout
            .contains("a.txt")
    );
}

/// A plugin with a gate.
const ADDS: &str = r#"
import rlf


@rlf.tool
def add(a: int, b: int) -> str:
    return rlf.call_tool("calculate", {"expression": f"{a}+{b}"}).text
"#;

#[test]
fn grants_of_the_source_hold_while_it_is_built_and_grants_of_the_file_hold_for_its_bytes() {
    let folders = Folders::new(&[
        ("add/add.py", ADDS),
        ("add/plugin.toml", "gates = ['tools']\n"),
        ("grants.toml", "[plugins.add]\ntools = ['calculate']\n"),
    ]);
    let untried = folders.build("add", "add.wasm", &[]);
    assert_eq!(untried.succeeded().json()["needs"]["kind"], json!("gates"));
    let config = folders.plugins.path().join("grants.toml");
    let config = text(&config);
    let shipped = text(folders.host().plugins());
    let grant = |folder: &Path| {
        let gate = [
            "plugin", "grant", "add", "--gate", "tools", "--config", config,
        ];
        let directories = ["--plugins", text(folder), "--plugins", shipped];
        let granted = folders.host().run([&gate[..], &directories].concat());
        granted.succeeded();
    };
    grant(folders.plugins.path());
    let tried = folders.build("add", "add.wasm", &["--config", config]);
    assert_eq!(
        tried.succeeded().json()["plugin"]["granted"],
        json!(["tools"])
    );
    grant(folders.built.path());
    let call = || {
        let call = [
            "plugin",
            "call",
            "add",
            "add",
            r#"{"a": 1, "b": 2}"#,
            "--json",
        ];
        // Without the folder of the source.
        let directories = [
            "--plugins",
            text(folders.built.path()),
            "--plugins",
            shipped,
        ];
        let options = ["--config", config];
        folders
            .host()
            .run([&call[..], &directories, &options].concat())
    };
    let outcome = call().succeeded().json();
    assert_eq!(outcome["observation"]["content"][0]["text"], json!("3"));
    // With one more space in the source it is another file.
    let source = folders.plugins.path().join("add/add.py");
    let changed = fs::read_to_string(&source).expect("can be read") + " ";
    fs::write(&source, changed).expect("can be written");
    folders.build("add", "add.wasm", &[]).succeeded();
    call().refused_with(&["its hash is", "grants are withdrawn"]);
}

#[test]
fn a_manifest_beside_a_built_file_replaces_the_one_in_it() {
    let folders = Folders::new(&[
        ("greet/greet.py", GREET),
        ("greet/words.py", "HELLO = 'Hello, '"),
        ("greet/plugin.toml", "config.end = '!'\n"),
    ]);
    let folder = folders.file("greet");
    fs::create_dir(&folder).expect("can be made");
    folders.build("greet", "greet/greet.wasm", &[]).succeeded();
    let ann = json!({"name": "Ann"});
    assert_eq!(folders.answer("greet", "greet", &ann), json!("Hello, Ann!"));
    fs::write(folder.join("plugin.toml"), "config.end = '?'\n").expect("can be written");
    assert_eq!(folders.answer("greet", "greet", &ann), json!("Hello, Ann?"));
}

#[test]
fn a_build_that_cannot_work_is_refused_and_leaves_no_file() {
    let folders = Folders::new(&[
        ("broken.py", "import rlf\n\n1 / 0\n"),
        ("crate/Cargo.toml", "[package]\nname = 'crate'\n"),
    ]);
    folders
        .build("broken.py", "broken.wasm", &[])
        .refused_with(&["broken.py:3: ZeroDivisionError"]);
    assert!(!folders.file("broken.wasm").exists());
    let beside = folders.plugins.path().join("broken.wasm");
    folders
        .build("broken.py", text(&beside), &[])
        .refused_with(&["would be beside its source"]);
    assert!(!beside.exists());
    // The compiler says what is wrong before this program does.
    let unbuilt = folders.build("crate", "crate.wasm", &[]);
    assert!(
        unbuilt.stderr.contains("cargo could not build"),
        "{unbuilt:?}"
    );
    assert!(!folders.file("crate.wasm").exists());
}

#[test]
fn a_file_with_damaged_contents_is_refused_with_the_reason() {
    let folders = Folders::new(&[(
        "one.py",
        "import rlf\n\n@rlf.tool\ndef one() -> int:\n    return 1\n",
    )]);
    folders.build("one.py", "one.wasm", &[]).succeeded();
    let file = folders.file("one.wasm");
    let mut bytes = fs::read(&file).expect("was written");
    // The last byte closes the JSON.
    *bytes.last_mut().expect("is not empty") = b'!';
    fs::write(&file, bytes).expect("can be written");
    folders
        .host()
        .run(["plugin", "check", text(&file)])
        .refused_with(&["what `plugin build` attached to it cannot be read"]);
}

/// The folder of what cargo makes here. It stays, so that dependencies are compiled once.
const TARGET: &str = "target/end-to-end/templates";

#[test]
fn new_plugins_in_rust_pass_their_tests_and_run_once_they_are_built() {
    let plugins = PluginFolder::new(&[]);
    let root = plugins.host.root();
    // The versions of the shipped plugins, which are already here.
    let settings = format!(
        "build.target-dir = {:?}\nnet.offline = true\n",
        text(&root.join(TARGET))
    );
    plugins.write(".cargo/config.toml", &settings);
    let sdk = root.join("sdk/rust");
    for (name, kind) in [
        ("words", "tool"),
        ("right", "reward"),
        ("count", "environment"),
        ("leads", "agent"),
    ] {
        let own = ["plugin", "new", name, "--lang", "rust", "--kind", kind];
        let place = ["--in", plugins.name(), "--sdk", text(&sdk)];
        plugins.host.run([&own[..], &place].concat()).succeeded();
        let folder = plugins.path().join(name);
        fs::copy(root.join("plugins/Cargo.lock"), folder.join("Cargo.lock"))
            .expect("can be copied");
        let built = plugins.plugin(&["build", text(&folder)]);
        assert_eq!(built.code(), Some(0), "{built:?}");
    }
    for name in ["words", "leads"] {
        let tested = Command::new("cargo")
            .args(["test", "--release"])
            .current_dir(plugins.path().join(name))
            .output()
            .expect("cargo is there");
        assert!(tested.status.success(), "{tested:?}");
    }
    plugins.check_new_agent("lead");
    let arguments = json!({"text": "a red fox", "longest": 1});
    let counted = plugins.call("words", "count", &arguments, &[]);
    let expected = json!({"words": 3, "longest": ["fox"]});
    assert_eq!(counted["observation"]["content"][0]["structured"], expected);
    let grade = [
        "grade",
        "right",
        "--answer=Paris",
        "--reference=Paris",
        "--json",
    ];
    assert_eq!(plugins.plugin(&grade).json()["terms"]["right"], json!(1.0));
    let count = plugins.path().join("count");
    plugins.host.run(["env", "check", text(&count)]).succeeded();
}
