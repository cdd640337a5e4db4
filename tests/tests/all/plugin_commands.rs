//! `rlf-host plugin`: an author lists, inspects, calls and checks plugins without training.

use std::fs;

use rlf_tests::Host;
use serde_json::{Value, json};

#[test]
fn the_calculator_computes() {
    let printed = Host::new().plugin([
        "call",
        "calculator",
        "calculate",
        r#"{"expression": "(2+3)*4"}"#,
    ]);
    assert_eq!(printed.succeeded().stdout, "20\n");
    assert_eq!(printed.stderr, "");
}

#[test]
fn a_call_as_json_says_how_it_ended_and_what_was_seen() {
    let host = Host::new();
    let outcome = host
        .plugin([
            "call",
            "calculator",
            "calculate",
            r#"{"expression": "1/3"}"#,
            "--json",
        ])
        .succeeded()
        .json();
    assert_eq!(outcome["name"], "calculate");
    assert_eq!(outcome["ended"], "ok");
    assert_eq!(
        outcome["observation"],
        json!({"content": [{"text": "0.333333333333"}], "failed": false})
    );
    let listed = host
        .plugin(["inspect", "calculator", "--json"])
        .succeeded()
        .json();
    assert_eq!(outcome["component"], listed["hash"]);
}

#[test]
fn a_wrong_expression_fails_and_says_where() {
    for (expression, said) in [
        ("2+*4", "error at character 3: expected a number, found `*`"),
        ("1/0", "error at character 2: division by zero"),
    ] {
        let arguments = json!({ "expression": expression }).to_string();
        let printed = Host::new().plugin(["call", "calculator", "calculate", &arguments]);
        assert_eq!(printed.code(), Some(1), "{printed}");
        assert_eq!(printed.stdout, "", "{printed}");
        assert_eq!(printed.stderr, format!("failed {said}\n"), "{printed}");
    }
}

#[test]
fn wrong_arguments_are_named_before_the_tool_runs() {
    let host = Host::new();
    let outcome = host.plugin([
        "call",
        "calculator",
        "calculate",
        r#"{"expr": 1}"#,
        "--json",
    ]);
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    let outcome = outcome.json();
    assert_eq!(outcome["ended"], "invalid-arguments");
    assert_eq!(
        outcome["observation"]["content"][0]["text"],
        "error: invalid arguments: `expression` is missing; it must be a string"
    );
    host.plugin(["call", "calculator", "calculate", "2+3"])
        .refused_with(&["the arguments"]);
    host.plugin(["call", "calculator", "calculate", "not json"])
        .refused_with(&["not JSON", "not json"]);
}

#[test]
fn an_unknown_name_suggests_the_nearest_one() {
    let host = Host::new();
    host.plugin(["call", "calculatr", "calculate"])
        .refused_with(&["calculatr", "did you mean `calculator`?"]);
    host.plugin(["call", "calculator", "calcualte"])
        .refused_with(&[
            "plugin `calculator` has no tool `calcualte`",
            "did you mean `calculate`?",
        ]);
    host.plugin(["inspect", "exact-mach"])
        .refused_with(&["exact-mach", "did you mean `exact-match`?"]);
    host.plugin(["call", "exact-match", "em"])
        .refused_with(&["is a reward and has no tools"]);
}

#[test]
fn the_list_has_every_first_party_plugin_and_says_what_those_without_data_need() {
    let host = Host::new();
    let listed = host.plugin(["list"]);
    let text = &listed.succeeded().stdout;
    for (name, kind) in [
        ("calculator", "tool"),
        ("exact-match", "reward"),
        ("format", "reward"),
        ("numeric-match", "reward"),
        ("python", "interpreter"),
        ("tool-use", "reward"),
    ] {
        let line = text
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name))
            .unwrap_or_else(|| panic!("no {name}: {listed}"));
        assert_eq!(line.split_whitespace().nth(1), Some(kind), "{line}");
    }
    for (name, slot) in [("lookup", "table"), ("search", "corpus")] {
        let mend = format!("[plugins.{name}] data.{slot} = \"path/to/{slot}\"");
        assert!(text.contains(&mend), "no `{mend}`: {listed}");
    }

    let listed = host.plugin(["list", "--json"]).succeeded().json();
    let names = |key: &str, name: &str| -> Vec<Value> {
        let all = listed[key].as_array().expect("is a list").iter();
        let names = all.map(|plugin| plugin[name].clone());
        // Missing on machines that cannot build it.
        names
            .filter(|name| name != "javascript" && name != "reward-sql-result")
            .collect()
    };
    assert_eq!(
        names("plugins", "name"),
        [
            "calculator",
            "exact-match",
            "format",
            "numeric-match",
            "python",
            "reward-envfactory",
            "reward-ftrl",
            "reward-verdict",
            "tool-use"
        ]
    );
    assert_eq!(
        names("problems", "plugin"),
        [
            "extract",
            "lookup",
            "research",
            "reward-code-tests",
            "reward-judge",
            "search",
            "specified",
            "summarise",
            "tau-retail"
        ]
    );
}

#[test]
fn inspect_tells_on_one_screen_what_a_plugin_is_and_costs() {
    let host = Host::new();
    let text = host.plugin(["inspect", "calculator"]);
    let text = &text.succeeded().stdout;
    for part in [
        "calculator, a tool (world tool-plugin)",
        "tools      calculate(expression: string)",
        "says it is read-only, idempotent, deterministic",
        "rlf:plugin/tool@0.1.0",
        "asks for   nothing",
        "granted    nothing: no configuration was named",
        " cpu_ms            2,000 ms",
        " memory_bytes      128 MiB",
        "init       ran once",
        "not pinned",
        " us, the median of ",
    ] {
        assert!(text.contains(part), "no `{part}`: {text}");
    }
    assert!(text.lines().count() <= 40, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(
        !text.contains("* by default"),
        "a limit that is the default is marked: {text}"
    );

    let report = host
        .plugin(["inspect", "calculator", "--json"])
        .succeeded()
        .json();
    let tool = &report["tools"][0];
    assert_eq!(tool["name"], "calculate");
    assert_eq!(tool["input-schema"]["required"], json!(["expression"]));
    let component = host.plugins().join("calculator/calculator.wasm");
    let bytes = fs::metadata(component).expect("is built").len();
    assert_eq!(report["bytes"], bytes);
    assert_eq!(
        (&report["entry"], &report["settings"]),
        (&Value::Null, &json!([]))
    );
    let instance = &report["instance"];
    assert!(instance["measured"].as_u64() >= Some(1), "{report}");
    assert!(instance["median_us"].as_f64() > Some(0.0), "{report}");
    assert!(
        instance["memory_bytes"].as_u64() >= Some(65_536),
        "{report}"
    );
}

#[test]
fn inspect_names_the_line_that_grants_each_thing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = folder.path().join("table.csv");
    fs::write(&table, "name,capital\nNorway,Oslo\n").expect("can be written");
    let config = folder.path().join("ops.toml");
    let path = config.to_str().expect("a plain name");
    let inspect = |text: &str| {
        fs::write(&config, text).expect("can be written");
        Host::new().plugin(["inspect", "lookup", "--config", path])
    };
    for (text, lines) in [
        (
            "[plugins.lookup]\nretries = 0\ndata.table = \"table.csv\"\n[plugins.lookup.limits]\nwall_ms = 20_000\n\
             [plugins.lookup.rename]\nlookup = \"find\"\n[plugins.lookup.files]\nbytes = 4096\n",
            [2, 3, 5, 7, 9],
        ),
        (
            "plugins.lookup = { retries = 0,\n  data = { table = \"table.csv\" },\n  limits.wall_ms = 20_000,\n\
             rename = { lookup = \"find\" }, files = { bytes = 4096 } }\n",
            [1, 2, 3, 4, 4],
        ),
        (
            "seed = 1\n[plugins]\nlookup.retries = 0\nlookup.data.table = \"table.csv\"\nlookup.limits.wall_ms = 20_000\n\
             lookup.rename.lookup = \"find\"\nlookup.files.bytes = 4096\n[rl]\n",
            [3, 4, 5, 6, 7],
        ),
    ] {
        let inspected = inspect(text);
        let seen = &inspected.succeeded().stdout;
        let settings = [
            "retries = 0",
            "data.table = \"table.csv\"",
            "limits.wall_ms = 20000",
            "rename.lookup = \"find\"",
            "files.bytes = 4096",
        ];
        // A long path of a temporary folder breaks rows, at spaces.
        let flat = seen.split_whitespace().collect::<Vec<_>>().join(" ");
        for (line, setting) in lines.into_iter().zip(settings) {
            let row = format!("{path}:{line} {setting}");
            assert!(flat.contains(&row), "no `{row}`: {seen}");
        }
        for part in [
            "find(entity: string, column: \"capital\")",
            "*wall_ms           20,000 ms",
            "* by default wall_ms 10,000 ms",
            "scratch files at /work: 4 KiB,",
        ] {
            assert!(
                flat.contains(&part.split_whitespace().collect::<Vec<_>>().join(" ")),
                "no `{part}`: {seen}"
            );
        }
    }
    let other = inspect("[plugins.search]\nretries = 0\n");
    assert!(
        other
            .stdout
            .contains(&format!("nothing: no entry in {path}"))
            || other
                .stdout
                .replace('\n', " ")
                .contains("nothing: no entry in"),
        "{other}"
    );
    // It does not load without its table, but the facts from its files are shown.
    assert!(other.stdout.contains("asks for   data table"), "{other}");
    other.refused_with(&["it needs data that is not bound: `table`"]);

    let report = Host::new().plugin([
        "inspect",
        "lookup",
        "--json",
        "--data",
        &format!("table={}", table.display()),
    ]);
    let report = report.succeeded().json();
    assert_eq!(report["settings"][0]["key"], "data.table");
    assert_eq!(report["settings"][0]["at"], "--data");
}

#[test]
fn data_that_lies_in_a_run_is_said_to_and_no_slot_goes_unbound_in_silence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("ops.toml");
    fs::write(
        &config,
        "[plugins.lookup]\ndata.table = \"run:facts.csv\"\n",
    )
    .expect("is written");
    let path = config.to_str().expect("a plain name");
    let host = Host::new();
    let place = format!("({path}:2)");
    host.plugin(["call", "lookup", "lookup", "--config", path])
        .refused_with(&["`run:facts.csv`", &place, "--data table=RUN/data/facts.csv"]);
    let listed = host.plugin(["list", "--config", path]);
    assert!(
        listed
            .succeeded()
            .stdout
            .contains("--data table=RUN/data/facts.csv"),
        "{listed}"
    );
    let table = folder.path().join("facts.csv");
    fs::write(&table, "name,capital\nNorway,Oslo\n").expect("can be written");
    let arguments = r#"{"entity": "Norway", "column": "capital"}"#;
    let data = format!("table={}", table.display());
    let found = host.plugin([
        "call", "lookup", "lookup", arguments, "--config", path, "--data", &data,
    ]);
    assert_eq!(found.succeeded().stdout, "Oslo\n");
}

#[test]
fn a_misspelt_table_of_grants_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("ops.toml");
    fs::write(&config, "[plugin.calculator]\nretries = 0\n").expect("is written");
    let path = config.to_str().expect("a plain name");
    Host::new()
        .plugin(["inspect", "calculator", "--config", path])
        .refused_with(&[&format!(
            "{path}:1: unknown key `plugin`; did you mean `plugins`?"
        )]);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let host = Host::new();
    host.run(["plugin", "list", "--plugins", "no/such/folder"])
        .refused_with(&["--plugins no/such/folder: there is no such folder"]);
    host.run_with_shipped("no/such/folder", ["plugin", "list"])
        .refused_with(&[
            "no/such/folder: cannot read the plugin directory",
            "--plugins DIR",
            "RLF_PLUGINS is set, so shipped plugins are looked for only in no/such/folder",
        ]);
    let listed = host.run_with_shipped("no/such/folder", ["plugin", "list", "--json"]);
    assert_eq!(listed.code(), Some(1), "{listed}");
    assert_eq!(listed.json()["problems"][0]["path"], "no/such/folder");
    let call = ["plugin", "call", "calculator", "calculate", "{}"];
    host.run_with_shipped("", call)
        .refused_with(&["there is no plugin `calculator`: RLF_PLUGINS is set but empty"]);
}

#[test]
fn what_a_plugin_prints_is_shown_to_its_author_and_is_no_part_of_its_result() {
    let host = Host::with_test_plugins();
    let arguments =
        r#"{"stdout": "hello\nthere\u001b[2J", "stderr": "careful", "then_loop": false}"#;
    let called = host.plugin(["call", "misbehave", "print", arguments]);
    assert!(!called.succeeded().stdout.contains("hello"), "{called}");
    assert_eq!(
        called.stderr,
        "stdout | hello\nstdout | there\u{241b}[2J\nstderr | careful\n"
    );
    let called = host.plugin(["call", "misbehave", "print", arguments, "--json"]);
    let called = called.succeeded().json();
    assert_eq!(called["printed"]["stdout"], "hello\nthere\u{241b}[2J");
    assert_eq!(called["printed"]["stderr"], "careful");
    assert!(
        !called["observation"].to_string().contains("hello"),
        "{called}"
    );

    let panicked = host.plugin(["call", "misbehave", "panic"]);
    assert_eq!(
        panicked.stderr.matches("a panic in a guest").count(),
        1,
        "{panicked}"
    );
    assert!(!panicked.stderr.contains("WARN"), "{panicked}");
}

#[test]
fn search_finds_passages_in_a_corpus_bound_on_the_command_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let corpus = folder.path().join("corpus.jsonl");
    let passages = [
        json!({"title": "Oslo", "text": "Oslo is the capital of Norway."}),
        json!({"title": "Rome", "text": "Rome is the capital of Italy and lies on the Tiber."}),
    ];
    fs::write(&corpus, passages.map(|p| p.to_string()).join("\n")).expect("can be written");
    let data = format!("corpus={}", corpus.display());
    let printed = Host::new().plugin([
        "call",
        "search",
        "search",
        r#"{"query": "a city on the Tiber", "top_k": 1}"#,
        "--data",
        &data,
    ]);
    assert_eq!(
        printed.succeeded().stdout,
        "[1] Rome\nRome is the capital of Italy and lies on the Tiber.\n"
    );
}

#[test]
fn lookup_reads_a_table_bound_on_the_command_line_and_puts_its_columns_into_the_schema() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = folder.path().join("table.csv");
    fs::write(
        &table,
        "name,capital,area\nNorway,Oslo,385207\nItaly,Rome,301340\n",
    )
    .expect("can be written");
    let data = format!("table={}", table.display());
    let call = |arguments: &str| {
        Host::new().plugin([
            "call", "lookup", "lookup", arguments, "--data", &data, "--json",
        ])
    };
    let found = call(r#"{"entity": "Italy", "column": "area"}"#);
    let seen = |outcome: &Value| outcome["observation"]["content"][0]["text"].clone();
    assert_eq!(seen(&found.succeeded().json()), "301340");

    let column = call(r#"{"entity": "Italy", "column": "arae"}"#);
    assert_eq!(column.code(), Some(1), "{column}");
    let column = column.json();
    assert_eq!(column["ended"], "invalid-arguments");
    assert_eq!(
        seen(&column),
        r#"error: invalid arguments: `column` must be one of "capital", "area", got "arae""#
    );

    let entity = call(r#"{"entity": "Norwy", "column": "area"}"#);
    assert_eq!(entity.code(), Some(1), "{entity}");
    let entity = entity.json();
    assert_eq!(entity["ended"], "failed");
    let text = seen(&entity).to_string();
    assert!(text.contains("Norway"), "no suggestion: {text}");
}

#[test]
fn data_that_is_not_there_is_named() {
    Host::new()
        .plugin([
            "call",
            "search",
            "search",
            r#"{"query": "x"}"#,
            "--data",
            "corpus=no/such/corpus.jsonl",
        ])
        .refused_with(&["search", "no/such/corpus.jsonl"]);
}

#[test]
fn what_is_no_component_is_refused_with_what_it_is() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let component = fs::read(host.plugins().join("calculator/calculator.wasm")).expect("is built");
    for (name, content, said) in [
        ("text.wasm", &b"this is text"[..], "not"),
        ("empty.wasm", b"", "not"),
        (
            "core.wasm",
            b"\0asm\x01\0\0\0",
            "a core module, not a component; build it with `cargo build --target wasm32-wasip2`",
        ),
        (
            "short.wasm",
            &component[..component.len() / 2],
            "damaged: unexpected end-of-file",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("can be written");
        let path = path.display().to_string();
        host.plugin(["check", &path]).refused_with(&[&path, said]);
        let problem = host.plugin(["check", &path, "--json"]);
        assert_eq!(problem.code(), Some(1), "{problem}");
        assert_eq!(problem.json()["ok"], false, "{problem}");
    }
    let missing = folder.path().join("missing.wasm").display().to_string();
    host.plugin(["check", &missing])
        .refused_with(&[&missing, "No such file"]);
}

#[test]
fn a_sound_plugin_passes_the_check() {
    let host = Host::new();
    let folder = host.plugins().join("calculator").display().to_string();
    let checked = host.plugin(["check", &folder, "--json"]).succeeded().json();
    assert_eq!(checked["ok"], true);
    assert_eq!(checked["plugin"]["tools"][0]["name"], "calculate");
}

#[test]
fn one_broken_plugin_does_not_stop_the_others() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["good", "broken"] {
        fs::create_dir(folder.path().join(name)).expect("can be made");
    }
    let good = folder.path().join("good");
    for file in ["calculator.wasm", "plugin.toml"] {
        let from = host.plugins().join("calculator").join(file);
        fs::copy(from, good.join(file)).expect("can be copied");
    }
    fs::write(folder.path().join("broken/plugin.toml"), "kind = \"toool\"").expect("is written");
    let directory = folder.path().display().to_string();
    let listed = host
        .run(["plugin", "list", "--json", "--plugins", &directory])
        .succeeded()
        .json();
    assert_eq!(listed["plugins"][0]["tools"][0]["name"], "calculate");
    assert_eq!(listed["problems"][0]["plugin"], "broken");
    let what = listed["problems"][0]["what"].to_string();
    assert!(what.contains("toool"), "{what}");
}

#[test]
fn a_reader_who_goes_away_is_no_reason_to_panic() {
    let host = Host::new();
    let plugins = host.plugins().to_string_lossy().into_owned();
    let unread = host.run_unread(["plugin", "inspect", "calculator", "--plugins", &plugins]);
    assert_eq!(unread.stderr, "status 0\n");
}

#[test]
fn a_grant_is_written_where_it_is_read_and_the_rest_of_the_file_stays() {
    let host = Host::with_test_plugins();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("operator.toml");
    let text = "# ours\n[plugins.fetch]\nretries = 0 # once is enough\n\n[plugins.fetch.http.hosts.localhost]\nscheme = \"http\"\n";
    fs::write(&config, text).expect("can be written");
    let path = config.to_str().expect("a plain name");
    let grant = |further: &[&str]| {
        let fixed = ["grant", "fetch", "--config", path];
        host.plugin(fixed.iter().chain(further).copied())
    };
    host.plugin(["inspect", "fetch", "--config", path])
        .refused_with(&["nobody granted"]);
    grant(&["--gate", "htpt"]).refused_with(&["does not ask for the gate `htpt`", "http"]);
    assert_eq!(fs::read_to_string(&config).expect("is there"), text);

    let granted = grant(&["--gate", "http"]);
    assert!(
        granted.succeeded().stdout.contains("gates   http"),
        "{granted}"
    );
    let written = fs::read_to_string(&config).expect("is there");
    assert!(
        written.starts_with("# ours\n[plugins.fetch]\nretries = 0 # once is enough\nhash = \""),
        "{written}"
    );
    assert!(written.contains("grants = [\"http\"]"), "{written}");
    let again = grant(&["--gate", "http", "--json"]).succeeded().json();
    assert_eq!(again["granted"], json!(["http"]));
    assert_eq!(again["hash"], again["hash_before"]);
    let inspected = host.plugin(["inspect", "fetch", "--config", path, "--json"]);
    let inspected = inspected.succeeded().json();
    assert_eq!(inspected["granted"], json!(["http"]));
    assert_eq!(inspected["pinned"], true);

    // If the same component is granted again, its gates stay open.
    let renewed = grant(&[]);
    assert!(
        renewed.succeeded().stdout.contains("gates   http"),
        "{renewed}"
    );
    let written = fs::read_to_string(&config).expect("is there");
    assert!(written.contains("grants = [\"http\"]"), "{written}");

    // Gates that were open to another component are closed, and the output says so.
    let hash = again["hash"].as_str().expect("a hash");
    let other = written.replace(hash, &"ab".repeat(32));
    fs::write(&config, other).expect("can be written");
    let renewed = grant(&[]);
    for said in [
        "closed, because they were open to another component: http",
        "not opened here, though it asks for: http",
    ] {
        assert!(renewed.succeeded().stdout.contains(said), "{renewed}");
    }
    let written = fs::read_to_string(&config).expect("is there");
    assert!(!written.contains("grants"), "{written}");

    let new = folder.path().join("new.toml");
    let file = new.to_str().expect("a plain name");
    host.plugin(["grant", "fetch", "--gate", "http", "--config", file])
        .succeeded();
    let written = fs::read_to_string(&new).expect("was made");
    assert!(
        written.starts_with("[plugins.fetch]\nhash = \""),
        "{written}"
    );
}

#[test]
fn a_grant_says_what_is_still_to_be_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plugin = folder.path().join("runner");
    fs::create_dir(&plugin).expect("can be made");
    let built = Host::with_test_plugins();
    fs::copy(
        built.plugins().join("misbehave/misbehave.wasm"),
        plugin.join("runner.wasm"),
    )
    .expect("can be copied");
    fs::write(plugin.join("plugin.toml"), "gates = [\"execute\"]\n").expect("is written");
    let config = folder.path().join("ops.toml");
    let grant = |text: &str| {
        fs::write(&config, text).expect("is written");
        let (plugins, config) = (folder.path().display(), config.display());
        let fixed =
            format!("plugin grant runner --gate execute --plugins {plugins} --config {config}");
        built.run(fixed.split(' ')).succeeded().stdout.clone()
    };
    let said = "still to be written in [plugins.runner]: `execute = [\"python\"]`: the interpreters that it may run";
    let granted = grant("");
    assert!(granted.contains(said), "{granted}");
    let granted = grant("[plugins.runner]\nexecute = [\"toy\"]\n");
    assert!(!granted.contains("still to be written"), "{granted}");
}

#[test]
fn bench_measures_whole_calls_of_a_tool_and_of_a_reward() {
    let calls = Host::new()
        .plugin([
            "bench",
            "calculator",
            "calculate",
            r#"{"expression": "1+1"}"#,
            "--seconds=1",
            "--json",
        ])
        .succeeded()
        .json();
    let of = |key: &str| calls[key].as_f64().unwrap();
    assert!(of("p50_us") <= of("p99_us"), "{calls}");
    // One caller cannot make more calls than its time has room for.
    assert!(of("calls") * of("p50_us") < 4e6, "{calls}");
    assert!(of("calls_per_second") >= 1.0, "{calls}");
    let printed = Host::new().plugin([
        "bench",
        "exact-match",
        "--answer=Paris",
        "--reference=Paris",
        "--seconds=1",
    ]);
    let graded = printed.succeeded();
    assert!(
        graded.stdout.starts_with("one answer graded, median"),
        "{graded}"
    );
    assert!(graded.stdout.contains("32 at once"), "{graded}");
}

#[test]
fn bench_says_what_it_cannot_measure() {
    for (arguments, said) in [
        (
            vec!["calculator", "calculate", r#"{"expression": "1+"}"#],
            "the call of `calculate` gives no result to measure: failed error at character 3",
        ),
        (
            vec!["calculator", "calculat"],
            "has no tool `calculat`; did you mean `calculate`?",
        ),
        (
            vec!["calculator", "--reference=2"],
            "`calculator` is a tool; only rewards take --reference",
        ),
        (
            vec!["exact-match"],
            "`exact-match` is a reward: give it something to grade, with --answer and --reference",
        ),
        (
            vec!["tool-use"],
            "`tool-use` is a reward: give it something to grade",
        ),
    ] {
        let printed = Host::new().plugin([vec!["bench"], arguments].concat());
        assert_eq!(printed.code(), Some(1), "{printed}");
        assert!(printed.stderr.contains(said), "{printed}");
    }
}

#[test]
fn inspect_shows_the_limits_of_programs_of_an_interpreter() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("ops.toml");
    let path = config.to_str().expect("a plain name");
    fs::write(
        &config,
        "[plugins.toy]\nprograms.time_ms = 3_000\nlimits.log_lines = 7\n",
    )
    .expect("is written");
    let host = Host::with_test_plugins();
    let inspected = host.plugin(["inspect", "toy", "--config", path]);
    let text = &inspected.succeeded().stdout;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "toy, an interpreter (world interpreter-plugin)",
        "programs *time_ms 3,000 ms",
        " deadline_ms 120,000 ms",
        " memory_bytes 256 MiB",
        " output_bytes 64 KiB",
        " file_bytes 16 MiB",
        "* by default time_ms 10,000 ms",
        "*log_lines 7",
        "* by default log_lines 100",
    ] {
        assert!(flat.contains(part), "no `{part}`: {text}");
    }
    // `limits` leaves out the keys that `programs` sets for programs.
    for key in ["wall_ms", "cpu_ms"] {
        assert!(!text.contains(key), "`{key}`: {text}");
    }
    assert_eq!(text.matches("memory_bytes").count(), 1, "{text}");
    let report = host.plugin(["inspect", "toy", "--config", path, "--json"]);
    assert_eq!(report.json()["programs"]["time_ms"], 3_000);
    let tool = host.plugin(["inspect", "misbehave", "--json"]);
    assert_eq!(tool.json()["programs"], Value::Null);
}

#[test]
fn the_machines_clock_is_there_when_it_is_asked_for_and_granted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plugin = folder.path().join("misbehave");
    fs::create_dir(&plugin).expect("can be made");
    let built = Host::with_test_plugins();
    fs::copy(
        built.plugins().join("misbehave/misbehave.wasm"),
        plugin.join("misbehave.wasm"),
    )
    .expect("can be copied");
    fs::write(
        plugin.join("plugin.toml"),
        "gates = [\"real-clock\", \"real-random\"]\n",
    )
    .expect("is written");
    let config = folder.path().join("ops.toml");
    fs::write(&config, "").expect("is written");
    let run = |arguments: &[&str]| {
        let plugins = folder.path().to_str().expect("a plain name");
        let config = config.to_str().expect("a plain name");
        let fixed = ["plugin", "--plugins", plugins, "--config", config];
        built.run(fixed.iter().chain(arguments))
    };
    run(&["call", "misbehave", "read_clock"])
        .refused_with(&["it asks for `real-clock`, `real-random`, which nobody granted"]);
    run(&["grant", "misbehave", "--gate", "real-clock"]).succeeded();
    run(&["call", "misbehave", "read_clock"])
        .refused_with(&["it asks for `real-random`, which nobody granted"]);
    let gates = ["--gate", "real-clock", "--gate", "real-random"];
    run(&[&["grant", "misbehave"][..], &gates].concat()).succeeded();
    let inspected = run(&["inspect", "misbehave"]);
    for part in ["the machine's clock", "the machine's entropy"] {
        assert!(inspected.succeeded().stdout.contains(part), "{inspected}");
    }
    let clock = run(&["call", "misbehave", "read_clock"]);
    let clock: Value = clock.succeeded().json();
    // Virtual time starts in 2024.
    let year = 365 * 86_400 * 1_000_000_000_u64;
    assert!(
        clock["wall"][0].as_u64() > Some(1_704_067_200_000_000_000 + year),
        "{clock}"
    );
}

#[test]
fn names_in_a_strangers_files_cannot_steer_the_terminal() {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let plugin = |name: &str, manifest: &str| {
        let folder = directory.path().join(name);
        fs::create_dir(&folder).expect("can be made");
        fs::write(folder.join("plugin.toml"), manifest).expect("can be written");
    };
    plugin("key", "\"un\\u001b[31mknown\" = 1\n");
    plugin("file", "component = \"a\\u001b[31m\\nb\\u202e.wasm\"\n");
    plugin("\u{1b}]0;pwned\u{7}", "");
    let path = directory.path().to_str().expect("a plain name");
    let said = |words: &[&str]| {
        let fixed = ["plugin", "--plugins", path];
        let ended = Host::new().run(fixed.iter().chain(words).copied());
        ended.stdout + &ended.stderr
    };
    for words in [
        &["list"][..],
        &["inspect", "key"],
        &["inspect", "file"],
        &["call", "key", "x"],
    ] {
        let said = said(words);
        assert!(!said.is_empty(), "{words:?}");
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(steers), "{words:?}: {said:?}");
    }
    // One line for the problem, one for the remedy.
    assert_eq!(said(&["list"]).lines().count(), 6);
}
