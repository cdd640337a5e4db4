//! Tests of the parts of a task and a trajectory that the judge sees.

use rlf_plugin::model::{ChatMessage, Question};
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{
    Blob, Content, Ended, Event, Message, ModelTurn, Observation, Role, Task, Trajectory, testing,
};

use super::{accuracy_is, answer_with, block, config, grade, system, user};

/// The question that the judge gets.
fn asked(keys: Value, task: &Task, trajectory: Trajectory) -> Question {
    let (tell, told) = std::sync::mpsc::channel();
    answer_with(move |question| {
        tell.send(question.clone()).unwrap();
        accuracy_is(5)
    });
    grade(config(keys), task, &[trajectory])[0]
        .as_ref()
        .unwrap();
    told.try_recv().unwrap()
}

/// A trajectory with reasoning, a call, a call that cannot be read, a user and an answer.
fn long() -> Trajectory {
    let mut trajectory = testing::trajectory()
        .said("I look it up.")
        .called("get_weather", json!({ "city": "Rome" }), Ended::Failed)
        .malformed("<tool_call>{", "bad-json")
        .malformed("secret thought that never ends", "unclosed-think");
    for event in &mut trajectory.events {
        if let Event::Turn(turn) = event {
            turn.reasoning = Some("secret thought".to_owned());
            turn.text = format!("<think>secret thought</think>{}", turn.visible);
        }
        if let Event::Outcome(outcome) = event {
            outcome.observation = Some(Observation::failure("no such city"));
        }
    }
    trajectory.events.push(Event::User(Message {
        role: Role::User,
        content: vec![Content::Text("Try again.".to_owned())],
    }));
    trajectory.answered("It rains.")
}

#[test]
fn only_the_answer_is_shown_unless_the_operator_wants_more() {
    let task = testing::task(json!("sun"));
    let question = asked(json!({}), &task, long());
    assert_eq!(block(&question, "candidate").unwrap(), "It rains.");
    assert_eq!(block(&question, "task").unwrap(), "the user says:\n?");
    assert_eq!(
        block(&question, "reference").unwrap(),
        "accepted answer:\nsun"
    );
    let question = asked(json!({ "judged": "visible" }), &task, long());
    assert_eq!(
        block(&question, "candidate").unwrap(),
        "turn 1:\nI look it up.\nturn 5:\nIt rains."
    );
}

#[test]
fn a_transcript_says_whose_words_are_whose() {
    let question = asked(
        json!({ "judged": "transcript" }),
        &testing::task(json!("sun")),
        long(),
    );
    assert_eq!(
        block(&question, "candidate").unwrap(),
        "turn 1, the model says:\n\
         I look it up.\n\
         turn 2, the model calls a tool (call 1):\n\
         get_weather {\"city\":\"Rome\"}\n\
         a tool returned, for call 1 of turn 2, which failed:\n\
         no such city\n\
         turn 3, the model tries a call that cannot be read:\n\
         \\u{3c}tool_call>{\n\
         after turn 4, the user says:\n\
         Try again.\n\
         turn 5, the model says:\n\
         It rains."
    );
}

#[test]
fn reasoning_is_never_shown() {
    for judged in ["answer", "visible", "transcript"] {
        let question = asked(
            json!({ "judged": judged }),
            &testing::task(json!("sun")),
            long(),
        );
        assert!(!user(&question).contains("secret"), "{}", user(&question));
    }
}

#[test]
fn a_transcript_without_a_word_of_the_model_is_unanswered() {
    answer_with(|_| panic!("the judge was asked"));
    let mut trajectory = testing::trajectory();
    trajectory.events.push(Event::User(Message {
        role: Role::User,
        content: vec![Content::Text("Hello?".to_owned())],
    }));
    trajectory.events.push(Event::Turn(ModelTurn {
        text: "<think>hm</think>".to_owned(),
        reasoning: Some("hm".to_owned()),
        visible: String::new(),
        calls: Vec::new(),
        malformed: Vec::new(),
        tokens: 3,
    }));
    let config = config(json!({ "judged": "transcript" }));
    let scores = grade(config, &testing::task(json!("sun")), &[trajectory]);
    assert_eq!(super::metric(&scores[0], "unanswered"), Some(1.0));
}

#[test]
fn a_reference_is_shown_as_answers_or_as_it_is_or_not_at_all() {
    let shown = |keys, reference| {
        let trajectory = testing::trajectory().answered("x");
        block(
            &asked(keys, &testing::task(reference), trajectory),
            "reference",
        )
    };
    let answers = json!({ "target": ["Paris", "City of Paris"] });
    assert_eq!(
        shown(json!({}), answers.clone()).unwrap(),
        "accepted answer:\nParis\naccepted answer:\nCity of Paris"
    );
    assert_eq!(
        shown(json!({}), json!({ "tests": ["assert f(1) == 2"] })).unwrap(),
        r#"{"tests":["assert f(1) == 2"]}"#
    );
    for nothing in [json!(null), json!(""), json!([]), json!({})] {
        assert_eq!(shown(json!({}), nothing), None);
    }
    assert_eq!(shown(json!({ "reference": false }), answers), None);
}

#[test]
fn all_messages_of_the_task_are_shown_and_media_are_named() {
    let mut task = testing::task(json!(null));
    let message = |role, content| Message { role, content };
    let image = Blob {
        media_type: "image/png".to_owned(),
        data: vec![0; 12],
    };
    task.prompt = vec![
        message(Role::System, vec![Content::Text("Be brief.".to_owned())]),
        message(
            Role::User,
            vec![
                Content::Text("What is this?".to_owned()),
                Content::Image(image),
            ],
        ),
    ];
    let question = asked(json!({}), &task, testing::trajectory().answered("x"));
    assert_eq!(
        block(&question, "task").unwrap(),
        "a system message says:\nBe brief.\nthe user says:\nWhat is this?\n[image/png, 12 bytes]"
    );
}

#[test]
fn long_texts_are_shortened_in_the_middle() {
    let trajectory = testing::trajectory().answered(&format!("begin{}end", "-".repeat(1_000)));
    let question = asked(
        json!({ "max_chars": 100 }),
        &testing::task(json!("sun")),
        trajectory,
    );
    let shown = block(&question, "candidate").unwrap();
    assert!(
        shown.starts_with("begin---") && shown.ends_with("---end"),
        "{shown}"
    );
    assert!(
        shown.contains("\n[... 908 characters left out ...]\n"),
        "{shown}"
    );
}

#[test]
fn the_operators_settings_reach_the_question() {
    let keys = json!({
        "instructions": "Count spelling mistakes.", "model": "large", "temperature": 0.5, "max_tokens": 99,
        "scale": [1, 5],
    });
    let question = asked(
        keys,
        &testing::task(json!("sun")),
        testing::trajectory().answered("x"),
    );
    assert_eq!(
        (question.model.as_str(), question.max_tokens),
        ("large", 99)
    );
    assert_eq!(question.temperature, Some(0.5));
    assert!(
        system(&question).contains("Instructions of the operator:\nCount spelling mistakes.\n")
    );
    assert!(
        system(&question)
            .contains("- `accuracy`, from 1 (worst) to 5 (best): Is the answer right?")
    );
    let roles: Vec<Role> = question
        .messages
        .iter()
        .map(|ChatMessage { role, .. }| *role)
        .collect();
    assert_eq!(roles, [Role::System, Role::User]);

    let plain = asked(
        json!({}),
        &testing::task(json!("sun")),
        testing::trajectory().answered("x"),
    );
    assert_eq!(
        (plain.model.as_str(), plain.max_tokens, plain.temperature),
        ("", 512, None)
    );
    assert!(!system(&plain).contains("Instructions of the operator"));
}
