//! The promises of the reward stack, tested end to end: from trajectories to scores.

use std::collections::BTreeMap;
use std::fs;

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::score::ExclusionCause;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, Observation, ToolCall};
use rlf_dialogue::trajectory::{Event, Finish, ModelTurn, Trajectory};
use rlf_plugins::registry::Registry;
use rlf_rewards::RewardLoader;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward_stack::RewardStack;
use rlf_stub_plugins::{ANY_OBJECT, ECHO, StubTool, sandbox};
use rlf_tools::ToolLoader;
use serde_json::{Value, json};
use tempfile::TempDir;

/// `em` gives 1 and 0.5, `half` gives 0.5 twice, `few` gives one score too few, and `nan` gives NaN.
fn registry() -> (TempDir, Registry) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| fs::write(directory.path().join(name), bytes).unwrap();
    write("em.wasm", rlf_stub_plugins::reward("1", 0));
    write("half.wasm", rlf_stub_plugins::reward("0.5", 0));
    write("few.wasm", rlf_stub_plugins::reward("1", -1));
    write("nan.wasm", rlf_stub_plugins::reward("nan", 0));
    write(
        "echo.wasm",
        rlf_stub_plugins::tools(&[StubTool {
            name: "echo",
            schema: ANY_OBJECT,
            hints: 0,
            body: ECHO,
        }]),
    );
    let registry = Registry::load(
        directory.path(),
        &BTreeMap::new(),
        &[&ToolLoader, &RewardLoader],
        &sandbox(),
    );
    assert_eq!(registry.problems(), []);
    (directory, registry)
}

fn stack(registry: &Registry, config: &str) -> Result<RewardStack, String> {
    RewardStack::new(registry, &rlf_config::parse(config, "test.toml").unwrap())
        .map_err(|error| error.to_string())
}

fn task() -> Task {
    Task {
        id: "q1".into(),
        source: "test".into(),
        prompt: vec![Message::text(Role::User, "What is 2 + 2?")],
        tools: None,
        reference: json!(["4"]),
        environment: None,
        setup: Value::Null,
        extra: serde_json::Map::new(),
    }
}

/// A trajectory with every kind of event.
fn trajectory(id: &str, excluded: Option<&str>) -> Trajectory {
    let call = ToolCall {
        call_id: format!("{id}/0/0"),
        name: "calculate".into(),
        arguments: json!({"expression": "2+2"}),
    };
    let turn = |text: &str, calls: Vec<ToolCall>| ModelTurn {
        text: text.into(),
        reasoning: Some("hm".into()),
        visible: text.into(),
        calls,
        malformed: vec![],
        tokens: 3,
        feedback: vec![],
    };
    let outcome = CallOutcome {
        call_id: call.call_id.clone(),
        name: "calculate".into(),
        ended: Ended::Ok,
        fault: Fault::None,
        observation: Some(Observation::text("4", false)),
        step_reward: Some(0.5),
        state: None,
        detail: None,
        wall_us: 10,
        component: "ab".into(),
        nested: Vec::new(),
    };
    Trajectory {
        id: id.into(),
        task: "q1".into(),
        tools: vec![],
        events: vec![
            Event::Turn(turn("call", vec![call])),
            Event::Outcome(outcome),
            Event::User(Message::text(Role::User, "Go on.")),
            Event::Turn(turn("4", vec![])),
        ],
        sequences: vec![],
        answer: Some("4".into()),
        finish: Finish::Answered,
        excluded: excluded.map(Into::into),
        closed_turns: 0,
        final_state: None,
        verdict: None,
        unjudged: None,
    }
}

fn grading() -> Grading {
    Grading {
        split: Split::Train,
        step: 1,
        steps: 10,
        seed: 5,
    }
}

#[tokio::test]
async fn a_group_is_graded_by_all_rewards_and_every_term_is_kept() {
    let (_directory, registry) = registry();
    let stack = stack(
        &registry,
        r#"
success = "em.em >= 1"
[[stack]]
plugin = "em"
weights = { em = 1.0, f1 = 0.5 }
[[stack]]
plugin = "half"
weight = 0.1
gate = "em.f1 >= 1"
[[stack]]
plugin = "half"
term = "f1"
weight = 0.2
gate = "em.em >= 1"
"#,
    )
    .unwrap();
    let group = [
        trajectory("a", None),
        trajectory("b", Some("a tool was down")),
        trajectory("c", None),
    ];
    let graded = stack.grade(&task(), &group, &grading()).await;
    assert_eq!(graded.len(), 3);
    for index in [0, 2] {
        let score = graded[index].as_ref().unwrap();
        assert_eq!(score.reward, 1.0 + 0.5 * 0.5 + 0.2 * 0.5);
        assert!(score.success);
        let terms: Vec<(&str, f64)> = score.terms.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        assert_eq!(
            terms,
            [
                ("em.em", 1.0),
                ("em.f1", 0.5),
                ("half.em", 0.5),
                ("half.f1", 0.5)
            ]
        );
    }
    let excluded = graded[1].as_ref().unwrap_err();
    assert_eq!(
        (excluded.reason.as_str(), excluded.cause),
        ("a tool was down", ExclusionCause::Rollout)
    );
    // One call for each plugin, for any number of entries and trajectories.
    let counts = stack.counts();
    assert_eq!(
        (
            counts["em"].ended(Ended::Ok),
            counts["half"].ended(Ended::Ok)
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn a_reward_that_fails_excludes_and_never_scores_zero() {
    let (_directory, registry) = registry();
    let config = |plugin: &str| {
        format!("success = \"{plugin}.em >= 1\"\n[[stack]]\nplugin = \"{plugin}\"\n")
    };
    let group = [trajectory("a", None), trajectory("b", None)];

    let few = stack(&registry, &config("few"))
        .unwrap()
        .grade(&task(), &group, &grading())
        .await;
    for graded in few {
        let excluded = graded.unwrap_err();
        assert_eq!(
            excluded.reason,
            "reward `few` failed: it returned 1 scores for 2 trajectories"
        );
        assert_eq!(excluded.cause, ExclusionCause::RewardCall);
    }
    let nan = stack(&registry, &config("nan"))
        .unwrap()
        .grade(&task(), &group, &grading())
        .await;
    for graded in nan {
        let excluded = graded.unwrap_err();
        assert_eq!(
            excluded.reason,
            "reward `nan` gave no score: term `em` is NaN, not a finite number"
        );
        assert_eq!(excluded.cause, ExclusionCause::Reward);
    }
}

#[test]
fn a_stack_over_what_is_not_there_is_refused_with_what_is() {
    let (_directory, registry) = registry();
    let refusal = |plugin: &str| {
        stack(
            &registry,
            &format!("success = \"{plugin}.x >= 1\"\n[[stack]]\nplugin = \"{plugin}\"\n"),
        )
        .unwrap_err()
    };
    assert_eq!(
        refusal("hald"),
        "[[rewards.stack]] entry 1: there is no plugin `hald`; did you mean `half`?"
    );
    // A misspelt plugin name is reported before conditions on plugins without an entry.
    let other = "success = \"half.value >= 1\"\n[[stack]]\nplugin = \"hald\"\n";
    assert_eq!(stack(&registry, other).unwrap_err(), refusal("hald"));
    assert_eq!(
        refusal("judge-model"),
        "[[rewards.stack]] entry 1: there is no plugin `judge-model`; there are: em, few, half, nan; \
         `cargo xtask plugins` builds those that ship with rlf-host"
    );
    assert_eq!(
        refusal("echo"),
        "[[rewards.stack]] entry 1: plugin `echo` is a tool, not a reward"
    );
}
