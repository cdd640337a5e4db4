//! Questions without steps: a scripted model decomposes them, lies, stalls, fails, and returns what cannot be used.

use std::fs;
use std::path::Path;

use rlf_forge::ask::prompts::Prompts;
use rlf_forge::ask::{Account, AskError, Limits};
use rlf_forge::rows::decomposer::{Decomposer, PROMPTS, estimate};
use rlf_forge::rows::options::{Complexity, RowOptions};
use rlf_forge::rows::{Input, RowsError, make_rows};
use serde_json::{Value, json};

use crate::scripted::{Act, Scripted, asker, hurried, says};

const FAUST: &str = "In which year was the author of Faust born?";
const PEAKS: &str = "What is the sum of the heights of Elbrus and Mont Blanc in metres?";

fn faust() -> Value {
    json!({"question": FAUST, "answer": 1749})
}

fn peaks() -> Value {
    json!({"question": PEAKS, "answer": "10448"})
}

/// Good steps for [`FAUST`].
fn author() -> Value {
    json!({"steps": [
        {"question": "Who wrote Faust?", "answer": "Johann Wolfgang von Goethe", "subject": "Faust", "kind": "work", "relation": "author"},
        {"question": "In which year was #1 born?", "answer": 1749, "kind": "person"},
    ]})
}

/// Good steps for [`PEAKS`].
fn heights() -> Value {
    json!({"steps": [
        {"question": "How high is Elbrus?", "answer": "5642", "subject": "Elbrus", "kind": "mountain"},
        {"question": "How high is Mont Blanc?", "answer": "4806", "subject": "Mont Blanc", "kind": "mountain"},
        {"question": "What is #1 plus #2?", "answer": "10448", "operation": "sum"},
    ]})
}

fn options() -> RowOptions {
    RowOptions {
        count: usize::MAX,
        complexity: Complexity::None,
        ..RowOptions::default()
    }
}

/// The lines of an artefact, without its header.
fn lines(output: &Path, artefact: &str) -> Vec<Value> {
    let text = fs::read_to_string(output.join(artefact)).expect("it was made");
    let lines = text.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Makes everything up to the deployed rows from these questions, and returns the decomposed ones.
async fn decompose(
    folder: &Path,
    questions: &[Value],
    model: &Scripted,
    limits: Limits,
) -> Result<Vec<Value>, RowsError> {
    let file = folder.join("questions.jsonl");
    let text: Vec<String> = questions.iter().map(Value::to_string).collect();
    fs::write(&file, text.join("\n")).expect("can be written");
    let prompts = Prompts::load(PROMPTS, None).expect("the shipped prompts");
    let mut asker = asker(model, &folder.join("answers"));
    asker.account = Account::new(limits);
    let decomposer = Decomposer {
        asker: &asker,
        prompts: &prompts,
    };
    let input = Input::Questions {
        file,
        decomposer: Some(&decomposer),
    };
    make_rows(&input, &options(), folder, None, None, |_| {}).await?;
    Ok(lines(folder, "1-decomposed.jsonl"))
}

#[tokio::test]
async fn a_model_finds_the_steps_and_is_never_asked_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut given = peaks();
    given["steps"] = heights()["steps"].clone();
    given["question"] = json!(PEAKS.replace("Elbrus and Mont Blanc", "Mont Blanc and Elbrus"));
    let questions = [faust(), given, peaks()];
    let model = Scripted::new(vec![
        says(format!("```json\n{}\n```", author())),
        says(format!("<think>Heights.</think>{}", heights())),
    ]);
    let made = decompose(folder.path(), &questions, &model, Limits::default()).await;
    let made = made.expect("the model answers");
    let scenarios: Vec<&Value> = made.iter().map(|line| &line["item"]["scenario"]).collect();
    let parallel = "parallel_single_hop";
    assert_eq!(scenarios, ["multi_hop", parallel, parallel]);
    assert!(model.last(0).contains(FAUST) && model.last(0).contains("1749"));
    let rows = lines(folder.path(), "5-deployed.jsonl");
    let calls = &rows[0]["item"]["calls"];
    assert_eq!(calls[0]["answer"], "Johann Wolfgang von Goethe");
    assert!(
        calls[1]["arguments"]
            .to_string()
            .contains("Johann Wolfgang von Goethe"),
        "{calls}"
    );
    // Not for the same run, and not if its artefact is lost.
    for _ in 0..2 {
        let silent = Scripted::new(vec![]);
        let again = decompose(folder.path(), &questions, &silent, Limits::default()).await;
        assert_eq!(again.expect("all answers are there"), made);
        fs::remove_file(folder.path().join("1-decomposed.jsonl")).expect("can be removed");
    }
}

#[tokio::test]
async fn what_is_wrong_goes_back_to_the_model_with_the_reason() {
    let changed = |good: Value, pointer: &str, value: Value| {
        let mut bad = good;
        *bad.pointer_mut(pointer).expect("a place") = value;
        bad.to_string()
    };
    let cases = [
        (faust(), "{\"steps\": [".to_owned(), "it is no JSON"),
        (faust(), json!({"steps": []}).to_string(), "the schema"),
        (
            faust(),
            changed(author(), "/steps/0/answer", json!(["Goethe"])),
            "the schema",
        ),
        (
            faust(),
            changed(author(), "/steps/0/question", json!("Who is #2?")),
            "refers to #2, which is not before it",
        ),
        (
            faust(),
            author()
                .to_string()
                .replace("#1 born?\"", "he born?\",\"subject\":\"#1\""),
            "its sub-question has to say #1 too",
        ),
        (
            faust(),
            changed(author(), "/steps/0/subject", json!("Hamlet")),
            "does not name the subject \"Hamlet\"",
        ),
        (
            faust(),
            changed(author(), "/steps/0/answer", json!("the author")),
            "the question states the answer",
        ),
        (
            faust(),
            changed(author(), "/steps/0/answer", json!("JW")),
            "shorter than 3",
        ),
        (
            faust(),
            changed(author(), "/steps/1/answer", json!(1750)),
            "no step that ends a chain has the answer \"1749\"",
        ),
        (
            peaks(),
            changed(heights(), "/steps/1/answer", json!("4810")),
            "step 3: the sum is 10452, not \"10448\"",
        ),
        (
            peaks(),
            changed(heights(), "/steps/1/answer", json!("4806 m")),
            "which is no number",
        ),
    ];
    for (question, bad, reason) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let good = if question == faust() {
            author()
        } else {
            heights()
        };
        let model = Scripted::new(vec![says(bad), says(good.to_string())]);
        let made = decompose(folder.path(), &[question], &model, Limits::default()).await;
        assert!(made.expect("a second answer")[0]["item"].is_object());
        let told = model.last(1);
        assert!(told.contains(reason), "no `{reason}` in {told}");
    }
}

#[tokio::test]
async fn a_model_that_never_answers_well_loses_its_question_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let lies = || says(author().to_string().replace("1749", "1751"));
    let model = Scripted::new(vec![lies(), lies(), lies(), says(heights().to_string())]);
    let questions = [faust(), peaks()];
    let made = decompose(folder.path(), &questions, &model, Limits::default()).await;
    let made = made.expect("the second question has an answer");
    let rejected = &made[0]["rejected"];
    assert_eq!(rejected["check"], "no-decomposition");
    let reason = rejected["reason"].as_str().expect("a text");
    assert!(
        reason.starts_with("line 1: ") && reason.contains("has the answer \"1749\""),
        "{reason}"
    );
    assert_eq!(made[1]["item"]["answer"], "10448");
    // Nor is it asked again by the same command.
    let silent = Scripted::new(vec![]);
    let again = decompose(folder.path(), &questions, &silent, Limits::default()).await;
    assert_eq!(again.expect("it is kept"), made);
}

#[tokio::test]
async fn what_no_steps_can_mend_is_not_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let questions = [
        json!({"question": "How many legs has a spider?", "answer": 8}),
        json!({"question": "Who wrote Faust?", "answer": ["Goethe"]}),
        faust(),
        faust(),
    ];
    let model = Scripted::new(vec![says(author().to_string())]);
    let made = decompose(folder.path(), &questions, &model, Limits::default()).await;
    let checks: Vec<Value> = made
        .expect("one question is asked")
        .iter()
        .map(|line| line["rejected"]["check"].clone())
        .collect();
    assert_eq!(
        checks,
        [
            json!("trivial"),
            json!("malformed"),
            Value::Null,
            json!("duplicate")
        ]
    );
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn a_failure_half_way_and_the_limits_lose_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut third = peaks();
    third["question"] = json!(PEAKS.replace("sum", "total"));
    let questions = [faust(), peaks(), third];
    let fails = Scripted::new(vec![says(author().to_string()), Act::Fails]);
    let error = decompose(folder.path(), &questions, &fails, Limits::default()).await;
    let error = error.expect_err("the endpoint refuses");
    assert!(
        matches!(error, RowsError::Ask(AskError::Endpoint { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("all answers so far are kept"));
    assert_eq!(
        fails.asked().len(),
        2,
        "the third question is not asked after that"
    );

    let poor = Limits {
        tokens: 500,
        ..Limits::default()
    };
    let silent = Scripted::new(vec![]);
    let error = decompose(folder.path(), &questions, &silent, poor).await;
    assert!(matches!(
        error,
        Err(RowsError::Ask(AskError::OutOfTokens { .. }))
    ));

    let stalls = Scripted::new(vec![Act::Stalls, says(heights().to_string())]);
    let error = decompose(folder.path(), &questions, &stalls, hurried()).await;
    assert!(matches!(
        error,
        Err(RowsError::Ask(AskError::OutOfTime { .. }))
    ));

    // The third one was asked beside the one that stalled.
    let rest = Scripted::new(vec![says(heights().to_string())]);
    let made = decompose(folder.path(), &questions, &rest, Limits::default()).await;
    assert_eq!(made.expect("the last answer").len(), 3);
    assert!(rest.last(0).contains(PEAKS));
}

#[tokio::test]
async fn an_estimate_counts_the_questions_without_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("questions.jsonl");
    let prompts = Prompts::load(PROMPTS, None).expect("the shipped prompts");
    let mut with_steps = faust();
    with_steps["steps"] = author()["steps"].clone();
    fs::write(&file, with_steps.to_string()).expect("can be written");
    let estimated = |attempts| estimate(&prompts, &file, &options(), attempts).expect("a file");
    assert_eq!(estimated(3), None);
    fs::write(&file, format!("{with_steps}\n{}\n", peaks())).expect("can be written");
    let (one, three) = (estimated(1).expect("one"), estimated(3).expect("one"));
    assert_eq!(
        (one.least.questions, one.most, three.most.questions),
        (1, one.least, 3)
    );
    assert!(three.most.prompt_tokens > 3 * one.least.prompt_tokens);
    assert!(one.first.messages[1].content.contains(PEAKS));

    let input = Input::Questions {
        file,
        decomposer: None,
    };
    let error = make_rows(&input, &options(), folder.path(), None, None, |_| {}).await;
    assert!(matches!(error, Err(RowsError::NoSteps { line: 2, .. })));
}
