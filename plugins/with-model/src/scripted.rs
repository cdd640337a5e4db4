//! A model that replies by a script, for native tests.

use std::cell::RefCell;
use std::rc::Rc;

use rlf_plugin::model::{Answer, Question};
use rlf_plugin::{Error, testing};

/// The questions that a scripted model was asked, in order.
#[derive(Clone, Default)]
pub struct Asked(Rc<RefCell<Vec<Question>>>);

/// Answers the questions of this test with these replies, in order. Further questions find the budget spent.
pub fn model<const N: usize>(replies: [Result<&'static str, Error>; N]) -> Asked {
    let asked = Asked::default();
    let seen = asked.clone();
    let mut replies = replies.into_iter();
    testing::answer_questions_with(move |question| {
        seen.0.borrow_mut().push(question.clone());
        replies
            .next()
            .unwrap_or_else(|| Err(spent()))
            .map(Answer::text)
    });
    asked
}

/// The error of a model whose budget is spent.
pub fn spent() -> Error {
    Error::Exhausted("the script has ended".to_owned())
}

impl Asked {
    /// The questions so far.
    pub fn questions(&self) -> Vec<Question> {
        self.0.borrow().clone()
    }
}
