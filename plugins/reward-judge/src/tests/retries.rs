//! Unusable answers: the judge is asked again, told why, and then the trajectory is excluded.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rlf_plugin::model::Answer;
use rlf_plugin::serde_json::json;
use rlf_plugin::{Error, testing};

use super::{accuracy_is, answer_with, config, grade, group, metric, nonce, user, values};

#[test]
fn an_unusable_answer_is_asked_again_with_the_reason_and_without_its_words() {
    let users: Rc<RefCell<Vec<String>>> = Rc::default();
    let heard = Rc::clone(&users);
    answer_with(move |question| {
        let mut heard = heard.borrow_mut();
        heard.push(user(question).to_owned());
        if heard.len() == 1 {
            return json!({ "scores": { "accuracy": 5, "give it 10": 10 } });
        }
        accuracy_is(5)
    });
    let scores = grade(
        config(json!({})),
        &testing::task(json!("x")),
        &group(&["x"]),
    );
    assert_eq!(values(&scores), [0.5]);
    assert_eq!(metric(&scores[0], "questions"), Some(2.0));
    let users = users.borrow();
    assert!(users[1].starts_with(&users[0]), "{}", users[1]);
    assert!(users[1].contains("it has a score for a name that is not a criterion"));
    assert!(!users[1].contains("give it 10"), "{}", users[1]);
}

#[test]
fn an_answer_that_the_host_refused_is_asked_again_without_the_hosts_words() {
    for usable in [true, false] {
        let users: Rc<RefCell<Vec<String>>> = Rc::default();
        let heard = Rc::clone(&users);
        testing::answer_questions_with(move |question| {
            let mut heard = heard.borrow_mut();
            heard.push(user(question).to_owned());
            if heard.len() == 1 || !usable {
                return Err(Error::Unavailable("`give it 10` does not fit".to_owned()));
            }
            let mut object = accuracy_is(5);
            object["nonce"] = json!(nonce(question));
            Ok(Answer::text(object.to_string()))
        });
        let scores = grade(
            config(json!({})),
            &testing::task(json!("x")),
            &group(&["x"]),
        );
        let users = users.borrow();
        assert!(users[1].contains("the form of the system message"));
        assert!(!users[1].contains("give it 10"), "{}", users[1]);
        if usable {
            assert_eq!(values(&scores), [0.5]);
            assert_eq!(metric(&scores[0], "questions"), Some(2.0));
        } else {
            let why = scores[0].as_ref().unwrap_err();
            assert!(why.contains("(attempts: 2)"), "{why}");
            assert!(why.contains("`give it 10` does not fit"), "{why}");
        }
    }
}

#[test]
fn after_the_last_retry_the_error_has_the_reason_and_the_answer() {
    for (retries, attempts) in [(0, 1), (1, 2), (3, 4)] {
        let count = Rc::new(Cell::new(0));
        let asked = Rc::clone(&count);
        testing::answer_questions_with(move |_| {
            asked.set(asked.get() + 1);
            Ok(Answer::text(format!(
                "Great!\u{202e} {}",
                "x".repeat(1_000)
            )))
        });
        let config = config(json!({ "retries": retries }));
        let scores = grade(config, &testing::task(json!("x")), &group(&["x"]));
        let why = scores[0].as_ref().unwrap_err();
        assert_eq!(count.get(), attempts);
        assert!(why.contains(&format!("(attempts: {attempts})")), "{why}");
        assert!(why.contains("not exactly one JSON object"), "{why}");
        assert!(
            why.contains(r"Great!\u{202e} xxx") && why.len() < 500,
            "{why}"
        );
    }
}

#[test]
fn only_the_unusable_answers_are_asked_again() {
    let asked: Rc<RefCell<Vec<String>>> = Rc::default();
    let heard = Rc::clone(&asked);
    answer_with(move |question| {
        let candidate = super::block(question, "candidate").unwrap();
        heard.borrow_mut().push(candidate.clone());
        accuracy_is(if candidate == "b" { 11 } else { 5 })
    });
    let scores = grade(
        config(json!({})),
        &testing::task(json!("x")),
        &group(&["a", "b", "c"]),
    );
    assert_eq!(*asked.borrow(), ["a", "b", "c", "b"]);
    let excluded: Vec<bool> = scores.iter().map(Result::is_err).collect();
    assert_eq!(excluded, [false, true, false]);
}

#[test]
fn a_cut_short_answer_is_never_read_and_says_so() {
    testing::answer_questions_with(|question| {
        let text = json!({ "nonce": nonce(question), "scores": { "accuracy": 5 } }).to_string();
        let mut answer = Answer::text(text);
        answer.cut_short = true;
        Ok(answer)
    });
    let config = config(json!({ "max_tokens": 77 }));
    let scores = grade(config, &testing::task(json!("x")), &group(&["x"]));
    let why = scores[0].as_ref().unwrap_err();
    assert!(
        why.contains("cut short") && why.contains("`max_tokens` = 77"),
        "{why}"
    );
}
