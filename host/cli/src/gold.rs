//! Demonstrations from gold calls: a task that names the calls which solve it is demonstrated by making them, one a turn,
//! in its environment.

use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::task::Task;
use rlf_rollout::demonstrate::Demonstrator;
use rlf_rollout::shown_tools::Showing;
use serde_json::{Value, json};

use crate::commands::data::gold_calls;

/// What is said when all calls are made.
const DONE: &str = "Done.";

/// Makes a task's gold calls.
pub(crate) struct GoldCalls {
    calls: std::vec::IntoIter<(String, Value)>,
    last: String,
}

impl GoldCalls {
    /// None of a task that names no calls, or calls of tools that its model is not offered.
    pub(crate) fn of(task: &Task, rule: AnswerRule, showing: &Showing) -> Option<Self> {
        let calls = gold_calls(&task.reference);
        let shown = |(name, arguments): (String, Value)| {
            let name = showing.shown_name(&name)?.to_owned();
            Some((name, arguments))
        };
        let calls: Vec<(String, Value)> = calls.into_iter().map(shown).collect::<Option<_>>()?;
        if calls.is_empty() || task.environment.is_none() {
            return None;
        }
        // What the answer has to contain, where the data set says it.
        let outputs = task.reference["outputs"].as_array();
        let outputs: Vec<&str> = outputs
            .map(|outputs| outputs.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let answer = task.reference["answer"].as_str();
        let said = match (answer, outputs.as_slice()) {
            (Some(answer), _) => answer.to_owned(),
            (None, []) => DONE.to_owned(),
            (None, outputs) => outputs.join(", "),
        };
        let last = match rule {
            AnswerRule::Tag => format!("<answer>{said}</answer>"),
            AnswerRule::Boxed => format!("\\boxed{{{said}}}"),
            AnswerRule::FinalTurn => said,
        };
        Some(Self {
            calls: calls.into_iter(),
            last,
        })
    }
}

impl Demonstrator for GoldCalls {
    fn next_turn(&mut self, _observations: &[String]) -> Result<String, String> {
        Ok(match self.calls.next() {
            Some((name, arguments)) => {
                let call = json!({"name": name, "arguments": arguments});
                format!("<tool_call>\n{call}\n</tool_call>")
            }
            None => self.last.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(reference: &Value) -> Task {
        serde_json::from_value(json!({
            "id": "t", "source": "s", "prompt": [], "reference": reference, "environment": "w",
        }))
        .unwrap()
    }

    #[test]
    fn gold_calls_are_made_one_a_turn_and_then_it_answers() {
        let row =
            task(&json!({"calls": [{"name": "f", "arguments": {"x": 1}}], "outputs": ["10", "a"]}));
        let mut gold = GoldCalls::of(&row, AnswerRule::FinalTurn, &Showing::default()).unwrap();
        assert_eq!(
            gold.next_turn(&[]).unwrap(),
            "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"x\":1}}\n</tool_call>"
        );
        assert_eq!(gold.next_turn(&[]).unwrap(), "10, a");
        let mut tagged = GoldCalls::of(&row, AnswerRule::Tag, &Showing::default()).unwrap();
        tagged.next_turn(&[]).unwrap();
        assert_eq!(tagged.next_turn(&[]).unwrap(), "<answer>10, a</answer>");
    }

    #[test]
    fn calls_have_the_names_that_the_model_sees() {
        let row = task(&json!({"calls": [{"name": "f", "arguments": {}}]}));
        let mut showing = Showing::default();
        showing.rename.insert("f".into(), "g".into());
        let mut gold = GoldCalls::of(&row, AnswerRule::FinalTurn, &showing).unwrap();
        assert!(gold.next_turn(&[]).unwrap().contains("\"name\":\"g\""));
        showing.hold_out.insert("f".into());
        assert!(GoldCalls::of(&row, AnswerRule::FinalTurn, &showing).is_none());
    }

    #[test]
    fn a_task_without_calls_has_no_demonstration() {
        let row = task(&json!({"answer": "x"}));
        assert!(GoldCalls::of(&row, AnswerRule::Tag, &Showing::default()).is_none());
    }
}
