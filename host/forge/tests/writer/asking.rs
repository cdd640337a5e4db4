//! One question: its answer on disk, its identity, its attempts and its limits.

use std::fs;

use rlf_endpoint::{ChatMessage, Price};
use rlf_forge::ask::prompts::Prompts;
use rlf_forge::ask::{Account, AskError, Limits, Question, Unusable};
use rlf_forge::writer::{Form, PROMPTS, estimate};

use crate::scripted::{Act, Scripted, asker, hurried, says};

fn question(text: &str) -> Question {
    Question::new("count", vec![ChatMessage::user(text)])
}

fn number(text: &str) -> Result<u32, Unusable> {
    text.parse()
        .map_err(|_| Unusable::new("write a number alone"))
}

#[tokio::test]
async fn an_answer_on_disk_is_not_asked_again_unless_what_it_depends_on_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let ask = async |model: &Scripted, seed: u64, text: &str| {
        let mut asker = asker(model, folder.path());
        asker.seed = seed;
        let answer = asker.text(&question(text), number).await.unwrap();
        (answer, asker.account.spent().tokens())
    };
    let first = Scripted::new(vec![says("<think>4?</think> 4")]);
    assert_eq!(ask(&first, 0, "How many?").await, (4, 110));
    let silent = Scripted::new(vec![]);
    assert_eq!(ask(&silent, 0, "How many?").await, (4, 110));
    assert!(silent.asked().is_empty());
    let other = Scripted::new(vec![says("5"), says("6")]);
    assert_eq!(ask(&other, 1, "How many?").await.0, 5);
    assert_eq!(ask(&other, 0, "How many now?").await.0, 6);
    let mut renamed = Scripted::new(vec![says("7")]);
    renamed.name = "another";
    assert_eq!(ask(&renamed, 0, "How many?").await.0, 7);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[tokio::test]
async fn an_unusable_answer_goes_back_with_the_reason_until_the_attempts_end() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new(vec![says("four"), says(""), says("4?"), says("4")]);
    let first = asker(&model, folder.path());
    let error = first
        .text(&question("How many?"), number)
        .await
        .unwrap_err();
    let AskError::Unusable {
        attempts: 3, file, ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(
        fs::read_to_string(file)
            .unwrap()
            .contains("\"text\": \"4?\"")
    );
    let again = &model.asked()[1];
    assert_eq!(again[1], ChatMessage::assistant("four"));
    assert!(
        again[2]
            .content
            .starts_with("This answer cannot be used: write a number alone\n")
    );
    assert!(model.last(2).contains("it is empty"));
    // The three on disk count, so only a greater number asks for a fourth.
    let same = asker(&model, folder.path());
    let error = same.text(&question("How many?"), number).await;
    assert!(matches!(error, Err(AskError::Unusable { attempts: 3, .. })));
    assert_eq!(model.asked().len(), 3);
    let mut second = asker(&model, folder.path());
    second.attempts = 4;
    assert_eq!(
        second.text(&question("How many?"), number).await.unwrap(),
        4
    );
    assert_eq!(model.asked().len(), 4);
    assert_eq!(second.account.spent().answers, 4);
}

#[tokio::test]
async fn limits_end_before_a_question_and_a_model_that_stalls_ends_with_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new(vec![Act::Stalls]);
    let mut poor = asker(&model, folder.path());
    poor.account = Account::new(Limits {
        tokens: 1_000,
        ..Limits::default()
    });
    let error = poor.text(&question("How many?"), number).await.unwrap_err();
    assert!(
        matches!(
            error,
            AskError::OutOfTokens {
                next: 1_003,
                spent: 0,
                ..
            }
        ),
        "{error}"
    );
    assert!(model.asked().is_empty());
    let mut late = asker(&model, folder.path());
    late.account = Account::new(hurried());
    let error = late.text(&question("How many?"), number).await.unwrap_err();
    assert!(matches!(error, AskError::OutOfTime { .. }), "{error}");
    assert_eq!(model.asked().len(), 1);
    let error = late.text(&question("How many?"), number).await.unwrap_err();
    assert!(matches!(error, AskError::OutOfTime { .. }), "{error}");
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn questions_side_by_side_do_not_go_beyond_the_limit_together() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new(vec![Act::Stalls, says("5")]);
    let mut asker = asker(&model, folder.path());
    asker.account = Account::new(Limits {
        tokens: 1_500,
        ..Limits::default()
    });
    let (one, other) = (question("How many?"), question("How few?"));
    let other = tokio::select! {
        biased;
        one = asker.text(&one, number) => panic!("it stalls: {one:?}"),
        other = asker.text(&other, number) => other,
    };
    assert!(
        matches!(other, Err(AskError::OutOfTokens { spent: 1_003, .. })),
        "{other:?}"
    );
    // The first one was dropped, and what it had reserved is free again.
    assert_eq!(asker.text(&question("How few?"), number).await.unwrap(), 5);
}

#[test]
fn an_estimate_grows_with_the_revisions_and_has_a_price() {
    let prompts = Prompts::load(PROMPTS, None).unwrap();
    for form in [Form::Specification, Form::Python] {
        let (found, first) = estimate(&prompts, "a library that lends tools", form, 3).unwrap();
        assert!(
            first.messages[1]
                .content
                .contains("a library that lends tools")
        );
        let (least, most) = (found.total(0, None), found.total(3, None));
        assert_eq!((least.questions, most.questions, least.cost), (4, 7, None));
        assert!(
            most.prompt_tokens > least.prompt_tokens && most.answer_tokens > least.answer_tokens
        );
        let price = Price {
            prompt: 1.0,
            completion: 2.0,
        };
        let cost = found.total(0, Some(price)).cost.unwrap();
        let expected = least.prompt_tokens as f64 + 2.0 * least.answer_tokens as f64;
        assert!((cost * 1e6 - expected).abs() < 1e-6, "{cost}");
    }
}
