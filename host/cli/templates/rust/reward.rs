//! Whether the answer is right, and how many calls it took.

use rlf_plugin::{ReferenceError, Task, Terms, Trajectory, plugin, reward};

#[reward]
fn grade(task: &Task, trajectory: &Trajectory) -> Result<Terms, ReferenceError> {
    // Each term has a name. The configuration weighs it: weights = { right = 1.0, brief = 0.1 }.
    let answer = trajectory.answer.as_deref().unwrap_or_default();
    let answer = answer.trim().to_lowercase();
    let accepted = task.accepted_answers()?;
    let is_right = accepted.iter().any(|text| text.trim().to_lowercase() == answer);
    let calls: usize = trajectory.turns().map(|turn| turn.calls.len()).sum();
    Ok(Terms::new()
        .term("right", f64::from(u8::from(is_right)))
        .term("brief", 1.0 / (1.0 + calls as f64)))
}

plugin!(reward: grade);

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;
    use rlf_plugin::testing;

    #[test]
    fn a_right_answer_without_calls() {
        let trajectory = testing::trajectory().answered("Paris");
        let score = testing::grade::<super::Plugin>(&testing::task(json!("paris")), trajectory);
        let score = score.unwrap();
        assert_eq!(score.get("right"), Some(1.0));
        assert_eq!(score.get("brief"), Some(1.0));
    }
}
