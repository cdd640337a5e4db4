//! `rlf-host ablate`: variants of one configuration, trained from the same seeds and compared.

use rlf_tests::Experiment;

#[test]
fn variants_are_trained_once_and_compared() {
    let experiment = Experiment::tiny().with_toml(
        "ablate.both.set = []
        ablate.answers.set = [\"rewards.stack=[{plugin='exact-match', weights={em=1.0}}]\"]",
    );
    let config = experiment.write("config.toml", experiment.text());
    let (config, runs) = (config.display().to_string(), experiment.path("runs"));
    let (runs_name, plugins) = (runs.display().to_string(), experiment.host().plugins());
    let plugins = plugins.display().to_string();
    let ablate = |further: &[&str]| {
        let own = [
            "ablate",
            &config,
            "--plugins",
            &plugins,
            "--output",
            &runs_name,
        ];
        experiment.host().run([&own[..], further].concat())
    };
    let unknown = ablate(&["--only", "neither"]);
    unknown.refused_with(&["there is no such variant; there are: answers, both"]);

    ablate(&["--seeds", "1,2,1"]).refused_with(&["--seeds names 1 twice"]);

    let first = ablate(&["--seeds", "1,2", "--json"]);
    // Progress is told on standard error.
    assert!(
        first.stderr.contains("variant both, seed 2 (4 of 4)"),
        "{first}"
    );
    let table: serde_json::Value = serde_json::from_str(&first.succeeded().stdout).expect("JSON");
    for variant in ["answers", "both"] {
        let row = &table[variant];
        assert_eq!(row["sampled"].as_array().map(Vec::len), Some(2), "{table}");
        assert_eq!(
            row["exact-match.em"].as_array().map(Vec::len),
            Some(2),
            "{table}"
        );
    }
    assert!(table["answers"]["format.well_formed"].is_null(), "{table}");
    assert!(table["both"]["format.well_formed"].is_array(), "{table}");
    for run in ["both-1", "both-2", "answers-1", "answers-2"] {
        assert!(runs.join(run).join("metrics.jsonl").is_file(), "{run}");
    }

    // Repeated, it trains nothing and shows the same, for people.
    let again = ablate(&["--seeds", "1,2"]);
    let shown = &again.succeeded().stdout;
    assert!(
        shown.contains("means of 2 seeds ± standard deviation"),
        "{again}"
    );
    for row in ["\n    seed 2 ", "\n  exact-match.em "] {
        assert!(shown.contains(row), "no `{row}`: {again}");
    }
    assert!(!shown.contains("rl  1/4"), "{again}");

    // A changed configuration is no variant of the same runs.
    let changed = ablate(&["--seeds", "1", "--set", "rl.steps=5"]);
    changed.refused_with(&["rl.steps", "name another folder with --output DIR"]);
}
