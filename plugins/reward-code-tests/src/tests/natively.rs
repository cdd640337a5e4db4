//! The machine's `python3` instead of the interpreter: neither isolated nor limited, but Python.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io::Write as _};

use rlf_plugin::execute::{Captured, File, Outcome, Program, Report};
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Ended, Error, Grading, RewardPlugin as _, Score, Trajectory, testing};

use crate::Plugin;

/// Lets `python3` answer for interpreters in this test; returns false and prints a line if it is missing.
pub(super) fn python() -> bool {
    let there = Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success());
    if there {
        testing::execute_with(|program| Ok(execute(program)));
    } else {
        println!("skipped: there is no python3 on this machine's PATH");
    }
    there
}

pub(super) fn execute(program: &Program) -> Report {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "rlf-code-tests-{}-{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    let folder = env::temp_dir().join(name);
    fs::create_dir(&folder).unwrap();
    for module in &program.modules {
        fs::write(folder.join(format!("{}.py", module.name)), &module.data).unwrap();
    }
    for file in &program.files {
        fs::write(folder.join(&file.path), &file.data).unwrap();
    }
    fs::write(folder.join("main.py"), &program.code).unwrap();
    let mut child = Command::new("python3")
        .args(["-E", "-s", "-S", "main.py"])
        .args(program.arguments.iter().skip(1))
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(&program.stdin);
    let ran = child.wait_with_output().unwrap();
    let file = |path: &String| {
        let data = fs::read(folder.join(path)).ok()?;
        Some(File {
            path: path.clone(),
            data,
        })
    };
    let files = program.fetch.iter().filter_map(file).collect();
    fs::remove_dir_all(&folder).unwrap();
    let code = ran.status.code().unwrap_or(-1);
    Report {
        ended: if code == 0 { Ended::Ok } else { Ended::Failed },
        outcome: Some(if code == 0 {
            Outcome::Completed
        } else {
            Outcome::Exited(code)
        }),
        stderr: Captured {
            head: ran.stderr,
            tail: Vec::new(),
            omitted: 0,
        },
        files,
        ..Report::printed(ran.stdout)
    }
}

/// Grades one answer that consists of code only.
pub(super) fn grade(reference: Value, code: &str) -> Result<Score, Error> {
    grade_with(json!({ "code": "answer" }), reference, code)
}

pub(super) fn grade_with(config: Value, reference: Value, code: &str) -> Result<Score, Error> {
    testing::init_reward::<Plugin>(config).unwrap();
    let trajectory: Trajectory = testing::trajectory().answered(code);
    testing::grade::<Plugin>(&testing::task(reference), trajectory)
}

/// Grades two answers of one group.
pub(super) fn grade_both(reference: Value, codes: [&str; 2]) -> [Score; 2] {
    testing::init_reward::<Plugin>(json!({ "code": "answer" })).unwrap();
    let task = testing::task(reference);
    let group = codes.map(|code| testing::trajectory().answered(code));
    let grading = Grading {
        split: "test".to_owned(),
        step: 0,
        steps: 0,
        seed: 0,
    };
    let scores = Plugin::grade(&task, &group, &grading).unwrap();
    let scores: Vec<Score> = scores
        .into_iter()
        .map(|score| score.unwrap_or_else(|error| panic!("{}: {error:?}", task.reference)))
        .collect();
    scores.try_into().expect("one for each")
}

pub(super) fn metric(score: &Score, name: &str) -> f64 {
    let found = score.metrics.iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("no metric {name}")).value
}
