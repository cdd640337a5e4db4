//! An invalid result of a reward excludes the trajectory, with the reason, and never scores 0.

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::score::{ExclusionCause, Graded};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::{Finish, Trajectory};
use rlf_rewards::grading::Grading;
use rlf_rewards::reward_stack::RewardStack;
use serde_json::{Value, json};

use crate::test_host::{Plan, TestHost};

/// Every mode in which the guest gives one bad result, and the message about that trajectory.
const ONE_BY_ONE: [(&str, &str); 6] = [
    ("nan", "term `value` is NaN, not a finite number"),
    ("infinite", "term `value` is inf, not a finite number"),
    ("error", "an error, as asked"),
    ("twice", "term `value` was returned twice"),
    // These stop or break the call for the whole group; each trajectory is then graded alone.
    ("trap", "trap"),
    ("loop", "timeout"),
];

/// Modes that spoil the whole group.
const ALL_AT_ONCE: [(&str, &str); 2] = [("too-few", "scores for"), ("too-many", "scores for")];

fn host() -> TestHost {
    let mut plan = Plan::new().guest("bad-reward");
    for (mode, _) in ONE_BY_ONE.iter().chain(&ALL_AT_ONCE).chain(&[("none", "")]) {
        plan = plan.grants(&format!(
            "[{mode}]\nplugin = \"bad-reward\"\nconfig.mode = \"{mode}\"\nlimits.cpu_ms = 200\nlimits.wall_ms = 60000\n"
        ));
    }
    plan.open()
}

fn trajectory(answer: &str) -> Trajectory {
    Trajectory {
        id: format!("t/{answer}"),
        task: "q".into(),
        tools: vec![],
        events: vec![],
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

/// Grades one correct trajectory and one that is not.
async fn grade(host: &TestHost, plugin: &str) -> Vec<Graded> {
    let config = format!("success = \"{plugin}.value >= 1\"\n[[stack]]\nplugin = \"{plugin}\"\n");
    let config = rlf_config::parse(&config, "rewards.toml").expect("well written");
    let stack = RewardStack::new(&host.registry, &config).expect("it is there");
    let task = Task {
        id: "q".into(),
        source: "test".into(),
        prompt: vec![Message::text(Role::User, "?")],
        tools: None,
        reference: json!("good"),
        environment: None,
        setup: Value::Null,
        extra: serde_json::Map::new(),
    };
    let grading = Grading {
        split: Split::Train,
        step: 0,
        steps: 1,
        seed: 1,
    };
    let group = ["good", "bad"].map(trajectory);
    let graded = host
        .beside_a_neighbour(stack.grade(&task, &group, &grading))
        .await;
    assert_eq!(graded.len(), 2);
    graded
}

#[tokio::test]
async fn a_bad_score_excludes_its_own_trajectory_alone() {
    let host = host();
    for (mode, said) in ONE_BY_ONE {
        let graded = grade(&host, mode).await;
        assert_eq!(graded[0].as_ref().unwrap().reward, 1.0, "{mode}");
        let excluded = graded[1].as_ref().unwrap_err();
        assert_eq!(excluded.cause, ExclusionCause::Reward, "{mode}");
        assert!(
            excluded.reason.contains(said),
            "{mode}: {}",
            excluded.reason
        );
    }
    let graded = grade(&host, "none").await;
    assert_eq!(
        graded[1].as_ref().unwrap().reward,
        0.0,
        "a reward that behaves may give 0"
    );
}

#[tokio::test]
async fn what_alone_goes_beyond_the_limits_scores_what_the_manifest_says() {
    let manifest = "kind = \"reward\"\n[beyond_limits]\nvalue = -0.5\n";
    let mut plan = Plan::new();
    for mode in ["slow", "loop", "trap"] {
        plan = plan.guest_as("bad-reward", mode, manifest).grants(&format!(
            "[{mode}]\nconfig.mode = \"{mode}\"\nlimits.cpu_ms = 200\nlimits.wall_ms = 60000\n"
        ));
    }
    let host = plan.open();
    let graded = grade(&host, "slow").await;
    assert_eq!(graded[0].as_ref().unwrap().reward, 1.0);
    let blamed = graded[1].as_ref().unwrap();
    assert_eq!(blamed.reward, -0.5);
    assert_eq!(blamed.metrics, [("slow.beyond_limits".to_owned(), 1.0)]);
    // A task that cannot be graded is not the fault of any answer, and neither is a reward that breaks.
    for (mode, said) in [
        ("loop", "raise `cpu_ms` in [plugins.loop.limits]"),
        ("trap", "trap"),
    ] {
        let graded = grade(&host, mode).await;
        assert_eq!(graded[0].as_ref().unwrap().reward, 1.0, "{mode}");
        let excluded = graded[1].as_ref().unwrap_err();
        assert!(
            excluded.reason.contains(said),
            "{mode}: {}",
            excluded.reason
        );
    }
}

#[tokio::test]
async fn a_grading_that_fails_excludes_the_group() {
    let host = host();
    for (mode, said) in ALL_AT_ONCE {
        for graded in grade(&host, mode).await {
            let excluded = graded.unwrap_err();
            assert_eq!(excluded.cause, ExclusionCause::RewardCall, "{mode}");
            assert!(
                excluded.reason.contains(said),
                "{mode}: {}",
                excluded.reason
            );
        }
    }
}
