//! A reward that gives invalid results, for tests of the host.
//!
//! ```toml
//! [plugins.bad-reward.config]
//! mode = "nan"   # "infinite", "too-few", "too-many", "error", "refuse", "twice", "trap", "loop", "slow" or "none"
//! ```
//!
//! A trajectory whose answer is `good` scores 1 in every mode that looks at trajectories one by one.

use rlf_plugin::serde::Deserialize;
use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
enum Mode {
    /// Behaves.
    None,
    /// A term that is not a number.
    Nan,
    /// A term that is infinite.
    Infinite,
    /// Fewer results than trajectories.
    TooFew,
    /// More results than trajectories.
    TooMany,
    /// An error for each trajectory.
    Error,
    /// The same term twice.
    Twice,
    /// Panics.
    Trap,
    /// Never ends.
    Loop,
    /// Never ends on an answer; a trajectory without one scores 0.
    Slow,
    /// Refuses its configuration.
    Refuse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, crate = "rlf_plugin::serde")]
struct Config {
    mode: Mode,
}

fn init(config: Config) -> Result<Mode, String> {
    match config.mode {
        Mode::Refuse => Err("refused, as asked".to_owned()),
        mode => Ok(mode),
    }
}

/// Grades the group in the way that the configuration asks for.
#[reward]
fn bad_reward(_task: &Task, group: &[Trajectory], mode: &Mode) -> Vec<Result<Terms, String>> {
    let mut scores: Vec<_> = group
        .iter()
        .map(|trajectory| one(trajectory, *mode))
        .collect();
    match mode {
        Mode::TooFew => {
            scores.pop();
        }
        Mode::TooMany => scores.push(Ok(Terms::new().term("value", 1.0))),
        _ => {}
    }
    scores
}

fn one(trajectory: &Trajectory, mode: Mode) -> Result<Terms, String> {
    let value = |value: f64| Ok(Terms::new().term("value", value));
    if trajectory.answer.as_deref() == Some("good") {
        return value(1.0);
    }
    match mode {
        Mode::Nan => value(f64::NAN),
        Mode::Infinite => value(f64::INFINITY),
        Mode::Error => Err("an error, as asked".to_owned()),
        Mode::Twice => Ok(Terms::new().term("value", 0.0).term("value", 1.0)),
        Mode::Trap => panic!("a panic in a reward"),
        Mode::Slow if trajectory.answer.is_none() => value(0.0),
        Mode::Loop | Mode::Slow => loop {
            std::hint::black_box(());
        },
        Mode::None | Mode::TooFew | Mode::TooMany | Mode::Refuse => value(0.0),
    }
}

plugin!(init: init, reward: bad_reward);

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;
    use rlf_plugin::{error_message, testing};

    use crate::Plugin;

    fn grade(mode: &str, answer: &str) -> Result<f64, String> {
        testing::init_reward::<Plugin>(json!({ "mode": mode })).unwrap();
        testing::grade::<Plugin>(
            &testing::task(json!("x")),
            testing::trajectory().answered(answer),
        )
        .map(|score| score.get("value").unwrap())
        .map_err(|error| error_message(&error).to_owned())
    }

    #[test]
    fn each_mode_is_bad_in_its_own_way() {
        assert_eq!(grade("none", "x"), Ok(0.0));
        assert_eq!(grade("infinite", "x"), Ok(f64::INFINITY));
        assert!(grade("nan", "x").unwrap().is_nan());
        assert_eq!(grade("nan", "good"), Ok(1.0));
        assert_eq!(grade("error", "x"), Err("an error, as asked".to_owned()));
        assert!(grade("too-few", "x").is_err() && grade("too-many", "x").is_err());
    }
}
