//! Runs that train adapters: they resume, their checkpoints are evaluated, merged and trained further.

use std::fs;
use std::path::Path;

use rlf_tests::Experiment;
use rustix::process::Signal;

/// A small run with adapters beside weights that are made from the seed, and with a reference policy after SFT.
fn adapting() -> Experiment {
    Experiment::tiny()
        .with("model.lora.rank", 4)
        .with("rl.kl_coefficient", 0.01)
}

#[test]
fn a_run_with_adapters_that_is_killed_and_resumed_is_the_run_that_was_not_killed() {
    let experiment = adapting();
    let whole = experiment.train("whole", &[]);
    for (name, moment) in [("sft", "after SFT"), ("rl", "rl  3/4")] {
        let killed = {
            let mut running = experiment.start(name, &[]);
            running.until(moment).signal(Signal::KILL);
            running.wait()
        };
        assert_eq!(killed.signal(), Some(9), "it was over before: {killed}");
        whole.assert_same(&experiment.train(name, &["--resume"]));
    }
}

#[test]
fn default_learning_rates_are_warned_of_with_adapters() {
    let experiment = adapting()
        .with("sft.optimizer.learning_rate", 1e-5)
        .with("rl.optimizer.learning_rate", 1e-6);
    let trained = experiment.try_train("run", &[]);
    for warned in [
        "`sft.optimizer.learning_rate` is 1e-5, the default",
        "`rl.optimizer.learning_rate` is 1e-6, the default",
    ] {
        assert!(trained.succeeded().stderr.contains(warned), "{trained}");
    }
    let set = adapting().try_train("set", &[]);
    assert!(!set.succeeded().stderr.contains("learning_rate"), "{set}");
}

#[test]
fn checkpoints_hold_adapters_alone_and_are_evaluated_merged_and_trained_further() {
    let experiment = adapting();
    let host = experiment.host();
    let plugins = host.plugins().to_str().expect("a plain path");
    let run = experiment.train("run", &[]);
    let last = run.checkpoint("rl-000004");
    for folder in [&last, &run.path().join("reference")] {
        assert!(folder.join("adapter_model.safetensors").is_file());
        assert!(!folder.join("model.safetensors").exists());
    }
    assert!(run.path().join("base/model.safetensors").is_file());

    // Changes with which the weights cannot be loaded leave the run as it was.
    let other = ["--resume", "--allow-changes", "--set", "model.lora.rank=8"];
    let resumed = experiment.try_train("run", &other);
    let mismatch = "the adapter has r = 4, and `model.lora.rank` is 8";
    assert!(resumed.stderr.contains(mismatch), "{resumed}");
    assert_eq!(resumed.code(), Some(1), "{resumed}");
    experiment.train("run", &["--resume"]);

    let measured = host
        .run(["eval", run.as_str(), "--plugins", plugins, "--json"])
        .succeeded()
        .json();
    let metrics = run.metrics();
    let line = metrics.last().expect("there is a line");
    assert_eq!(measured["greedy"]["mean"], line["eval/greedy"]);

    let merged = experiment.path("merged");
    let merged_path = merged.to_str().expect("a plain path");
    let export = ["export", run.as_str(), "--output", merged_path];
    assert!(host.run(export).succeeded().stdout.contains("rl-000004"));
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        assert!(merged.join(file).is_file(), "{file}");
    }
    let weights =
        |folder: &Path| fs::read(folder.join("model.safetensors")).expect("weights can be read");
    assert!(weights(&merged) != weights(&run.path().join("base")));
    host.run(export)
        .refused_with(&[merged_path, "is not empty"]);

    // The adapters go on beside the same weights, and are refused beside others.
    let base = run.path().join("base");
    let further = |checkpoint: &Path| {
        adapting()
            .without("model")
            .with("model.checkpoint", checkpoint.to_str().expect("is plain"))
            .with("template", "small")
            .with("model.lora.rank", 4)
            .with("model.lora.adapter", last.to_str().expect("is plain"))
            .with("rl.steps", 1)
    };
    let experiment = further(&base);
    let continued = experiment.train("continued", &[]);
    assert!(
        continued
            .checkpoint("rl-000001/adapter_model.safetensors")
            .is_file()
    );
    assert!(!continued.path().join("base").exists());
    further(&merged)
        .try_train("refused", &[])
        .refused_with(&["adapter_base.json", "beside other weights"]);
}

#[test]
fn a_model_is_exported_in_half_the_bytes_and_trains_on() {
    let experiment = Experiment::tiny().with("rl.steps", 1).without("sft");
    let run = experiment.train("run", &[]);
    let exported = |name: &str, dtype: &str| {
        let output = experiment.path(name);
        let path = output.to_str().expect("a plain path");
        let export = ["export", run.as_str(), "--output", path, "--dtype", dtype];
        experiment.host().run(export).succeeded();
        output
    };
    let (f32, bf16) = (exported("f32", "f32"), exported("bf16", "bf16"));
    let weights =
        |folder: &Path| fs::read(folder.join("model.safetensors")).expect("weights can be read");
    let saved = run.path().join("checkpoints/rl-000001");
    assert!(weights(&f32) == weights(&saved));
    let config = fs::read_to_string(bf16.join("config.json")).expect("it can be read");
    assert!(config.contains("\"torch_dtype\": \"bfloat16\""), "{config}");
    let inside = run.path().join("assets/model");
    let inside = [
        "export",
        run.as_str(),
        "--output",
        inside.to_str().expect("a plain path"),
    ];
    (experiment.host().run(inside)).refused_with(&["is inside the run", "choose another folder"]);
    let beside = run.path().join("../beside");
    let beside = [
        "export",
        run.as_str(),
        "--output",
        beside.to_str().expect("a plain path"),
    ];
    experiment.host().run(beside).succeeded();
    let (whole, half) = (weights(&f32).len(), weights(&bf16).len());
    assert!((2 * half).abs_diff(whole) < whole / 10, "{half} of {whole}");
    let untied = experiment.path("untied");
    let output = untied.to_str().expect("a plain path");
    let export = ["export", run.as_str(), "--output", output, "--untied"];
    experiment.host().run(export).succeeded();
    let file = fs::read(untied.join("model.safetensors")).expect("it can be read");
    let name = b"lm_head.weight";
    assert!(file.windows(name.len()).any(|window| window == name));
    let further = Experiment::tiny()
        .without("model")
        .with("model.checkpoint", bf16.to_str().expect("is plain"))
        .with("template", "small")
        .with("rl.steps", 1)
        .without("sft");
    further.train("further", &[]);
    // The weights that a run begins with are part of it.
    fs::write(bf16.join("config.json"), config + "\n").expect("it can be written");
    let resumed = further.try_train("further", &["--resume"]);
    resumed.refused_with(&["model.checkpoint: the content of ", "--allow-changes"]);
}
