//! Stages on disk: the same seed gives the same bytes, and a run that was stopped goes on.

use std::fs;
use std::path::Path;

use rlf_environments::error::OpenError;
use rlf_forge::tasks::output::{Format, Naming, Practised, write};
use rlf_forge::tasks::pipeline::sample;
use rlf_forge::tasks::replay::Divergence;
use rlf_forge::tasks::{
    Folder, Maker, Manifest, PipelineError, Stage, TaskOptions, TaskRecord, make,
};

use super::{composed, examples, made, make_in, options};

/// The stages of a run without a model.
fn stages() -> impl Iterator<Item = Stage> {
    Stage::ALL
        .into_iter()
        .filter(|stage| *stage != Stage::Texts)
}

/// The files that a run leaves, with their bytes.
fn files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let all = stages().map(|stage| folder.stage(stage)).chain([
        folder.manifest(),
        folder.tasks(),
        folder.rejected(),
    ]);
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    all.map(|path| (name(&path), fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let suite = composed(8);
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, seed: u64| {
        let folder = Folder::new(folder.path().join(name));
        make_in(
            &folder,
            &suite,
            &TaskOptions {
                seed,
                ..options(60)
            },
        );
        files(&folder)
    };
    let first = made("first", 1);
    assert_eq!(first, made("second", 1));
    let other = made("third", 2);
    let differs = |name: &str| {
        let of = |files: &[(String, Vec<u8>)]| {
            files
                .iter()
                .find(|(file, _)| file == name)
                .unwrap()
                .1
                .clone()
        };
        of(&first) != of(&other)
    };
    assert!(differs("tasks.jsonl") && differs("1-chains.jsonl"));
}

#[test]
fn a_run_that_was_stopped_anywhere_ends_as_one_that_was_not() {
    let suite = examples();
    let wanted = options(40);
    let whole = tempfile::tempdir().unwrap();
    let whole = Folder::new(whole.path());
    make_in(&whole, &suite, &wanted);
    let expected = files(&whole);
    // After so many bytes of a stage, the run was killed: this stage has half a line, and later ones have less.
    for (number, stage) in stages().enumerate() {
        let stopped = tempfile::tempdir().unwrap();
        let stopped = Folder::new(stopped.path());
        make_in(&stopped, &suite, &wanted);
        for later in stages().skip(number) {
            let file = stopped.stage(later);
            let bytes = fs::read(&file).unwrap();
            let kept = bytes.len() / (2 + 2 * (later as usize - number));
            fs::write(&file, &bytes[..kept]).unwrap();
        }
        for file in [stopped.tasks(), stopped.rejected()] {
            fs::remove_file(file).unwrap();
        }
        make_in(&stopped, &suite, &wanted);
        assert!(files(&stopped) == expected, "stopped in {}", stage.as_str());
    }
}

#[test]
fn a_stage_can_be_made_again_alone() {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    make_in(&folder, &suite, &options(40));
    let expected = files(&folder);
    let rows = folder.path().join("verl/train.jsonl");
    fs::create_dir(folder.path().join("verl")).unwrap();
    for stage in Stage::ALL {
        fs::write(&rows, "{}").unwrap();
        folder.forget(stage).unwrap();
        assert!(!folder.stage(stage).exists() && !folder.tasks().exists() && !rows.exists());
        make_in(&folder, &suite, &options(40));
        assert!(files(&folder) == expected, "{}", stage.as_str());
    }
}

#[test]
fn rows_stay_as_long_as_the_tasks_are_the_same() {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    make_in(&folder, &suite, &options(10));
    let rows = folder.path().join("alpaca/test.jsonl");
    fs::create_dir(folder.path().join("alpaca")).unwrap();
    fs::write(&rows, "{}").unwrap();
    make_in(&folder, &suite, &options(10));
    assert!(rows.exists());
    let tasks = fs::read_to_string(folder.tasks()).unwrap();
    fs::write(folder.tasks(), tasks.replace("\"turns\"", "\"other\"")).unwrap();
    make_in(&folder, &suite, &options(10));
    assert!(!rows.exists());
}

#[test]
fn a_folder_of_other_options_or_environments_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let suite = examples();
    make_in(&folder, &suite, &options(10));
    let before = files(&folder);
    for (manifest, what) in [
        // A smaller number would throw tasks away.
        (Manifest::new(&suite, &options(9), false), "--count"),
        (
            Manifest::new(&composed(3), &options(10), false),
            "environments",
        ),
    ] {
        let error = folder.begin(&manifest).unwrap_err();
        assert!(matches!(error, PipelineError::OtherManifest { .. }));
        assert!(error.to_string().contains(what), "{error}");
    }
    assert_eq!(files(&folder), before);
}

#[test]
fn a_folder_that_begins_anew_has_nothing_of_the_run_before_and_all_that_is_not_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let suite = examples();
    let made = make_in(&folder, &suite, &options(10));
    let (naming, practised) = (Naming::default(), Practised::default());
    let format = Format::Demonstrations;
    let written = write(
        &suite,
        &made.tasks,
        format,
        &naming,
        &practised,
        folder.path(),
    )
    .unwrap();
    fs::create_dir_all(folder.environments()).unwrap();
    let copy = folder.environments().join("Clinic.toml");
    let own = folder.environments().join("Own.toml");
    for file in [&copy, &own] {
        fs::write(file, "name = \"..\"").unwrap();
    }
    let other = Manifest::new(&composed(3), &options(10), false);
    folder.restart(&other).unwrap();
    let of_the_run = [&copy, &folder.tasks(), &written[0].path];
    assert!(of_the_run.iter().all(|file| !file.exists()));
    assert!(own.exists());
    folder.begin(&other).unwrap();
}

#[test]
fn a_folder_of_python_files_that_begins_anew_keeps_no_copy_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let manifest = Manifest::new(&examples(), &options(10), false);
    folder.begin(&manifest).unwrap();
    fs::create_dir_all(folder.environments()).unwrap();
    fs::write(folder.observed(), "[]").unwrap();
    let place = |name: &str| folder.environments().join(name);
    let (copies, own) = (["Clinic.py", "scenarios.json"], ["Clinic.txt", "Own.py"]);
    for name in copies.into_iter().chain(own) {
        fs::write(place(name), "..").unwrap();
    }
    folder.restart(&manifest).unwrap();
    assert!(copies.iter().all(|name| !place(name).exists()));
    assert!(own.iter().all(|name| place(name).exists()));
    assert!(!folder.observed().exists());
}

#[test]
fn a_larger_number_of_tasks_continues_a_folder_and_gives_the_same_bytes() {
    let suite = examples();
    // The second step allows more tasks with the same template of words.
    for (fewer, more) in [(10, 30), (150, 220)] {
        let (grown, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (grown, whole) = (Folder::new(grown.path()), Folder::new(whole.path()));
        let before = make_in(&grown, &suite, &options(fewer));
        assert_eq!(before.tasks.len(), fewer);
        make_in(&grown, &suite, &options(more));
        make_in(&whole, &suite, &options(more));
        assert!(files(&grown) == files(&whole), "{fewer} to {more}");
    }
}

#[test]
fn a_sample_has_the_first_tasks_of_the_whole() {
    let (suite, wanted) = (examples(), options(220));
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let manifest = Manifest::new(&suite, &wanted, false);
    folder.begin(&manifest).unwrap();
    let few = sample(&Maker::new(&suite, &wanted), &folder, 20).unwrap();
    assert_eq!(few.tasks, made(&suite, &wanted).tasks[..20]);
}

#[test]
fn an_environment_that_breaks_loses_no_replay_that_ended() {
    let suite = examples();
    let wanted = options(20);
    let manifest = Manifest::new(&suite, &wanted, true);
    let maker = Maker::new(&suite, &wanted);
    let (broken, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (broken, whole) = (Folder::new(broken.path()), Folder::new(whole.path()));
    let mut all = |tasks: &[TaskRecord]| -> Vec<Result<(), Divergence>> {
        tasks.iter().map(|_| Ok(())).collect()
    };
    whole.begin(&manifest).unwrap();
    make(&maker, &whole, Some(&mut all), |_| {}).unwrap();

    broken.begin(&manifest).unwrap();
    let mut seven = |tasks: &[TaskRecord]| -> Vec<Result<(), Divergence>> {
        let ended = tasks.iter().take(7).map(|_| Ok(()));
        let full = OpenError::Unavailable {
            environment: "servers".into(),
            reason: "it has no room".into(),
        };
        ended.chain([Err(Divergence::Open(full))]).collect()
    };
    let error = make(&maker, &broken, Some(&mut seven), |_| {}).unwrap_err();
    assert!(matches!(error, PipelineError::Replay(_)), "{error}");
    let replays = || fs::read_to_string(broken.stage(Stage::Replays)).unwrap();
    assert_eq!(replays().lines().count(), 7);
    let mut again = 0;
    let mut rest = |tasks: &[TaskRecord]| -> Vec<Result<(), Divergence>> {
        again += tasks.len();
        tasks.iter().map(|_| Ok(())).collect()
    };
    make(&maker, &broken, Some(&mut rest), |_| {}).unwrap();
    assert!(files(&broken) == files(&whole));
    assert_eq!(replays().lines().count(), 7 + again);
}

#[test]
fn a_folder_with_files_of_somebody_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let own = folder.tasks();
    fs::write(&own, "mine").unwrap();
    let manifest = Manifest::new(&examples(), &options(10), false);
    for refused in [folder.restart(&manifest), folder.begin(&manifest)] {
        assert!(matches!(refused, Err(PipelineError::NoManifest { .. })));
    }
    fs::write(folder.manifest(), "{}").unwrap();
    assert!(matches!(
        folder.restart(&manifest),
        Err(PipelineError::Manifest { .. })
    ));
    assert_eq!(fs::read(&own).unwrap(), b"mine");
}

#[test]
fn one_process_makes_tasks_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let half = folder.path().join(format!("{}Ab12", rlf_files::PARTIAL));
    fs::write(&half, "half a file").unwrap();
    let lock = folder.lock().unwrap();
    assert!(!half.exists());
    assert!(matches!(folder.lock(), Err(PipelineError::InUse { .. })));
    drop(lock);
    folder.lock().unwrap();
}

#[test]
fn environments_that_changed_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let suite = examples();
    make_in(&folder, &suite, &options(10));
    folder.check_environments(&suite).unwrap();
    let error = folder.check_environments(&composed(3)).unwrap_err();
    assert!(
        matches!(error, PipelineError::OtherEnvironment { .. }),
        "{error}"
    );
}

#[test]
fn a_line_that_cannot_be_read_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let suite = examples();
    make_in(&folder, &suite, &options(10));
    let file = folder.stage(Stage::Queries);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"made\"", "\"mode\"", 1)).unwrap();
    let wanted = options(10);
    let maker = rlf_forge::tasks::Maker::new(&suite, &wanted);
    let error = rlf_forge::tasks::make(&maker, &folder, None, |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("3-queries.jsonl, line 1") && error.contains("--from queries"),
        "{error}"
    );
}

#[test]
fn edited_trajectories_are_an_error_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    let (suite, options) = (examples(), options(10));
    make_in(&folder, &suite, &options);
    folder.forget(Stage::Queries).unwrap();
    let file = folder.stage(Stage::Trajectories);
    let whole = fs::read_to_string(&file).unwrap();
    let (first, rest) = whole.split_once('\n').unwrap();
    let (calls, _) = first.split_once("\"turns\":").unwrap();
    for (turns, problem) in [
        ("[500]", "its turns do not have its calls"),
        ("[]", "its turns"),
    ] {
        fs::write(&file, format!("{calls}\"turns\":{turns}}}}}\n{rest}")).unwrap();
        let error = make(&Maker::new(&suite, &options), &folder, None, |_| {}).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("line 1") && message.contains(problem),
            "{message}"
        );
    }
}
