//! Trajectories for tests. Their sequences come from JSON, like those of a file, because a loss mask
//! cannot be built by hand.

use std::sync::Arc;

use rlf_dialogue::group::Group;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::score::{Excluded, ExclusionCause, Graded, Score};
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use serde_json::{Value, json};

/// A trajectory of a prompt, a turn, an observation and a turn. Ids, lengths and log-probabilities follow from the
/// arguments.
pub(crate) fn two_turns(group: usize, sample: usize, vocab: u32) -> Trajectory {
    let id = |i: usize| (group * 5 + sample * 3 + i * 7) as u32 % vocab;
    let turn = |first: usize, n: usize| {
        let ids: Vec<u32> = (first..first + n).map(id).collect();
        let log_probs: Vec<f32> = (0..n)
            .map(|i| -0.3 - 0.37 * ((first + i) % 5) as f32)
            .collect();
        json!({"model": {"sampled": {"ids": ids, "log_probs": log_probs}}})
    };
    let ids = |first: usize, n: usize| (first..first + n).map(id).collect::<Vec<u32>>();
    let sequence = json!([
        {"prompt": ids(0, 3)},
        turn(3, 2 + sample),
        {"observation": ids(9, 2 + group)},
        turn(14, 1 + sample % 2),
    ]);
    serde_json::from_value(json!({
        "id": format!("{group}/{sample}"),
        "task": format!("task-{group}"),
        "tools": [],
        "events": [],
        "sequences": [sequence],
        "answer": null,
        "finish": "answered",
        "excluded": null,
        "closed_turns": 0,
    }))
    .expect("a trajectory as a file would hold it")
}

#[allow(clippy::unnecessary_wraps)]
pub(crate) fn scored(reward: f64) -> Graded {
    Ok(Score {
        reward,
        success: reward > 0.5,
        ..Score::default()
    })
}

pub(crate) fn unscored(reason: &str) -> Graded {
    Err(Excluded {
        reason: reason.into(),
        cause: ExclusionCause::Reward,
    })
}

pub(crate) fn group(index: usize, trajectories: Vec<Trajectory>, scores: Vec<Graded>) -> Group {
    let task = Task {
        id: format!("task-{index}"),
        source: "test".into(),
        prompt: vec![Message::text(Role::User, "?")],
        tools: None,
        reference: serde_json::Value::Null,
        environment: None,
        setup: Value::Null,
        extra: serde_json::Map::new(),
    };
    Group {
        task: Arc::new(task),
        trajectories,
        scores,
        baseline: None,
    }
}
