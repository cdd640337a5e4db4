//! Words for a question that has no answer.

use rlf_plugin::{Error, error_message, log};

/// Tells the calling model why its question has no answer. If only the operator can mend it, the operator's log gets
/// the reason.
///
/// After an infrastructure failure the host ends the call, so no plugin ever sees that error. [`Error::Unavailable`] means
/// that the model answered, and not in the form of the question's schema.
pub fn unanswered(error: &Error) -> String {
    let why = error_message(error);
    match error {
        Error::Exhausted(_) => {
            format!("the budget for questions to language models is spent: {why}")
        }
        Error::Denied(_) => {
            log::error(&format!("no model is open to this plugin: {why}"));
            "no model is open to this tool".to_owned()
        }
        Error::NotFound(_) => {
            log::error(&format!("the configured model cannot be asked: {why}"));
            "the model that this tool is configured to ask is not open to it".to_owned()
        }
        Error::InvalidArguments(_) => format!("the language model refused the question: {why}"),
        Error::Unavailable(_) => format!("the language model gave no usable reply: {why}"),
        Error::Cancelled | Error::Internal(_) => {
            format!("the language model gave no answer: {why}")
        }
    }
}

#[cfg(test)]
mod tests {
    use rlf_plugin::testing;

    use super::*;

    #[test]
    fn a_spent_budget_is_told_and_an_operators_mistake_is_also_logged() {
        let spent = unanswered(&Error::Exhausted("8 questions".to_owned()));
        assert!(spent.contains("spent: 8 questions"), "{spent}");
        assert!(testing::logged().is_empty());

        let closed = unanswered(&Error::Denied("the gate is shut".to_owned()));
        assert_eq!(closed, "no model is open to this tool");
        let unknown = unanswered(&Error::NotFound("no model `big`".to_owned()));
        assert!(unknown.contains("configured"), "{unknown}");
        let logged: Vec<String> = testing::logged().into_iter().map(|line| line.1).collect();
        assert!(logged[0].contains("the gate is shut"), "{logged:?}");
        assert!(logged[1].contains("no model `big`"), "{logged:?}");
    }
}
