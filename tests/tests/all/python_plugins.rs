//! A Python file is a plugin: its functions are tools or rewards, run in the sandbox, with nothing to build.

use std::process::Command;

use rlf_tests::PluginFolder;
use rustix::process::Signal;
use serde_json::{Value, json};

const DICE: &str = r#""""Dice, and what is done with them."""
import random
import rlf

rolled = 0


@rlf.tool
def roll(count: int, sides: int = 6) -> int:
    """Rolls dice and returns the sum.

    Args:
        count: How many dice, 1 to 100.
    """
    global rolled
    if not 1 <= count <= 100:
        raise rlf.Failure("roll 1 to 100 dice")
    rolled += count
    return sum(random.randint(1, sides) for _ in range(count))


@rlf.tool
async def many(counts: list[int]) -> dict[str, int]:
    """Rolls several times."""
    return {"rolled_before": rolled, "sum": sum(roll(count) for count in counts)}


@rlf.tool
def crash(key: str) -> str:
    print("looking it up")
    return {}[key]


@rlf.tool
def compute() -> int:
    while True:
        pass


@rlf.tool
def hoard() -> int:
    return len([0] * 10**9)


@rlf.tool
def look() -> list:
    import os
    # The portable build has the folder "dev", because its /dev/null is an ordinary file.
    return sorted(set(os.listdir("/")) - {"dev"}) + sorted(os.environ)
"#;

fn text(outcome: &Value) -> &Value {
    &outcome["observation"]["content"][0]["text"]
}

#[test]
fn functions_are_tools_with_the_schema_of_their_annotations() {
    let plugins = PluginFolder::new(&[("dice.py", DICE), ("test_dice.py", "import dice")]);
    let listed = plugins.plugin(&["list"]);
    let line = (listed.succeeded().stdout.lines()).find(|line| line.starts_with("dice"));
    assert!(
        line.is_some_and(
            |line| line.contains("Dice, and what is done with them.  tools: roll, many")
        ),
        "{listed}"
    );
    assert!(!listed.stdout.contains("test_dice"), "{listed}");
    let report = plugins
        .plugin(&["inspect", "dice", "--json"])
        .succeeded()
        .json();
    assert_eq!(report["kind"], "tool");
    assert_eq!(
        report["tools"][0]["input-schema"],
        json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "How many dice, 1 to 100."},
                "sides": {"type": "integer", "default": 6},
            },
            "required": ["count"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        report["tools"][0]["description"],
        "Rolls dice and returns the sum."
    );
}

#[test]
fn of_several_plugin_directories_the_first_wins() {
    let tool =
        |says: &str| format!("import rlf\n@rlf.tool\ndef speak() -> str:\n    return {says:?}\n");
    let first = PluginFolder::new(&[("speaker.py", &tool("first"))]);
    let second = PluginFolder::new(&[("speaker.py", &tool("second")), ("dice.py", DICE)]);
    let shipped = first.host.plugins().to_str().unwrap();
    let directories = [first.name(), second.name(), shipped].map(|folder| ["--plugins", folder]);
    let run = |arguments: [&str; 5]| {
        let command = [&arguments[..], directories.as_flattened()].concat();
        first.host.run(command).succeeded().stdout.clone()
    };
    assert_eq!(run(["plugin", "call", "speaker", "speak", "{}"]), "first\n");
    let rolled = run([
        "plugin",
        "call",
        "dice",
        "roll",
        "{\"count\": 1, \"sides\": 1}",
    ]);
    assert_eq!(rolled, "1\n");
}

#[test]
fn a_call_sees_its_seed_and_nothing_of_another_call() {
    let plugins = PluginFolder::new(&[("dice.py", DICE)]);
    let many = |seed: &str| {
        plugins.call(
            "dice",
            "many",
            &json!({"counts": [3, 4]}),
            &["--seed", seed],
        )
    };
    let first = many("1");
    assert_eq!(first["ended"], "ok", "{first}");
    let seen = &first["observation"]["content"][0]["structured"];
    assert_eq!(seen["rolled_before"], 0);
    assert!((7..=42).contains(&seen["sum"].as_i64().expect("a number")));
    assert_eq!(many("1")["observation"], first["observation"]);
    assert!((2..9).any(|seed| many(&seed.to_string())["observation"] != first["observation"]));
}

#[test]
fn every_end_of_a_call_is_told_to_the_model_or_to_the_author() {
    let plugins = PluginFolder::new(&[("dice.py", DICE)]);
    let failed = plugins.call("dice", "roll", &json!({"count": 0}), &[]);
    assert_eq!(failed["ended"], "failed");
    assert_eq!(text(&failed), "roll 1 to 100 dice");
    let wrong = plugins.call("dice", "roll", &json!({"count": "2"}), &[]);
    assert_eq!(wrong["ended"], "invalid-arguments");
    let crashed = plugins.plugin(&["call", "dice", "crash", r#"{"key": "k"}"#]);
    assert_eq!(crashed.code(), Some(1));
    for said in [
        "stdout | looking it up",
        "File \"dice.py\", line 31, in crash",
        "trap error: the tool broke on this call and gave no result",
        "internal: KeyError: 'k'",
    ] {
        assert!(crashed.stderr.contains(said), "{crashed}");
    }
    assert!(!crashed.stderr.contains("rlf_file"), "{crashed}");
    assert_eq!(
        plugins.call("dice", "compute", &json!({}), &[])["ended"],
        "timeout"
    );
    assert_eq!(
        plugins.call("dice", "hoard", &json!({}), &[])["ended"],
        "denied"
    );
    let look = plugins.call("dice", "look", &json!({}), &[]);
    assert_eq!(
        look["observation"]["content"][0]["structured"],
        json!(["tmp"])
    );
}

#[test]
fn what_a_file_prints_while_it_is_loaded_can_go_to_the_null_device() {
    let source = "import contextlib, os, rlf\n\
         with open(os.devnull, 'w') as nothing, contextlib.redirect_stdout(nothing):\n\
         \x20   print('not shown')\n\
         there = os.path.exists(os.devnull)\n\
         @rlf.tool\n\
         def seen() -> list[bool]:\n\
         \x20   return [there, os.path.exists(os.devnull)]\n";
    let plugins = PluginFolder::new(&[("quiet.py", source)]);
    let seen = plugins.call("quiet", "seen", &json!({}), &[]);
    let seen = &seen["observation"]["content"][0]["structured"];
    assert_eq!(*seen, json!([true, true]));
}

#[test]
fn init_reads_configuration_data_and_the_files_beside() {
    let plugins = PluginFolder::new(&[
        (
            "corpus/corpus.py",
            "import rlf, split\n\
             @rlf.init\n\
             def load(config):\n\
             \x20   global lines\n\
             \x20   lines = [line for text in rlf.data('corpus').values() for line in text.decode().splitlines()]\n\
             \x20   lines = lines[: config['limit']]\n\
             @rlf.tool(pure=True)\n\
             def find(query: str) -> list[str]:\n\
             \x20   return [line for line in lines if split.words(query) <= split.words(line)]\n",
        ),
        (
            "corpus/split.py",
            "def words(text):\n    return set(text.lower().split())\n",
        ),
        (
            "corpus/plugin.toml",
            "data = [\"corpus\"]\n[config]\nlimit = 2\n",
        ),
        ("texts/a.txt", "A red fox\n"),
        ("texts/b.txt", "The red bird\nA red rose\n"),
    ]);
    plugins
        .plugin(&["call", "corpus", "find", "{}"])
        .refused_with(&["needs data that is not bound: `corpus`"]);
    let bound = format!("corpus={}", plugins.path().join("texts").display());
    let found = plugins.call(
        "corpus",
        "find",
        &json!({"query": "RED"}),
        &["--data", &bound],
    );
    assert_eq!(
        found["observation"]["content"][0]["structured"],
        json!(["A red fox", "The red bird"]),
        "{found}"
    );
}

#[test]
fn tools_of_other_frameworks_are_loaded_unchanged() {
    let plugins = PluginFolder::new(&[
        (
            "mcp_tools.py",
            "from mcp.server.fastmcp import FastMCP\n\
             mcp = FastMCP('tools')\n\
             @mcp.tool()\n\
             def half(n: int) -> float:\n\
             \x20   '''Halves.'''\n\
             \x20   return n / 2\n",
        ),
        (
            "chain.py",
            "from langchain_core.tools import tool\n\
             from pydantic import BaseModel, Field\n\
             class Args(BaseModel):\n\
             \x20   n: int = Field(ge=0, description='A number')\n\
             @tool('third', args_schema=Args)\n\
             def f(n: int) -> float:\n\
             \x20   '''Divides by three.'''\n\
             \x20   return 9 / n\n",
        ),
        (
            "functions.py",
            "from verl.tools.function_tool import function_tool\n\
             @function_tool('quarter')\n\
             def f(n: float) -> str:\n\
             \x20   '''Divides by four.\n\n    Args:\n        n: A number.\n    '''\n\
             \x20   return str(n / 4)\n",
        ),
    ]);
    for (plugin, tool, n, expected) in [
        ("mcp_tools", "half", 3, "1.5"),
        ("chain", "third", 3, "3.0"),
        (
            "chain",
            "third",
            0,
            "error: ZeroDivisionError: division by zero",
        ),
        ("functions", "quarter", 2, "0.5"),
    ] {
        let outcome = plugins.call(plugin, tool, &json!({"n": n}), &[]);
        assert_eq!(text(&outcome), expected, "{outcome}");
    }
    let refused = plugins.call("chain", "third", &json!({"n": -1}), &[]);
    assert_eq!(refused["ended"], "invalid-arguments");
}

#[test]
fn a_file_that_cannot_be_a_plugin_is_refused_with_its_line() {
    let plugins = PluginFolder::new(&[
        ("syntax.py", "import rlf\ndef f(:\n"),
        ("numbers2.py", "import rlf\nimport numpy\n"),
        ("empty.py", "import rlf\n"),
        (
            "both.py",
            "import rlf\n@rlf.tool\ndef f(): ...\n@rlf.reward\ndef g(trajectory): ...\n",
        ),
        ("stars.py", "import rlf\n@rlf.tool\ndef f(*names): ...\n"),
        ("gates/gates.py", "import rlf\n@rlf.tool\ndef f(): ...\n"),
        ("gates/plugin.toml", "gates = [\"http\"]\n"),
        ("kind/kind.py", "import rlf\n@rlf.tool\ndef f(): ...\n"),
        ("kind/plugin.toml", "kind = \"environment\"\n"),
    ]);
    for (file, said) in [
        ("syntax.py", "syntax.py:2: SyntaxError"),
        (
            "numbers2.py",
            "numbers2.py:2: ModuleNotFoundError: No module named 'numpy'; the sandbox has the standard library, rlf",
        ),
        (
            "empty.py",
            "empty.py: no function has @rlf.tool or @rlf.reward",
        ),
        ("both.py", "put tools and rewards into files of their own"),
        (
            "stars.py",
            "stars.py:2: f: `*` and `**` parameters have no schema",
        ),
        ("gates", "it asks for `http`, which nobody granted"),
        ("kind", "a file in Python is a tool or a reward"),
    ] {
        plugins.check(file).refused_with(&[said]);
    }
    let both = plugins.check("both.py");
    let only_advice = "the tool `f`; put tools and rewards into files of their own";
    assert!(both.refused().ends_with(only_advice), "{both}");
    let file = plugins.path().join("empty.py");
    let file = file.to_str().expect("a plain name");
    let folder = plugins.name();
    let alone = plugins
        .host
        .run(["plugin", "check", file, "--plugins", folder]);
    alone.refused_with(&["the Python interpreter, which runs it, cannot be used: there is none"]);
}

#[test]
fn the_output_of_a_reward_that_fails_is_shown_to_its_author() {
    let plugins = PluginFolder::new(&[(
        "ratio.py",
        "import rlf\n\
         @rlf.reward\n\
         def ratio(trajectory):\n\
         \x20   print('counting')\n\
         \x20   return 1 / 0\n",
    )]);
    let grade = ["grade", "ratio", "--reference=1", "--json"];
    for arguments in [&grade[..3], &grade[..]] {
        let graded = plugins.plugin(arguments);
        assert_eq!(graded.code(), Some(1), "{graded}");
        for said in [
            "stdout | counting\n",
            "stderr | Traceback",
            "File \"ratio.py\", line 5, in ratio",
            "error: `ratio` gives no score: internal: ZeroDivisionError: division by zero",
        ] {
            assert!(graded.stderr.contains(said), "no `{said}`: {graded}");
        }
    }
    let tried = plugins.try_by_hand("ratio", "reference 1\nanswer 1\n");
    assert!(tried.stderr.contains("stdout | counting\n"), "{tried}");
}

#[test]
fn a_new_plugin_in_python_runs_as_it_is() {
    let plugins = PluginFolder::new(&[]);
    let folder = plugins.name();
    let make = |name: &str, kind: &str| {
        let own = ["plugin", "new", name, "--kind", kind, "--in", folder];
        plugins.host.run(own)
    };
    assert!(
        make("words", "tool")
            .succeeded()
            .stdout
            .contains("rlf-host plugin call words words")
    );
    make("right", "reward").succeeded();
    plugins.check_new_plugins();
    make("leads", "agent").succeeded();
    plugins.check_new_agent("leads");
    for name in ["words", "right", "leads"] {
        let tested = Command::new("python3")
            .args(["-m", "unittest"])
            .env("PYTHONPATH", plugins.host.root().join("sdk/python"))
            .current_dir(plugins.path().join(name))
            .output()
            .expect("python3 is there");
        assert!(tested.status.success(), "{name}: {tested:?}");
    }
    make("shelf", "environment").succeeded();
    let file = plugins.path().join("shelf/Shelf.py");
    plugins
        .host
        .run(["env", "check", file.to_str().expect("a plain name")])
        .succeeded();
    make("words", "tool").refused_with(&["exists already"]);
    make("a-b", "tool").refused_with(&["cannot be a Python module: write \"a_b\""]);
    make("import", "tool").refused_with(&["is a word of the language"]);
    make("python", "tool").refused_with(&["is the name of an interpreter"]);
}

const GREET: &str = r#"
import rlf


@rlf.tool
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"
"#;

#[test]
fn a_watched_plugin_is_loaded_and_called_again_when_its_file_is_saved() {
    let plugins = PluginFolder::new(&[("greet.py", GREET)]);
    let call = ["watch", "greet", "greet", r#"{"name": "Ann"}"#];
    let mut watching = plugins.start(&call);
    watching.until("  greet(name: string)");
    watching.until("Hello, Ann!");
    plugins.write("greet.py", &GREET.replace("def greet", "def"));
    let refused = watching.rest_of_line("refused: ");
    assert!(refused.contains("greet.py:6"), "{refused}");
    plugins.write("greet.py", &GREET.replace("Hello", "Good day"));
    watching.until("Good day, Ann!");
    plugins.write("greet.py", &GREET.replace("def greet", "def welcome"));
    watching.until("  welcome(name: string)");
    watching.signal(Signal::INT);
    let ended = watching.wait();
    assert!(ended.code() != Some(101), "{ended}");
}

#[test]
fn calls_and_answers_are_tried_by_hand() {
    let plugins = PluginFolder::new(&[("greet.py", GREET)]);
    let tried = plugins.try_by_hand(
        "greet",
        "# a script\ngreet {\"name\": \"Ann\"}\ncall greet {\"name\": \"Ben\"}\nlist\n",
    );
    let lines: Vec<&str> = tried.succeeded().stdout.lines().skip(1).collect();
    let signature = "  greet(name: string)  Greets somebody.";
    assert_eq!(lines, [signature, "Hello, Ann!", "Hello, Ben!", signature]);

    let tried = plugins.try_by_hand(
        "greet",
        "greet {}\ngreat {}\nanswer 3\nreference 3\nanswer 3\nseed x\n",
    );
    assert_eq!(tried.code(), Some(1), "{tried}");
    let lines: Vec<&str> = tried.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "invalid-arguments: `name` is missing; it must be a string",
            "error: line 2: plugin `greet` has no tool `great`; did you mean `greet`?",
            "error: line 3: `greet` is a tool and grades nothing; `list` shows what it has",
            "error: line 5: `greet` is a tool and grades nothing; `list` shows what it has",
            "error: line 6: write a whole number: seed 7: invalid digit found in string",
        ]
    );

    let early = plugins.try_by_hand("exact-match", "answer 3\n");
    let says = "set what the answer is graded by first: reference \"Paris\"";
    assert!(early.stderr.contains(says), "{early}");
    let lost = plugins.try_by_hand("exact-match", "list\nscore 3\n");
    let is = "exact-match is a reward and has no tools\n";
    assert!(lost.stdout.ends_with(is), "{lost}");
    let advice = "`help` lists the commands";
    assert!(lost.stderr.contains(advice), "{lost}");
    let graded = plugins.try_by_hand(
        "exact-match",
        "reference Paris\nanswer Paris\nanswer Rome\n",
    );
    let lines = graded.succeeded().stdout.lines();
    let matches: Vec<_> = lines
        .filter(|line| line.starts_with("em "))
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(matches, ["1", "0"], "{graded}");
}
