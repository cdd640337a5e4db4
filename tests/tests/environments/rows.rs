//! Rows that the forge makes, played as training plays them: with their gold calls Solve-F1 is 1, and with no call 0.

use std::collections::BTreeMap;
use std::fs;

use crate::KINDS;
use crate::test_host::turn;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, ToolCall};
use rlf_dialogue::trajectory::{Event, Finish, ModelTurn, Trajectory};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward::grade_alone;
use rlf_sandbox::{Sandbox, SandboxConfig};
use rlf_tests::Host;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::Value;
use xtask::project::Project;

const GRANTS: &str = "
[functions]
plugin = \"python\"
environment = {}
[published]
plugin = \"reward-ftrl\"
config.matching = \"published\"
[strict]
plugin = \"reward-ftrl\"
config.matching = \"strict\"
";

fn spoken(calls: Vec<ToolCall>, text: &str) -> Event {
    Event::Turn(ModelTurn {
        text: text.into(),
        reasoning: None,
        visible: text.into(),
        calls,
        malformed: Vec::new(),
        tokens: 1,
        feedback: Vec::new(),
    })
}

fn trajectory(task: &Task, calls: Vec<(ToolCall, CallOutcome)>, answer: &str) -> Trajectory {
    let mut events = Vec::new();
    for (call, outcome) in calls {
        events.push(spoken(vec![call], ""));
        events.push(Event::Outcome(outcome));
    }
    events.push(spoken(Vec::new(), answer));
    Trajectory {
        id: task.id.clone(),
        task: task.id.clone(),
        tools: vec![],
        events,
        sequences: vec![],
        answer: Some(answer.into()),
        finish: Finish::Answered,
        excluded: None,
        closed_turns: 0,
        final_state: None,
        verdict: None,
        unjudged: None,
    }
}

#[tokio::test]
async fn gold_calls_of_rows_solve_them_and_no_calls_do_not() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let plugins = host.plugins().to_str().expect("a plain name");
    for (complexity, seed) in [("published", "1"), ("none", "2")] {
        let output = path(complexity);
        host.run([
            "forge",
            "rows",
            "--plugins",
            plugins,
            "--count",
            "16",
            "--seed",
            seed,
            "--complexity",
            complexity,
            "--output",
            &output,
        ])
        .succeeded();
    }
    let grants: BTreeMap<String, PluginGrants> =
        rlf_config::parse(GRANTS, "grants.toml").expect("well written");
    let project = Project::find().expect("tests run inside a checkout");
    let sandbox = Sandbox::new(&SandboxConfig {
        workers: Some(2),
        sessions: Some(4),
        instances: Some(8),
        cache: Some(rlf_tests::component_cache(&project)),
        ..SandboxConfig::default()
    })
    .expect("the machine can hold a small sandbox");
    let registry = Registry::load(host.plugins(), &grants, KINDS, &sandbox);
    let environments = Environments::new(&registry, &sandbox, &EnvironmentConfig::default());
    let tools = ToolManager::new(&registry, &ToolManagerConfig::default()).expect("the defaults");
    let grading = Grading {
        split: Split::Test,
        step: 0,
        steps: 1,
        seed: 1,
    };
    let mut graded = 0;
    for complexity in ["published", "none"] {
        for split in ["train", "validation", "test"] {
            let file = folder
                .path()
                .join(complexity)
                .join(format!("tasks-{split}.jsonl"));
            for line in fs::read_to_string(file).expect("it was written").lines() {
                let task: Task = serde_json::from_str(line).expect("a task");
                let mut session = environments
                    .open("functions", "test", &task.setup, 1)
                    .await
                    .expect("the row's functions load");
                let mut calls = Vec::new();
                for (number, gold) in
                    (0..).zip(task.reference["calls"].as_array().expect("gold calls"))
                {
                    let call = ToolCall {
                        call_id: format!("test/{number}/0"),
                        name: gold["name"].as_str().expect("a name").into(),
                        arguments: gold["arguments"].clone(),
                    };
                    calls.push((call.clone(), session.call(call, &turn(number)).await));
                }
                let answer = task.reference["answer"]
                    .as_str()
                    .expect("a text")
                    .to_owned();
                let solved = trajectory(&task, calls, &answer);
                let idle = trajectory(&task, Vec::new(), "I do not know.");
                for alias in ["published", "strict"] {
                    let reward = registry.plugin(alias).expect("it is loaded");
                    let score = async |trajectory: &Trajectory| {
                        let score = grade_alone(reward, &tools, &task, trajectory, grading).await;
                        let terms: BTreeMap<String, f64> =
                            score.expect("a score").terms.into_iter().collect();
                        (terms["solve_f1"], terms["final"])
                    };
                    assert_eq!(score(&solved).await, (1.0, 1.0), "{alias}: {line}");
                    assert_eq!(score(&idle).await, (0.0, 0.0), "{alias}: {line}");
                }
                graded += 1;
            }
        }
    }
    assert_eq!(graded, 32);
    assert!(
        fs::read_to_string(path("published/rows.jsonl")).is_ok_and(|text| {
            text.lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        })
    );
}
