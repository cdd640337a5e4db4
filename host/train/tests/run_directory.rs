//! The files of a run on disk are whole, and a run continues where it stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rlf_train::config::CheckpointConfig;
use rlf_train::metrics::MetricsLine;
use rlf_train::phase::Phase;
use rlf_train::run::{
    Checkpoint, FrozenMoment, FrozenWeights, Input, Machine, RunDirectory, RunError, RunSpec,
    TrainerState, content_changes, verify_weights,
};

fn spec() -> RunSpec {
    RunSpec {
        config_toml: "seed = 7\n[rl]\ngroup_size = 8\n[rl.optimizer]\nlearning_rate = 0.0002\n"
            .into(),
        plugins: BTreeMap::from([
            ("calculator".into(), "aaaa".into()),
            ("search".into(), "bbbb".into()),
        ]),
        inputs: BTreeMap::from([("tasks.train".into(), input("/data/train.jsonl", "eeee"))]),
        machine: Machine::current("binary".into(), "cpu".into()),
        assets: vec![("tokenizer.json".into(), b"{}".to_vec())],
    }
}

fn input(path: &str, blake3: &str) -> Input {
    Input {
        path: path.into(),
        blake3: blake3.into(),
    }
}

fn keep(keep_last: usize) -> CheckpointConfig {
    CheckpointConfig {
        keep_last,
        ..CheckpointConfig::default()
    }
}

#[allow(clippy::unnecessary_wraps)] // The signature that a checkpoint needs.
fn save(folder: &Path) -> Result<(), RunError> {
    fs::write(folder.join("model.safetensors"), b"weights").unwrap();
    fs::write(folder.join("optimizer.safetensors"), b"moments").unwrap();
    fs::write(folder.join("value_head.safetensors"), b"critic").unwrap();
    fs::write(
        folder.join("value_head_optimizer.safetensors"),
        b"its moments",
    )
    .unwrap();
    Ok(())
}

fn checkpoint(run: &mut RunDirectory, phase: Phase, step: u64, finished: bool) -> Checkpoint {
    let mut state = TrainerState::new(phase, step, 7);
    state.finished = finished;
    run.checkpoint(state, save).unwrap()
}

fn line(phase: Phase, step: u64) -> MetricsLine {
    MetricsLine::new(phase, step).number("loss", 1.0 / step as f64)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_line_says_phase_step_and_elapsed_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    run.metrics().write(&line(Phase::Sft, 1)).unwrap();
    let evaluation = MetricsLine::new(Phase::Rl, 2)
        .value("split", "test".into())
        .number("eval/greedy", 0.5)
        .number("eval/sampled", f64::NAN)
        .value("eval/sampled_by_kind", serde_json::json!({"hop": 0.25}));
    run.metrics().write(&evaluation).unwrap();
    let text = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["phase"], "sft");
    assert_eq!(lines[0]["step"], 1);
    assert_eq!(lines[1]["eval/sampled_by_kind"]["hop"], 0.25);
    assert!(lines[1]["eval/sampled"].is_null(), "JSON has no NaN");
    for line in &lines {
        assert!(line["elapsed_s"].is_f64());
    }
    let events = names(&folder.path().join("tensorboard"));
    assert!(events[0].contains("tfevents"), "{events:?}");
    let events = fs::read(folder.path().join("tensorboard").join(&events[0])).unwrap();
    let tag = b"rl/test/eval/sampled_by_kind/hop";
    assert!(events.windows(tag.len()).any(|window| window == tag));
}

#[test]
fn a_checkpoint_is_a_loadable_folder_and_latest_points_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let written = checkpoint(&mut run, Phase::Sft, 50, false);
    let latest = folder.path().join("checkpoints/latest");
    assert_eq!(
        names(&latest),
        [
            "BLAKE3SUMS",
            "model.safetensors",
            "optimizer.safetensors",
            "tokenizer.json",
            "trainer.json",
            "value_head.safetensors",
            "value_head_optimizer.safetensors",
        ]
    );
    assert_eq!(Checkpoint::latest(folder.path()).unwrap(), Some(written));
}

#[test]
fn the_last_checkpoints_are_kept_and_the_end_of_every_phase() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    for step in [1, 2] {
        checkpoint(&mut run, Phase::Sft, step, step == 2);
    }
    for step in [1, 9, 10, 11] {
        checkpoint(&mut run, Phase::Rl, step, false);
    }
    let all: Vec<(Phase, u64)> = Checkpoint::all(folder.path())
        .unwrap()
        .iter()
        .map(|checkpoint| (checkpoint.state.phase, checkpoint.state.step))
        .collect();
    assert_eq!(all, [(Phase::Sft, 2), (Phase::Rl, 10), (Phase::Rl, 11)]);
    let sft = Checkpoint::latest_in_phase(folder.path(), Phase::Sft)
        .unwrap()
        .unwrap();
    assert!(sft.state.finished);
}

#[test]
fn the_last_checkpoint_before_the_entropy_was_low_is_kept_to_go_back_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let mut kept = Vec::new();
    for (step, low) in [(1, 0), (2, 0), (3, 1), (4, 2), (5, 3), (6, 0), (7, 0)] {
        let mut state = TrainerState::new(Phase::Rl, step, 7);
        state.in_a_row.low = low;
        run.checkpoint(state, save).unwrap();
        let all = Checkpoint::all(folder.path()).unwrap();
        let steps: Vec<u64> = all.iter().map(|checkpoint| checkpoint.state.step).collect();
        kept.push(steps);
    }
    let last = [vec![2, 3, 4], vec![2, 4, 5], vec![5, 6], vec![6, 7]];
    assert_eq!(kept[3..], last);
}

#[test]
fn folders_that_are_no_checkpoints_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(1)).unwrap();
    checkpoint(&mut run, Phase::Rl, 1, false);
    let checkpoints = folder.path().join("checkpoints");
    // A copy of a checkpoint under another name, and an unrelated file.
    fs::create_dir(checkpoints.join("best")).unwrap();
    fs::copy(
        checkpoints.join("rl-000001/trainer.json"),
        checkpoints.join("best/trainer.json"),
    )
    .unwrap();
    fs::create_dir(checkpoints.join("rl-1")).unwrap();
    for step in 2..=4 {
        checkpoint(&mut run, Phase::Rl, step, false);
    }
    assert_eq!(names(&checkpoints), ["best", "latest", "rl-000004", "rl-1"]);
}

#[test]
fn checkpoints_are_listed_while_the_run_removes_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let newest = checkpoint(&mut run, Phase::Rl, 9_999, false);
    let checkpoints = folder.path().join("checkpoints");
    thread::scope(|scope| {
        let removing = scope.spawn(|| {
            for step in 0..2_000 {
                let old = checkpoints.join(format!("rl-{step:06}"));
                let (partial, gone) = (checkpoints.join("partial"), checkpoints.join("gone"));
                fs::create_dir(&partial).unwrap();
                fs::copy(
                    newest.path.join("trainer.json"),
                    partial.join("trainer.json"),
                )
                .unwrap();
                // As a run writes and removes: under its name, the folder is whole.
                fs::rename(&partial, &old).unwrap();
                fs::rename(&old, &gone).unwrap();
                fs::remove_dir_all(&gone).unwrap();
            }
        });
        while !removing.is_finished() {
            let all = Checkpoint::all(folder.path()).unwrap();
            assert!(all.iter().any(|one| one.path == newest.path));
        }
    });
}

#[test]
fn resuming_cuts_everything_back_to_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = folder.path().join("metrics.jsonl");
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    for step in 1..=2 {
        run.metrics().write(&line(Phase::Rl, step)).unwrap();
        run.write_trajectories(Phase::Rl, step, [step]).unwrap();
    }
    checkpoint(&mut run, Phase::Rl, 2, false);
    let events = folder
        .path()
        .join("tensorboard")
        .join(&names(&folder.path().join("tensorboard"))[0]);
    let (at_checkpoint, events_at_checkpoint) =
        (fs::read(&metrics).unwrap(), fs::read(&events).unwrap());
    run.metrics().write(&line(Phase::Rl, 3)).unwrap();
    run.write_trajectories(Phase::Rl, 3, [3]).unwrap();
    drop(run);
    // Killed in the middle of a metrics line, of a trajectory file, and of a checkpoint.
    fs::write(
        &metrics,
        [fs::read(&metrics).unwrap(), b"{\"phase\":\"r".to_vec()].concat(),
    )
    .unwrap();
    fs::write(
        folder.path().join("trajectories/.writing-rl-000004.jsonl"),
        b"{",
    )
    .unwrap();
    fs::create_dir(folder.path().join("checkpoints/.writing-rl-000004")).unwrap();

    let resumed = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap();
    assert_eq!(resumed.checkpoint.unwrap().state.step, 2);
    assert_eq!(resumed.warnings, [""; 0]);
    assert_eq!(fs::read(&metrics).unwrap(), at_checkpoint);
    assert_eq!(fs::read(&events).unwrap(), events_at_checkpoint);
    assert_eq!(
        names(&folder.path().join("trajectories")),
        ["rl-000001.jsonl", "rl-000002.jsonl"]
    );
    assert_eq!(
        names(&folder.path().join("checkpoints")),
        ["latest", "rl-000002"]
    );
}

#[test]
fn a_run_killed_before_its_first_checkpoint_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    run.metrics().write(&line(Phase::Sft, 1)).unwrap();
    run.write_trajectories(Phase::Rl, 1, [1]).unwrap();
    drop(run);
    let resumed = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap();
    assert_eq!(resumed.checkpoint, None);
    assert_eq!(fs::read(folder.path().join("metrics.jsonl")).unwrap(), b"");
    assert!(names(&folder.path().join("trajectories")).is_empty());
}

#[test]
fn elapsed_time_goes_on_from_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let written = checkpoint(&mut run, Phase::Rl, 1, false);
    drop(run);
    // A run that has lasted an hour.
    let file = written.path.join("trainer.json");
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    state["elapsed"]["secs"] = 3600.into();
    fs::write(&file, state.to_string()).unwrap();
    let mut resumed = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap();
    assert!(resumed.run.metrics().elapsed() >= Duration::from_hours(1));
}

#[test]
fn changed_settings_and_plugins_are_refused_by_name_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    drop(RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap());
    let mut changed = spec();
    changed.config_toml = changed
        .config_toml
        .replace("0.0002", "0.0005")
        .replace("seed = 7\n", "");
    changed.plugins.insert("search".into(), "cccc".into());
    changed.plugins.insert("lookup".into(), "dddd".into());
    changed.plugins.remove("calculator");
    let error = RunDirectory::resume(folder.path(), &changed, keep(2), false).unwrap_err();
    let message = error.to_string();
    for part in [
        "rl.optimizer.learning_rate: was 0.0002, is 0.0005",
        "seed: was 7, is gone",
        "plugin search: was bbbb, is cccc",
        "plugin lookup: is new, dddd",
        "plugin calculator: was aaaa, is gone",
        "or allow the changes",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(!message.contains("group_size"), "{message}");
    let resumed = RunDirectory::resume(folder.path(), &changed, keep(2), true).unwrap();
    let [warning] = &resumed.warnings[..] else {
        panic!("{:?}", resumed.warnings)
    };
    assert!(warning.contains("seed: was 7, is gone"), "{warning}");
    assert!(resumed.is_changed);
    resumed.run.record(&changed).unwrap();
    drop(resumed);
    // From here on the run has the new settings.
    drop(RunDirectory::resume(folder.path(), &changed, keep(2), false).unwrap());
    assert!(RunDirectory::resume(folder.path(), &spec(), keep(2), false).is_err());
}

#[test]
fn an_input_whose_content_changed_is_refused_by_name_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    drop(RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap());
    let resume = |spec: &RunSpec, allow| RunDirectory::resume(folder.path(), spec, keep(2), allow);
    let with_file = |path, blake3| {
        let inputs = BTreeMap::from([("tasks.train".into(), input(path, blake3))]);
        RunSpec { inputs, ..spec() }
    };
    drop(resume(&with_file("/elsewhere/train.jsonl", "eeee"), false).unwrap());
    let edited = with_file("/data/train.jsonl", "ffff");
    let message = resume(&edited, false).unwrap_err().to_string();
    let change =
        "tasks.train: the content of /data/train.jsonl has changed: BLAKE3 was eeee, is ffff";
    assert!(message.contains(change), "{message}");
    assert!(message.contains("files back as they were"), "{message}");
    let changes = content_changes(folder.path(), &edited.plugins, &edited.inputs);
    assert_eq!(changes.unwrap(), [change]);
    // Nothing of the run has changed before its user knows that it can go on.
    drop(resume(&edited, true).unwrap());
    drop(resume(&with_file("/data/train.jsonl", "eeee"), false).unwrap());
    let resumed = resume(&edited, true).unwrap();
    resumed.run.record(&edited).unwrap();
    drop(resumed);
    drop(resume(&edited, false).unwrap());
    assert!(resume(&spec(), false).is_err());
}

#[test]
fn the_content_of_a_folder_is_that_of_its_weights_settings_tokenizer_and_template() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let files = [
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
    ];
    for name in files {
        write(name, "before");
    }
    let digest = || Input::read(folder.path()).unwrap().blake3;
    let before = digest();
    for name in ["README.md", "notes.json", "optimizer.safetensors"] {
        write(name, "not of the model");
    }
    fs::create_dir(folder.path().join("model.json")).unwrap();
    assert_eq!(digest(), before);
    for name in files {
        write(name, "after");
        assert_ne!(digest(), before, "{name}");
        write(name, "before");
    }
    assert_eq!(digest(), before);
    write("model-2.safetensors", "more weights");
    assert_ne!(digest(), before, "another file");
    let pipe = Input::read(Path::new("/dev/null")).unwrap().blake3;
    assert!(pipe.starts_with("unknown"), "{pipe}");
}

#[test]
fn a_run_of_an_earlier_version_without_hashes_of_inputs_is_resumed_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    drop(RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap());
    fs::remove_file(folder.path().join("inputs.json")).unwrap();
    let resume = || RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap();
    let resumed = resume();
    let warnings = &resumed.warnings;
    assert!(
        warnings[0].contains("no hashes of its inputs"),
        "{warnings:?}"
    );
    resumed.run.record(&spec()).unwrap();
    drop(resumed);
    // It has them from here on.
    assert_eq!(resume().warnings, [""; 0]);
}

#[test]
fn settings_that_mean_the_same_are_no_change() {
    for (before, now) in [
        // Its name in earlier versions.
        ("max_dropped_groups = 0.5", "max_dropped_share = 0.5"),
        // It has no effect on results.
        ("activation_checkpointing = false", ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let with = |line: &str| RunSpec {
            config_toml: format!("[sft]\n[rl]\n{line}\n"),
            ..spec()
        };
        drop(RunDirectory::create(folder.path(), &with(before), keep(2)).unwrap());
        drop(RunDirectory::resume(folder.path(), &with(now), keep(2), false).unwrap());
    }
}

#[test]
fn comments_and_order_of_a_configuration_are_no_change() {
    let folder = tempfile::tempdir().unwrap();
    drop(RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap());
    let mut same = spec();
    same.config_toml =
        "# tuned\nseed = 7\nrl.optimizer.learning_rate = 2e-4\nrl.group_size = 8\n".into();
    assert!(RunDirectory::resume(folder.path(), &same, keep(2), false).is_ok());
}

#[test]
fn two_trainers_cannot_share_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let first = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let error = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, RunError::Locked { .. }), "{message}");
    assert!(
        message.contains(&std::process::id().to_string()),
        "{message}"
    );
    drop(first);
    assert!(RunDirectory::resume(folder.path(), &spec(), keep(2), false).is_ok());
}

#[test]
fn a_run_is_neither_overwritten_nor_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let missing = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap_err();
    assert!(matches!(missing, RunError::NoRun { .. }), "{missing}");
    drop(RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap());
    let error = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap_err();
    assert!(error.to_string().contains("continue it"), "{error}");
}

#[test]
fn a_full_disk_leaves_the_last_checkpoint_whole_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(1)).unwrap();
    let good = checkpoint(&mut run, Phase::Rl, 1, false);
    let full = |folder: &Path| {
        fs::write(folder.join("model.safetensors"), b"half").unwrap();
        Err(RunError::Io {
            action: "write",
            path: folder.to_owned(),
            source: io::Error::from(io::ErrorKind::StorageFull),
        })
    };
    let error = run
        .checkpoint(TrainerState::new(Phase::Rl, 2, 7), full)
        .unwrap_err();
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(
        names(&folder.path().join("checkpoints")),
        ["latest", "rl-000001"]
    );
    assert_eq!(Checkpoint::latest(folder.path()).unwrap(), Some(good));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = RunDirectory::create(&file.join("run"), &spec(), keep(2)).unwrap_err();
    assert!(error.to_string().contains("file/run"), "{error}");
    // Root may write anywhere, so the error is made by hand.
    let denied = RunError::Io {
        action: "create",
        path: file,
        source: io::Error::from(io::ErrorKind::PermissionDenied),
    };
    assert!(denied.to_string().contains("may write to"), "{denied}");
}

#[test]
fn a_byte_that_changed_in_a_checkpoint_is_noticed_and_the_one_before_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(3)).unwrap();
    let saved: Vec<Checkpoint> = (1..=3)
        .map(|step| checkpoint(&mut run, Phase::Rl, step, false))
        .collect();
    drop(run);
    let resume = || RunDirectory::resume(folder.path(), &spec(), keep(3), false);
    assert_eq!(resume().unwrap().checkpoint.unwrap().path, saved[2].path);

    let flip = |at: &Path| {
        let mut bytes = fs::read(at).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(at, bytes).unwrap();
    };
    // The optimiser's state and the critic belong to the run, but an evaluation does not read them.
    for file in [
        "optimizer.safetensors",
        "value_head.safetensors",
        "value_head_optimizer.safetensors",
    ] {
        let path = saved[2].path.join(file);
        flip(&path);
        let error = resume().unwrap_err().to_string();
        let said = format!("{file} is not as it was written");
        assert!(error.contains(&said), "{error}");
        assert!(
            error.contains("go on from") && error.ends_with("rl-000002"),
            "{error}"
        );
        saved[2].verify_weights().unwrap();
        flip(&path);
        saved[2].verify().unwrap();
    }

    // The checkpoint before is damaged too, and so the one before that is named.
    flip(&saved[1].path.join("model.safetensors"));
    fs::remove_file(saved[2].path.join("model.safetensors")).unwrap();
    let error = saved[2].verify_weights().unwrap_err().to_string();
    assert!(
        error.contains("rl-000003/model.safetensors is not as"),
        "{error}"
    );
    assert!(error.ends_with("rl-000001"), "{error}");
    fs::remove_dir_all(&saved[2].path).unwrap();
    fs::remove_dir_all(&saved[0].path).unwrap();
    let error = resume().unwrap_err().to_string();
    assert!(error.contains("no earlier checkpoint is left"), "{error}");

    // An earlier version wrote no digests.
    fs::remove_file(saved[1].path.join("BLAKE3SUMS")).unwrap();
    assert_eq!(resume().unwrap().checkpoint.unwrap().path, saved[1].path);
}

#[test]
fn weights_that_a_run_wrote_are_checked_by_whoever_reads_them_and_others_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let path = checkpoint(&mut run, Phase::Rl, 1, false).path;
    verify_weights(&path).unwrap();
    let weights = path.join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    let error = verify_weights(&path).unwrap_err().to_string();
    assert!(error.contains("model.safetensors"), "{error}");
    // Another program's folder has no digests.
    fs::remove_file(path.join("BLAKE3SUMS")).unwrap();
    verify_weights(&path).unwrap();
}

#[test]
fn the_reference_policy_is_checked_before_it_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let reference = run.reference(save).unwrap();
    assert_eq!(run.reference(save).unwrap(), reference);
    fs::write(reference.join("model.safetensors"), b"other").unwrap();
    let error = run.reference(save).unwrap_err().to_string();
    assert!(
        error.contains("model.safetensors is not as it was written"),
        "{error}"
    );
}

#[test]
fn a_damaged_checkpoint_or_log_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    run.metrics().write(&line(Phase::Rl, 1)).unwrap();
    let written = checkpoint(&mut run, Phase::Rl, 1, false);
    drop(run);
    let metrics = folder.path().join("metrics.jsonl");
    let lines = fs::read(&metrics).unwrap();
    fs::write(&metrics, b"").unwrap();
    let error = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap_err();
    assert!(
        error.to_string().contains("metrics.jsonl has 0 bytes"),
        "{error}"
    );
    fs::write(&metrics, lines).unwrap();
    fs::write(written.path.join("trainer.json"), b"{\"format\": 1").unwrap();
    let error = RunDirectory::resume(folder.path(), &spec(), keep(2), false).unwrap_err();
    assert!(error.to_string().contains("trainer.json"), "{error}");
    assert!(
        error.to_string().contains("resume from the one before"),
        "{error}"
    );
}

#[test]
fn frozen_weights_are_found_as_they_were_written_or_as_a_checkpoint_of_their_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &spec(), keep(2)).unwrap();
    let frozen = FrozenWeights::of(folder.path());
    assert_eq!(frozen.find(FrozenMoment::Start).unwrap(), None);
    let start = frozen.keep(FrozenMoment::Start, save).unwrap();
    assert_eq!(start, folder.path().join("frozen/start"));
    assert!(start.join("tokenizer.json").is_file());
    assert_eq!(
        frozen.find(FrozenMoment::Start).unwrap(),
        Some(start.clone())
    );

    // RL begins with the weights with which SFT ends.
    let sft = checkpoint(&mut run, Phase::Sft, 3, true).path;
    let rl = checkpoint(&mut run, Phase::Rl, 2, false).path;
    for (steps, found) in [(0, Some(sft)), (1, None), (2, Some(rl))] {
        assert_eq!(frozen.find(FrozenMoment::Rl(steps)).unwrap(), found);
    }
    let begun = frozen.keep(FrozenMoment::Rl(0), save).unwrap();
    assert_eq!(frozen.find(FrozenMoment::Rl(0)).unwrap(), Some(begun));

    fs::write(start.join("model.safetensors"), b"other").unwrap();
    let error = frozen.find(FrozenMoment::Start).unwrap_err().to_string();
    assert!(error.contains("is not as it was written"), "{error}");
    let needed = BTreeSet::from([FrozenMoment::Rl(0)]);
    frozen.forget_except(&needed).unwrap();
    assert_eq!(names(&folder.path().join("frozen")), ["rl-000000"]);
}
