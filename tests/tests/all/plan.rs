//! `rlf-host plan` says what a run needs before anything is loaded, and `train` refuses what cannot fit.

use rlf_tests::{Experiment, Host};

#[test]
fn a_plan_has_the_memory_of_every_phase_and_the_time_of_a_step() {
    let host = Host::new();
    let plan = host.run(["plan", "configs/quickstart.toml", "--json"]);
    let plan = plan.succeeded().json();
    assert_eq!(plan["fits"], true, "{plan}");
    let bytes = |parts: &serde_json::Value| -> u64 {
        let parts = parts.as_array().expect("is a list");
        let bytes = parts
            .iter()
            .map(|part| part["bytes"].as_u64().expect("is a number"));
        bytes.sum()
    };
    let phases = plan["phases"].as_array().expect("is a list");
    let names: Vec<&str> = phases
        .iter()
        .filter_map(|phase| phase["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "loading and saving",
            "SFT: evaluation",
            "SFT: update",
            "RL: rollout and evaluation",
            "RL: update",
        ]
    );
    let largest = phases.iter().map(|phase| bytes(&phase["parts"])).max();
    let peak = bytes(&plan["always"]) + largest.expect("there are phases");
    assert_eq!(plan["peak_bytes"], peak);
    for time in ["sft_step_s", "rollout_s", "update_s", "rl_step_s"] {
        assert!(plan[time].as_f64() > Some(0.0), "{plan}");
    }
    let printed = host.run(["plan", "configs/quickstart.toml"]);
    for row in [
        "moments of the optimiser",
        "it fits",
        "sandboxes",
        "all steps of RL",
    ] {
        assert!(
            printed.succeeded().stdout.contains(row),
            "no `{row}`: {printed}"
        );
    }
}

#[test]
fn a_plan_for_a_gpu_that_is_too_small_fails_and_says_what_to_change() {
    let host = Host::new();
    let plan = |machine: &str, more: &[&str]| {
        let config = "configs/hotpotqa-search.toml";
        let arguments = [
            "plan",
            config,
            "--shape",
            "qwen3-0.6b",
            "--machine",
            machine,
        ];
        host.run([&arguments[..], more].concat())
    };
    let large = plan("4090", &["--set", "engine.cache_tokens=262144"]);
    assert_eq!(large.code(), Some(1), "{large}");
    for said in ["it does not fit", "engine.cache_tokens = 32768", "saves"] {
        assert!(large.stdout.contains(said), "no `{said}`: {large}");
    }
    // A cache whose size the configuration leaves open follows the machine.
    for (machine, tokens) in [("4090", 32_768), ("h200", 262_144)] {
        let fits = plan(machine, &[]);
        let cache = format!("of keys and values: {tokens} tokens");
        for said in ["it fits", &cache] {
            assert!(fits.stdout.contains(said), "no `{said}`: {fits}");
        }
    }
}

#[test]
fn a_checkpoint_that_is_not_here_is_named_with_the_option_that_plans_without_it() {
    let arguments = ["plan", "configs/hotpotqa-search.toml"];
    Host::new()
        .run(arguments)
        .refused_with(&["[model] needs `checkpoint", "--shape"]);
    let elsewhere = ["--set", "model.checkpoint=elsewhere"];
    Host::new()
        .run([&arguments[..], &elsewhere].concat())
        .refused_with(&["model.checkpoint: ", "elsewhere", "--shape"]);
}

#[test]
fn training_refuses_a_policy_that_no_machine_can_hold() {
    // 1.6 * 10^12 parameters.
    let experiment = Experiment::tiny()
        .with("model.init.hidden_size", 65_536)
        .with("model.init.intermediate_size", 8_192)
        .with("model.init.num_hidden_layers", 1_000);
    let refused = experiment.try_train("run", &[]);
    refused.refused_with(&["the run needs at least", "GB", "rlf-host plan"]);
    assert!(!experiment.path("run").exists(), "{refused}");
}
