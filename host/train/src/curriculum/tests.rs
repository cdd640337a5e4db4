//! Estimates by hand, frequencies of draws against their shares, and states that go on.

use serde_json::json;

use super::*;
use crate::fixtures::{group, scored, two_turns, unscored};

/// Tasks `task-0`, `task-1` and so on, each third one of the level `hard`.
fn curriculum(count: usize, config: CurriculumConfig) -> Curriculum {
    let tasks = (0..count).map(|number| {
        let level = if number % 3 == 0 { "hard" } else { "easy" };
        (format!("task-{number}"), level.to_owned())
    });
    Curriculum::new(config, 11, tasks)
}

/// A group of a task, with these rewards; a reward above 0.5 is a success.
fn played(task: usize, rewards: &[f64]) -> Group {
    let trajectories = (0..rewards.len()).map(|sample| two_turns(0, sample, 11));
    let scores = rewards.iter().map(|reward| scored(*reward)).collect();
    group(task, trajectories.collect(), scores)
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

#[test]
fn an_estimate_is_the_levels_success_until_the_task_was_played_and_fades_back() {
    let mut curriculum = curriculum(6, CurriculumConfig::default());
    assert!(
        curriculum
            .estimates(0)
            .iter()
            .all(|estimate| close(*estimate, 0.5))
    );
    // Two of eight: the level is (4 x 0.5 + 2) / (4 + 8), and the task (4 x 1/3 + 2) / (4 + 8).
    curriculum.learn(3, &[played(0, &[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])]);
    let estimates = curriculum.estimates(3);
    assert!(
        close(estimates[0], (4.0 / 3.0 + 2.0) / 12.0),
        "{estimates:?}"
    );
    assert!(close(estimates[3], 1.0 / 3.0), "{estimates:?}");
    assert!(close(estimates[1], 0.5), "the other level: {estimates:?}");
    // After 20 steps one of four is left: (2 + 1) / 8 and (4 x 0.375 + 1) / 8.
    let estimates = curriculum.estimates(23);
    assert!(close(estimates[3], 0.375), "{estimates:?}");
    assert!(close(estimates[0], 0.3125), "{estimates:?}");
    // What has faded is forgotten, and a checkpoint does not grow with it.
    curriculum.learn(400, &[played(1, &[1.0, 0.0])]);
    let state = curriculum.state();
    let kept: Vec<&String> = state["tasks"].as_object().unwrap().keys().collect();
    assert_eq!(kept, ["task-1"]);
}

#[test]
fn excluded_trajectories_and_unknown_tasks_teach_nothing() {
    let mut curriculum = curriculum(3, CurriculumConfig::default());
    let mut lost = played(1, &[1.0, 1.0, 1.0]);
    lost.scores[0] = unscored("the judge was unavailable");
    lost.trajectories[1].excluded = Some("the network was down".into());
    curriculum.learn(0, &[lost, played(77, &[1.0, 1.0])]);
    // One success is left: (2 + 1) / 5, and (4 x 0.6 + 1) / 5.
    let estimates = curriculum.estimates(0);
    assert!(close(estimates[2], 0.6), "{estimates:?}");
    assert!(close(estimates[1], 0.68), "{estimates:?}");
}

/// Steps whose draws are counted.
const STEPS: u64 = 4000;
/// Draws of a step.
const COUNT: usize = 6;

#[test]
fn tasks_are_drawn_as_often_as_their_shares_say_and_every_task_is_met() {
    let mut curriculum = curriculum(60, CurriculumConfig::default());
    // The easy ones are solved, the hard ones are not: task 3 fails always, task 6 half of the time.
    let solved = (0..60).filter(|task| task % 3 != 0);
    let mut groups: Vec<Group> = solved.map(|task| played(task, &[1.0; 8])).collect();
    groups.push(played(3, &[0.0; 8]));
    groups.push(played(6, &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    curriculum.learn(0, &groups);

    let mut counts = [0_usize; 60];
    let mut shares = [0.0; 60];
    for step in 1..=STEPS {
        // All steps have the estimates of step 1, because nothing is learnt.
        let mut now = curriculum.clone();
        for outcomes in now.played.values_mut().chain(&mut now.level_outcomes) {
            outcomes.step += step;
        }
        let drawn = now.draw(step, COUNT);
        assert_eq!(drawn.len(), COUNT);
        for draw in &drawn {
            counts[draw.task] += 1;
            shares[draw.task] = draw.share;
        }
        let mut tasks: Vec<usize> = drawn.iter().map(|draw| draw.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let rare = drawn.iter().all(|draw| draw.share < 1.0 / COUNT as f64);
        assert!(!rare || tasks.len() == COUNT, "a task was drawn twice");
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    let draws = (STEPS * COUNT as u64) as f64;
    for (task, (count, share)) in counts.iter().zip(shares).enumerate() {
        // Systematic draws vary less than independent ones, whose deviation this is. One of 60 shares may be far off by chance.
        let deviation = (share * (1.0 - share) / draws).sqrt();
        let observed = *count as f64 / draws;
        assert!(
            (observed - share).abs() < 5.0 * deviation,
            "{task}: {observed} for {share}"
        );
    }
    let floor = 0.1 / 60.0;
    assert!(shares.iter().all(|share| *share > floor));
    assert!(
        shares[6] > 4.0 * shares[1],
        "half solved is drawn more than solved: {shares:?}"
    );
    assert!(
        shares[6] > shares[3],
        "and more than never solved: {shares:?}"
    );
    assert!(
        shares[9] > shares[1],
        "hard ones were not played yet: {shares:?}"
    );
}

#[test]
fn a_floor_of_one_draws_uniformly_whatever_was_learnt() {
    let config = CurriculumConfig {
        floor: 1.0,
        ..CurriculumConfig::default()
    };
    let mut curriculum = curriculum(10, config);
    curriculum.learn(0, &[played(0, &[1.0; 8]), played(1, &[0.0; 8])]);
    for step in 0..50 {
        // Twenty draws of ten tasks: each exactly twice.
        let mut counts = [0; 10];
        for draw in curriculum.draw(step, 20) {
            counts[draw.task] += 1;
        }
        assert_eq!(counts, [2; 10]);
    }
}

#[test]
fn a_curriculum_that_resumes_from_its_written_state_draws_and_learns_the_same() {
    let mut whole = curriculum(30, CurriculumConfig::default());
    for step in 0..7 {
        let drawn = whole.draw(step, 5);
        let groups: Vec<Group> = drawn
            .iter()
            .map(|draw| played(draw.task, &[1.0, (draw.task % 2) as f64, 0.0]))
            .collect();
        whole.learn(step, &groups);
    }
    let written = whole.state().to_string();
    let mut resumed = curriculum(30, CurriculumConfig::default());
    resumed
        .resume(&serde_json::from_str(&written).unwrap())
        .unwrap();
    for step in 7..20 {
        let drawn = whole.draw(step, 5);
        assert_eq!(drawn, resumed.draw(step, 5));
        let groups: Vec<Group> = drawn
            .iter()
            .map(|draw| played(draw.task, &[1.0, 0.0, 0.0]))
            .collect();
        whole.learn(step, &groups);
        resumed.learn(step, &groups);
        assert_eq!(whole.state(), resumed.state());
    }
    // Other draws than those of a curriculum that has learnt nothing.
    let fresh = curriculum(30, CurriculumConfig::default());
    assert!((7..20).any(|step| fresh.draw(step, 5) != whole.draw(step, 5)));
    let broken = json!({"levels": {}, "tasks": {"task-1": {"successes": 1.0}}});
    assert!(resumed.resume(&broken).is_err());
}

#[test]
fn groups_without_variance_are_counted_as_drawn_and_as_uniform_draws_would_have_them() {
    let mut curriculum = curriculum(6, CurriculumConfig::default());
    curriculum.learn(0, &[played(0, &[1.0; 8])]);
    let draw = |task: usize, share: f64| Draw {
        task,
        share,
        estimate: 0.25 * task as f64,
    };
    // The task of the last group lost all but one trajectory, and says nothing.
    let drawn = [draw(0, 0.1), draw(1, 0.4), draw(2, 0.5)];
    let mut lost = played(2, &[0.3, 0.7]);
    lost.scores[0] = unscored("the judge was unavailable");
    let groups = [played(0, &[0.3, 0.3]), played(1, &[0.3, 0.7]), lost];
    let measured: BTreeMap<String, f64> =
        curriculum.metrics(1, &drawn, &groups).into_iter().collect();
    assert!(close(measured["curriculum/estimate"], 0.25));
    let all = curriculum.estimates(1);
    let mean = all.iter().sum::<f64>() / 6.0;
    assert!(close(measured["curriculum/estimate_uniform"], mean));
    assert!(close(measured["curriculum/no_variance"], 0.5));
    // Weights 10 and 2.5.
    assert!(close(measured["curriculum/no_variance_uniform"], 0.8));
    let none = curriculum.metrics(1, &drawn[2..], &groups[2..]);
    assert!(none.iter().all(|(name, _)| !name.contains("no_variance")));
}

#[test]
fn a_level_is_the_kind_with_what_the_task_says_about_its_difficulty() {
    let task = |extra: Value| -> Task {
        serde_json::from_value(json!({
            "id": "t", "source": "forge", "prompt": [], "reference": null, "extra": extra,
        }))
        .unwrap()
    };
    assert_eq!(level(&task(json!({}))), "forge");
    assert_eq!(level(&task(json!({"kind": "seen", "level": 4}))), "seen 4");
    assert_eq!(level(&task(json!({"level": "two hops"}))), "forge two hops");
}
