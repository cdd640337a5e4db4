//! Outcomes of calls in an earlier rollout of the same trajectories. In a replay, calls take them instead of being made
//! again.

use std::collections::HashMap;

use rlf_dialogue::tool::{CallOutcome, ToolCall};

/// Outcomes of calls of tools outside of environments, as the model saw calls and outcomes.
///
/// Calls to an environment are always made, because its state follows from them.
#[derive(Debug, Clone, Default)]
pub struct RecordedOutcomes(HashMap<String, (ToolCall, CallOutcome)>);

impl RecordedOutcomes {
    /// Adds the outcome of a call.
    pub fn insert(&mut self, call: ToolCall, outcome: CallOutcome) {
        self.0.insert(call.call_id.clone(), (call, outcome));
    }

    /// Number of outcomes.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The outcome of this call. None if there is none, or if another call was made at its place in the trajectory.
    pub(crate) fn get(&self, call: &ToolCall) -> Option<&CallOutcome> {
        let (recorded, outcome) = self.0.get(&call.call_id)?;
        (recorded == call).then_some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::tool::Observation;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outcome_belongs_to_one_call_with_the_same_arguments() {
        let call = |id: &str, text: &str| ToolCall {
            call_id: id.to_owned(),
            name: "search".to_owned(),
            arguments: json!({"text": text}),
        };
        let seen = Observation::text("3 pages", false);
        let outcome = CallOutcome::from_observation("a/0/0".into(), "search".into(), seen);
        let mut outcomes = RecordedOutcomes::default();
        outcomes.insert(call("a/0/0", "red"), outcome.clone());
        assert_eq!(outcomes.get(&call("a/0/0", "red")), Some(&outcome));
        assert_eq!(outcomes.get(&call("a/0/0", "blue")), None);
        assert_eq!(outcomes.get(&call("a/0/1", "red")), None);
        assert_eq!(outcomes.count(), 1);
    }
}
