//! The reward `reward-verdict`: the environment's verdict on the end of the trajectory, and its step rewards.
//!
//! | term | is |
//! |---|---|
//! | `success` | 1 if the environment says that the task is done, else 0 |
//! | `score` | the environment's score, 0 to 1: partial credit where the task defines it |
//! | `steps` | the sum of the rewards that the environment gave for calls and words, each of them also at its event; 0 of one that gives none |
//!
//! A trajectory without a verdict is an error, not a 0. There is nothing to configure:
//!
//! ```toml
//! [rewards]
//! success = "reward-verdict.success >= 1"
//! ```

use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};

/// Passes on the environment's verdict.
#[reward]
fn verdict(_task: &Task, trajectory: &Trajectory) -> Result<Terms, String> {
    let Some(verdict) = &trajectory.verdict else {
        return Err(match trajectory.unjudged() {
            Some(why) => format!("the environment gave no verdict: {why}"),
            None => {
                "the trajectory has no verdict, which only an environment gives: name the task's environment in the \
                 configuration; grade tasks without one with another reward"
                    .to_owned()
            }
        });
    };
    let steps = trajectory.step_rewards();
    let terms = Terms::new()
        .term("success", f64::from(u8::from(verdict.success)))
        .term("score", verdict.score)
        // An empty sum is -0.
        .term(
            "steps",
            steps.iter().fold(0.0, |sum, (_, reward)| sum + reward),
        );
    Ok(steps.into_iter().fold(terms, |terms, (event, reward)| {
        terms.at_event(event, "steps", reward)
    }))
}

plugin!(reward: verdict);

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;
    use rlf_plugin::{
        CallResult, Ended, Event, ModelTurn, Trajectory, Verdict, error_message, testing,
    };

    use super::Plugin;

    fn judged(success: bool, score: f64) -> Trajectory {
        Trajectory {
            verdict: Some(Verdict {
                success,
                score,
                reason: "the door is shut".to_owned(),
            }),
            ..testing::trajectory()
        }
    }

    #[test]
    fn the_verdict_is_passed_on_as_it_is() {
        for (success, score) in [(true, 1.0), (false, 0.75), (true, 0.5), (false, 0.0)] {
            let graded =
                testing::grade::<Plugin>(&testing::task(json!(null)), judged(success, score));
            let graded = graded.unwrap();
            assert_eq!(graded.get("success"), Some(f64::from(u8::from(success))));
            assert_eq!(graded.get("score"), Some(score));
            assert!(graded.get("steps").unwrap().is_sign_positive());
        }
    }

    #[test]
    fn rewards_of_calls_and_words_are_summed_and_stand_at_their_events() {
        let spoken = ModelTurn {
            text: "hello".to_owned(),
            reasoning: None,
            visible: "hello".to_owned(),
            calls: Vec::new(),
            malformed: Vec::new(),
            tokens: 1,
        };
        let called = CallResult {
            call_id: "c".to_owned(),
            ended: Ended::Ok,
            observation: None,
            step_reward: Some(0.5),
        };
        let mut trajectory = judged(true, 1.0);
        trajectory.events = vec![
            Event::Turn(spoken.clone()),
            Event::Outcome(called),
            Event::Turn(spoken),
        ];
        let given = "[[2,1.0],[2,-0.25]]".to_owned();
        trajectory.extra = vec![("step-rewards-of-words".to_owned(), given)];
        let graded = testing::grade::<Plugin>(&testing::task(json!(null)), trajectory).unwrap();
        assert_eq!(graded.get("steps"), Some(1.25));
        let at: Vec<(u32, f64)> = graded
            .per_event
            .iter()
            .map(|(event, term)| (*event, term.value))
            .collect();
        assert_eq!(at, [(1, 0.5), (2, 1.0), (2, -0.25)]);
    }

    #[test]
    fn without_a_verdict_there_is_no_score_but_what_to_do() {
        let trajectory = testing::trajectory().answered("done");
        let graded = testing::grade::<Plugin>(&testing::task(json!(null)), trajectory);
        let message = error_message(&graded.unwrap_err()).to_owned();
        assert!(message.contains("name the task's environment"), "{message}");
        let mut trajectory = testing::trajectory();
        trajectory.extra = vec![("unjudged".to_owned(), "\"no count\"".to_owned())];
        let graded = testing::grade::<Plugin>(&testing::task(json!(null)), trajectory);
        let message = error_message(&graded.unwrap_err()).to_owned();
        assert_eq!(message, "the environment gave no verdict: no count");
    }
}
