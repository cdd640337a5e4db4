//! The reward `reward-verdict`: what the trajectory's environment judged of its end.
//!
//! | term | is |
//! |---|---|
//! | `success` | 1 if the environment says that the task is done, else 0 |
//! | `score` | the environment's score, 0 to 1: partial credit where the task defines it |
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
        return Err(
            "the trajectory has no verdict, which only an environment gives: name the task's environment in the \
             configuration, and see that it implements `verify`; grade tasks without an environment with another reward"
                .to_owned(),
        );
    };
    Ok(Terms::new()
        .term("success", f64::from(u8::from(verdict.success)))
        .term("score", verdict.score))
}

plugin!(reward: verdict);

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;
    use rlf_plugin::{Trajectory, Verdict, error_message, testing};

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
        }
    }

    #[test]
    fn without_a_verdict_there_is_no_score_but_what_to_do() {
        let trajectory = testing::trajectory().answered("done");
        let graded = testing::grade::<Plugin>(&testing::task(json!(null)), trajectory);
        let message = error_message(&graded.unwrap_err()).to_owned();
        assert!(message.contains("name the task's environment"), "{message}");
    }
}
