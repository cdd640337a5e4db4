//! A reward that asks the calculator whether the answer equals the value of the reference, an expression.

use rlf_plugin::serde_json::json;
use rlf_plugin::{Content, Task, Terms, Trajectory, plugin, reward, tools};

/// 1 if the answer is the value of the reference's expression.
#[reward]
fn recalculated(task: &Task, trajectory: &Trajectory) -> Result<Terms, String> {
    let expression = task.reference.trim_matches('"');
    let seen = tools::invoke_one("calculate", &json!({ "expression": expression }))
        .map_err(|error| rlf_plugin::error_message(&error).to_owned())?;
    let value = seen.content.iter().find_map(|content| match content {
        Content::Text(text) => Some(text.trim()),
        _ => None,
    });
    let right = trajectory.answer.as_deref().map(str::trim) == value;
    Ok(Terms::new().term("right", f64::from(u8::from(right))))
}

plugin!(reward: recalculated);
