//! No run loses anything, however it ends, and no run is changed or replaced by accident.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rlf_policy::{Key, Purpose};
use rlf_tests::{ChatEndpoint, Experiment, Reply, RunFolder};
use rustix::process::Signal;
use serde_json::json;

use crate::users::{LEAVES, shop, task};

/// The exit code of a run that was asked to stop and saved its state.
const INTERRUPTED: i32 = 75;

#[test]
fn a_run_killed_anywhere_and_resumed_is_the_run_that_was_not_killed() {
    let experiment = Experiment::calling();
    let whole = experiment.train("whole", &[]);
    for (name, moment) in [
        // Before any checkpoint, between two checkpoints, and while one may be being written.
        ("start", "at the start"),
        ("sft", "sft 50/60"),
        ("between", "after SFT"),
        ("rl", "rl  1/4"),
        ("later", "rl  3/4"),
    ] {
        let killed = {
            let mut running = experiment.start(name, &[]);
            running.until(moment).signal(Signal::KILL);
            running.wait()
        };
        assert_eq!(killed.signal(), Some(9), "it was over before: {killed}");
        let resumed = experiment.train(name, &["--resume"]);
        whole.assert_same(&resumed);
    }
}

#[test]
fn a_run_with_staleness_killed_anywhere_and_resumed_is_the_run_that_was_not_killed() {
    for staleness in [1, 2] {
        let experiment = Experiment::calling().with("rl.staleness", staleness);
        let whole = experiment.train("whole", &[]);
        let steps = whole.steps("rl");
        let played_by = steps.iter().map(|line| line["staleness"].as_f64());
        let wanted = (0..4).map(|step| Some(f64::from(step.min(staleness))));
        assert!(played_by.eq(wanted), "{steps:?}");
        for (name, moment) in [
            ("between", "after SFT"),
            ("rl", "rl  1/4"),
            ("later", "rl  3/4"),
        ] {
            let killed = {
                let mut running = experiment.start(name, &[]);
                running.until(moment).signal(Signal::KILL);
                running.wait()
            };
            assert_eq!(killed.signal(), Some(9), "it was over before: {killed}");
            whole.assert_same(&experiment.train(name, &["--resume"]));
        }
        // Asked to stop, a run breaks off the steps ahead, and plays them again.
        let stopped = {
            let mut running = experiment.start("stopped", &[]);
            running.until("rl  1/4").signal(Signal::INT);
            running.wait()
        };
        assert_eq!(stopped.code(), Some(INTERRUPTED), "{stopped}");
        let resumed = experiment.train("stopped", &["--resume"]);
        let (mut weights, others) = (resumed.weights(), whole.weights());
        weights.retain(|name, _| others.contains_key(name));
        assert!(weights == others, "the weights differ");
    }
}

#[test]
#[ignore = "long: `cargo xtask test --long` runs it"]
fn runs_killed_at_twenty_random_moments_are_the_run_that_was_not_killed() {
    for staleness in [0_u32, 2] {
        let experiment = Experiment::calling().with("rl.staleness", staleness);
        let begun = Instant::now();
        let whole = experiment.train("whole", &[]);
        let time = begun.elapsed();
        let key = Key::new(20, Purpose::Test).at(u64::from(staleness));
        let (mut kills, mut starts, mut runs) = (0, 0, 0);
        while kills < 20 {
            let name = format!("run-{runs}");
            runs += 1;
            loop {
                // A run that was killed before it was created begins again.
                let is_created = experiment.path(&name).join("config.toml").exists();
                let how = if is_created {
                    "--resume"
                } else {
                    "--overwrite"
                };
                let mut running = experiment.start(&name, &[how]);
                thread::sleep(time.mul_f64(key.uniform(starts)));
                starts += 1;
                running.signal(Signal::KILL);
                let ended = running.wait();
                if ended.code() == Some(0) {
                    break;
                }
                assert_eq!(ended.signal(), Some(9), "{ended}");
                kills += 1;
            }
            whole.assert_same(&experiment.run(&name));
        }
        println!("{kills} kills in {runs} runs with a staleness of {staleness}");
    }
}

#[test]
fn tasks_that_teach_nothing_are_replaced_by_the_next_ones_in_a_resumed_run_too() {
    // An untrained policy never answers, so all rewards are the same.
    let never = Experiment::tiny().with("rl.steps", 4).with_toml(
        "rewards.stack = [{plugin = 'exact-match', weights = {em = 1.0}}]
        checkpoint.every = 1",
    );
    let tasks = |run: &RunFolder| -> Vec<String> {
        let files = run.trajectories().into_iter();
        let records = files.filter(|(name, _)| name.starts_with("rl-"));
        let mut tasks: Vec<String> = records
            .flat_map(|(_, records)| records)
            .map(|record| {
                record["task"]
                    .as_str()
                    .expect("it names its task")
                    .to_owned()
            })
            .collect();
        tasks.dedup();
        tasks
    };
    let plain = tasks(&never.train("plain", &[]));
    assert_eq!(plain.len(), 8);

    let refilled = never.with("rl.steps", 2).with("rl.refill", 1);
    let whole = refilled.train("whole", &[]);
    assert_eq!(tasks(&whole), plain);
    for line in whole.steps("rl") {
        assert_eq!(line["trajectories"], 16, "{line}");
        assert_eq!(line["updates"], 0, "{line}");
    }
    let mut running = refilled.start("killed", &[]);
    running.until("rl  1/2").signal(Signal::KILL);
    running.wait();
    whole.assert_same(&refilled.train("killed", &["--resume"]));

    // With staleness, a step begins before it is known how many tasks the one before it takes.
    let ahead = refilled.with("rl.staleness", 1);
    let whole = ahead.train("ahead", &[]);
    let played = tasks(&whole);
    assert_eq!(played.len(), 8);
    assert_eq!((&played[..2], &played[4..6]), (&plain[..2], &plain[2..4]));
    let replaced = [&played[2..4], &played[6..]].concat();
    assert!(replaced.iter().all(|task| !plain.contains(task)));
    let mut running = ahead.start("killed-ahead", &[]);
    running.until("rl  1/2").signal(Signal::KILL);
    running.wait();
    whole.assert_same(&ahead.train("killed-ahead", &["--resume"]));
}

#[test]
fn one_interrupt_saves_and_the_run_goes_on_from_there() {
    let experiment = Experiment::tiny().with("rl.steps", 12);
    let whole = experiment.train("whole", &[]);
    let stopped = {
        let mut running = experiment.start("stopped", &[]);
        running.until("rl  1/12").signal(Signal::INT);
        running.wait()
    };
    assert_eq!(stopped.code(), Some(INTERRUPTED), "{stopped}");
    assert!(stopped.stdout.contains("--resume"), "{stopped}");
    assert!(stopped.stderr.contains("finishing this step"), "{stopped}");
    let run = experiment.run("stopped");
    let done = run.steps("rl").len();
    assert!((1..12).contains(&done), "{done} steps were done");
    // Saved at the current step, not at the last one that `checkpoint.every` asks for.
    assert!(run.checkpoint(&format!("rl-{done:06}")).is_dir());

    let resumed = experiment.train("stopped", &["--resume"]);
    // The resumed run has one more checkpoint: that of the interruption.
    let (mut weights, others) = (resumed.weights(), whole.weights());
    weights.retain(|name, _| others.contains_key(name));
    assert!(weights == others, "the weights differ");
}

#[test]
fn a_second_interrupt_discards_the_step_and_the_run_goes_on_from_its_last_checkpoint() {
    let experiment = Experiment::tiny().with("rl.steps", 12);
    let whole = experiment.train("whole", &[]);
    let stopped = {
        let mut running = experiment.start("stopped", &[]);
        running.until("rl  1/12");
        // The process is stopped while both signals are sent, so that the second is pending when it handles the first.
        for signal in [Signal::STOP, Signal::INT, Signal::TERM, Signal::CONT] {
            running.signal(signal);
        }
        running.wait()
    };
    assert_eq!(stopped.code(), Some(INTERRUPTED), "{stopped}");
    assert!(stopped.stderr.contains("without this step"), "{stopped}");
    assert!(
        stopped.stdout.contains("the last checkpoint with: "),
        "{stopped}"
    );
    let done = experiment.run("stopped").steps("rl").len();
    assert!((1..12).contains(&done), "{done} steps were done");
    let resumed = experiment.train("stopped", &["--resume"]);
    let (mut weights, others) = (resumed.weights(), whole.weights());
    weights.retain(|name, _| others.contains_key(name));
    assert!(weights == others, "the weights differ");
}

/// A user who stops answering.
struct Stall {
    user: &'static str,
    /// Number of conversations that the user still begins.
    conversations: usize,
    /// Told when the user does not answer.
    stalled: Sender<()>,
}

/// Users who write one message and then leave, except for the one who stalls, if any.
#[derive(Clone, Default)]
struct Users(Arc<Mutex<Option<Stall>>>);

impl Users {
    fn start(&self) -> ChatEndpoint {
        let users = self.clone();
        ChatEndpoint::start(move |question| {
            let messages = question.messages();
            if messages.iter().any(|(role, _)| *role == "assistant") {
                return Reply::Says(LEAVES);
            }
            let mut stall = users.0.lock().expect("nothing panics with it");
            match &mut *stall {
                Some(stall) if messages[0].1.contains(stall.user) => {
                    if stall.conversations == 0 {
                        // Only the first one is waited for.
                        let _ = stall.stalled.send(());
                        return Reply::Stalls;
                    }
                    stall.conversations -= 1;
                }
                _ => {}
            }
            Reply::Says("Where is my order?")
        })
    }

    /// Lets the user stall after so many conversations. The receiver gets a message when that has happened.
    fn stall(&self, user: &'static str, conversations: usize) -> Receiver<()> {
        let (stalled, receiver) = mpsc::channel();
        *self.0.lock().expect("nothing panics with it") = Some(Stall {
            user,
            conversations,
            stalled,
        });
        receiver
    }

    /// Lets every user answer.
    fn answer(&self) {
        *self.0.lock().expect("nothing panics with it") = None;
    }
}

#[test]
fn a_second_interrupt_breaks_off_a_rollout_and_an_evaluation_and_the_run_loses_nothing() {
    let users = Users::default();
    let endpoint = users.start();
    let (trained, tested) = (task("asker", None), task("tester", None));
    let shop = shop(&endpoint, &[trained], &[tested]).with_toml(
        "sft.steps = 2
        rl.steps = 2
        rl.prompts_per_step = 1
        rl.group_size = 4
        rl.mini_batches = 1
        rewards.stack = [
            {plugin = 'reward-verdict'},
            {plugin = 'format', weights = {well_formed = 0.5, answered = 0.25}},
        ]
        checkpoint.every = 1
        user.timeout_ms = 600000",
    );
    let whole = shop.train("whole", &[]);
    // An evaluation has two conversations, a greedy and a sampled one. The newest checkpoint is that of the last whole step.
    for (run, user, conversations, newest) in [
        ("first-evaluation", "tester", 0, None),
        ("evaluation-of-sft", "tester", 2, Some("sft-000002")),
        ("first-rollout", "asker", 0, Some("sft-000002")),
        ("second-rollout", "asker", 4, Some("rl-000001")),
        ("last-evaluation", "tester", 4, Some("rl-000002")),
    ] {
        let stalled = users.stall(user, conversations);
        let stopped = {
            let mut running = shop.start(run, &[]);
            let waited = stalled.recv_timeout(Duration::from_mins(4));
            waited.unwrap_or_else(|error| panic!("{run}: nobody was asked: {error}"));
            // The process is stopped while both signals are sent, so that the second is pending when it handles the first.
            for signal in [Signal::STOP, Signal::INT, Signal::TERM, Signal::CONT] {
                running.signal(signal);
            }
            running.wait()
        };
        assert_eq!(stopped.code(), Some(INTERRUPTED), "{run}: {stopped}");
        let latest = fs::read_link(shop.run(run).checkpoint("latest")).ok();
        assert_eq!(latest.as_deref(), newest.map(Path::new), "{run}");
        users.answer();
        whole.assert_same(&shop.train(run, &["--resume"]));
    }
}

#[test]
fn a_finished_run_goes_on_where_more_steps_are_asked_for() {
    let experiment = Experiment::tiny();
    let whole = experiment.train("whole", &["--set", "rl.steps=6"]);
    experiment.train("longer", &[]);
    let more = ["--resume", "--allow-changes", "--set", "rl.steps=6"];
    let longer = experiment.train("longer", &more);
    assert_eq!(longer.steps("rl").len(), 6);
    assert!(
        longer.weights()["rl-000006/model.safetensors"]
            == whole.weights()["rl-000006/model.safetensors"]
    );
}

#[test]
fn a_finished_run_that_is_resumed_says_that_it_is_complete_and_changes_nothing() {
    let experiment = Experiment::tiny();
    let trained = experiment.try_train("run", &[]);
    assert!(
        trained.succeeded().stdout.contains(" s in all\n"),
        "{trained}"
    );
    let run = experiment.run("run");
    let (weights, metrics) = (run.weights(), run.metrics());
    let resumed = experiment.try_train("run", &["--resume"]);
    let complete = "\nthe run is already complete: nothing was left to do\n";
    assert!(resumed.succeeded().stdout.contains(complete), "{resumed}");
    assert!(!resumed.stdout.contains("s in all"), "{resumed}");
    // The results are shown again.
    let table = "success on the test split";
    assert!(resumed.stdout.contains(table), "{resumed}");
    assert!(weights == run.weights() && metrics == run.metrics());
}

#[test]
fn three_interrupts_stop_at_once_and_the_last_checkpoint_is_whole() {
    const AT_ONCE: i32 = 130;
    let experiment = Experiment::tiny().with("sft.steps", 100_000);
    let stopped = {
        let mut running = experiment.start("run", &[]);
        running.until("sft 50/");
        // The process is stopped while the signals are sent, so that all are pending when it handles the first.
        for signal in [
            Signal::STOP,
            Signal::INT,
            Signal::TERM,
            Signal::HUP,
            Signal::CONT,
        ] {
            running.signal(signal);
        }
        running.wait()
    };
    assert_eq!(stopped.code(), Some(AT_ONCE), "{stopped}");
    let run = experiment.run("run");
    let plugins = experiment.host().plugins();
    let measured = experiment.host().run([
        "eval",
        run.as_str(),
        "--plugins",
        plugins.to_str().expect("a plain name"),
    ]);
    measured.succeeded();
}

#[test]
fn a_run_is_neither_overwritten_nor_changed_by_accident() {
    let experiment = Experiment::tiny();
    {
        let mut running = experiment.start("run", &[]);
        running.until("rl  3/4").signal(Signal::KILL);
        running.wait();
    }
    let run = experiment.run("run");
    let before = run.weights();
    experiment.try_train("run", &[]).refused_with(&[
        "already holds a run",
        "--resume",
        "--overwrite",
    ]);
    experiment
        .try_train("run", &["--resume", "--set", "rl.steps=3"])
        .refused_with(&["rl.steps: was 4, is 3", "--allow-changes"]);
    assert!(run.weights() == before, "a refused run was changed");

    experiment.train(
        "run",
        &["--resume", "--allow-changes", "--set", "rl.steps=3"],
    );
    assert_eq!(run.step_numbers("rl"), [1, 2, 3]);

    experiment.train("run", &["--overwrite"]);
    assert_eq!(run.step_numbers("rl"), [1, 2, 3, 4]);
    let after = run.weights();
    for (name, bytes) in &before {
        assert!(*bytes == after[name], "{name} is not the same again");
    }
}

#[test]
fn a_changed_plugin_is_a_change() {
    let experiment = Experiment::tiny().with("rl.steps", 1).with("eval.every", 0);
    experiment.train("run", &[]);
    let plugins = experiment.path("plugins");
    for name in ["calculator", "exact-match", "format", "lookup"] {
        let (from, to) = (experiment.host().plugins().join(name), plugins.join(name));
        fs::create_dir_all(&to).expect("can be made");
        for file in ["plugin.toml".to_owned(), format!("{name}.wasm")] {
            fs::copy(from.join(&file), to.join(&file)).expect("can be copied");
        }
    }
    // A custom section at the end changes only the hash.
    let component = plugins.join("calculator/calculator.wasm");
    let mut bytes = fs::read(&component).expect("was copied");
    bytes.extend([0, 2, 1, b'x']);
    fs::write(&component, bytes).expect("can be written");

    let config = experiment.path("config.toml");
    let changed = experiment.host().run([
        "train".as_ref(),
        config.as_os_str(),
        "--plugins".as_ref(),
        plugins.as_os_str(),
        "--run".as_ref(),
        experiment.path("run").as_os_str(),
        "--resume".as_ref(),
    ]);
    changed.refused_with(&["plugin calculator: was ", "--allow-changes"]);
}

#[test]
fn a_changed_task_file_is_a_change() {
    let experiment = Experiment::tiny();
    let rows = |answer: u8| {
        let row = |id| {
            json!({
                "id": format!("sum-{id}"), "source": "test", "tools": ["calculate"], "reference": answer.to_string(),
                "prompt": [{"role": "user", "content": format!("What is {id}?")}],
            })
        };
        [1, 2, 3].map(|id| row(id).to_string()).join("\n")
    };
    let tasks = experiment.write("tasks.jsonl", rows(1));
    let experiment = experiment
        .without("tasks")
        .without("plugins")
        .without("sft")
        .with("tasks.train", tasks.to_str().expect("a plain name"))
        .with("rl.steps", 1)
        .with("eval.every", 0);
    let run = experiment.train("run", &[]);

    fs::write(&tasks, rows(2)).expect("can be written");
    let change = format!(
        "tasks.train: the content of {} has changed: BLAKE3 was ",
        tasks.display()
    );
    let refused = || {
        let resumed = experiment.try_train("run", &["--resume"]);
        resumed.refused_with(&[&change, "files back as they were", "--allow-changes"]);
    };
    refused();
    let plugins = experiment.host().plugins().to_str().expect("a plain name");
    let measured = experiment
        .host()
        .run(["eval", run.as_str(), "--plugins", plugins]);
    let warned = format!("since the run began or was last resumed, {change}");
    assert!(measured.succeeded().stderr.contains(&warned), "{measured}");

    // A run of an earlier version has no hashes: it is accepted, and has them from then on.
    fs::remove_file(run.path().join("inputs.json")).expect("is there");
    let resumed = experiment.try_train("run", &["--resume"]);
    let warned = "kept no hashes of its inputs";
    assert!(resumed.succeeded().stderr.contains(warned), "{resumed}");
    fs::write(&tasks, rows(3)).expect("can be written");
    refused();
}

#[test]
fn a_run_in_use_is_left_alone() {
    let experiment = Experiment::tiny().with("sft.steps", 100_000);
    let mut running = experiment.start("run", &[]);
    // A process holds its run until it ends, even while it is stopped.
    running.until("sft 50/").signal(Signal::STOP);
    let process = format!("process {}", running.id());
    experiment
        .try_train("run", &["--resume"])
        .refused_with(&["is in use by another process", &process]);
    running.signal(Signal::KILL);
    drop(running);
    // The lock ends with the process.
    let config = experiment.with("sft.steps", 1);
    config
        .try_train("run", &["--resume"])
        .refused_with(&["sft.steps: was 100000, is 1"]);
}

#[test]
fn a_run_in_use_is_not_replaced() {
    let experiment = Experiment::tiny().with("sft.steps", 100_000);
    let mut running = experiment.start("run", &[]);
    running.until("sft 50/").signal(Signal::STOP);
    experiment
        .try_train("run", &["--overwrite", "--set", "sft.steps=1"])
        .refused_with(&["is in use by another process"]);
    assert!(!experiment.run("run").steps("sft").is_empty());
}
