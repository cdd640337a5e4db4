//! Words of tasks that a scripted model writes, well and badly.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use rlf_endpoint::{ChatMessage, Completion, EndpointError};
use rlf_forge::ask::prompts::Prompts;
use rlf_forge::ask::{Answers, Limits, Model, Silent};
use rlf_forge::graph::ValueType;
use rlf_forge::tasks::record::Author;
use rlf_forge::tasks::request::{Fact, Mention};
use rlf_forge::tasks::rewrite::{PROMPTS, Report, RewriteOptions, Rewriter};
use rlf_forge::tasks::{Maker, Suite, TaskRecord};
use serde_json::{Value, json};

use super::{checked, examples, made, options};

/// The reaction to a question.
enum Act {
    Says(String),
    Fails,
    Stalls,
}

type Script = dyn Fn(&[ChatMessage]) -> Act + Send + Sync;

/// A model that answers by a function, and keeps the questions.
struct Scripted {
    script: Box<Script>,
    asked: Mutex<Vec<Vec<ChatMessage>>>,
}

impl Scripted {
    fn new(script: impl Fn(&[ChatMessage]) -> Act + Send + Sync + 'static) -> Self {
        Self {
            script: Box::new(script),
            asked: Mutex::default(),
        }
    }

    fn asked(&self) -> Vec<Vec<ChatMessage>> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Model for Scripted {
    fn identity(&self) -> String {
        "scripted".to_owned()
    }

    fn max_answer_tokens(&self) -> u64 {
        500
    }

    async fn answer(&self, messages: &[ChatMessage], _: u64) -> Result<Completion, EndpointError> {
        self.asked.lock().unwrap().push(messages.to_vec());
        match (self.script)(messages) {
            Act::Says(text) => Ok(Completion {
                text,
                ..Completion::default()
            }),
            Act::Fails => Err(EndpointError::Failed {
                host: "h".to_owned(),
                attempts: 1,
                status: 500,
                text: String::new(),
            }),
            Act::Stalls => std::future::pending().await,
        }
    }
}

/// The plain words of each turn in a question for words.
fn plain(messages: &[ChatMessage]) -> Vec<String> {
    let lines = messages[1].content.lines();
    lines
        .filter_map(|line| line.strip_prefix("Plain words: "))
        .map(str::to_owned)
        .collect()
}

/// An answer with a change of every turn.
fn with(messages: &[ChatMessage], change: impl Fn(&str) -> String) -> Act {
    let turns: Vec<String> = plain(messages).iter().map(|text| change(text)).collect();
    Act::Says(json!({ "turns": turns }).to_string())
}

fn good(messages: &[ChatMessage]) -> Act {
    with(messages, |text| {
        format!("Well then: {text} So much for now.")
    })
}

fn limits() -> RewriteOptions {
    RewriteOptions {
        rounds: 2,
        attempts: 0,
        min_passes: 1,
        limits: Limits {
            tokens: 100_000_000,
            time: Duration::from_mins(10),
        },
        concurrent: 4,
    }
}

/// Rewrites the words of tasks in a folder.
async fn rewrite(
    suite: &Suite,
    tasks: &mut [TaskRecord],
    model: &Scripted,
    how: RewriteOptions,
    folder: &Path,
) -> Report {
    let options = options(tasks.len());
    let maker = Maker::new(suite, &options);
    let prompts = Prompts::load(PROMPTS, None).unwrap();
    let rewriter = Rewriter {
        maker: &maker,
        model,
        prompts: &prompts,
        options: how,
        observer: &Silent,
    };
    let answers = Answers::new(folder.join("answers"));
    let file = folder.join("6-texts.jsonl");
    rewriter.rewrite(tasks, answers, file).await.unwrap()
}

#[tokio::test]
async fn other_words_of_the_same_meaning_are_kept_and_nothing_is_asked_twice() {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let grammar = made(&suite, &options(30)).tasks;
    let mut tasks = grammar.clone();
    let model = Scripted::new(good);
    let report = rewrite(&suite, &mut tasks, &model, limits(), folder.path()).await;
    assert_eq!((report.written, report.unanswered), (30, 0));
    assert_eq!(model.asked().len(), 30);
    for (task, old) in tasks.iter().zip(&grammar) {
        assert_eq!(task.author, Author::Model);
        for (turn, old) in task.turns.iter().zip(&old.turns) {
            assert_eq!(
                turn.query,
                format!("Well then: {} So much for now.", old.query)
            );
            assert!(turn.template.starts_with("Well then: "));
            assert_eq!(turn.template.contains("<>"), old.template.contains("<>"));
            assert_eq!(turn.requests, old.requests);
            assert!(
                turn.calls
                    .iter()
                    .all(|call| call.origins.len() == call.arguments.len())
            );
        }
        assert!(checked(&suite, task).is_ok());
    }
    // The record says it, and can be read again.
    let line = serde_json::to_string(&tasks[0]).unwrap();
    assert!(line.contains(r#""author":"model""#));
    assert_eq!(serde_json::from_str::<TaskRecord>(&line).unwrap(), tasks[0]);
    assert!(
        !serde_json::to_string(&grammar[0])
            .unwrap()
            .contains("author")
    );

    let mut again = grammar.clone();
    let report = rewrite(&suite, &mut again, &model, limits(), folder.path()).await;
    assert_eq!(report.spent.answers, 30);
    assert_eq!((again, model.asked().len()), (tasks.clone(), 0));
    // Without the file of results, the answers are there.
    std::fs::remove_file(folder.path().join("6-texts.jsonl")).unwrap();
    let mut again = grammar.clone();
    rewrite(&suite, &mut again, &model, limits(), folder.path()).await;
    assert_eq!((again, model.asked().len()), (tasks, 0));
}

/// Rewrites tasks with an answer that is always bad, and returns them with the report and the first questions.
async fn refused(
    grammar: &[TaskRecord],
    script: impl Fn(&[ChatMessage]) -> Act + Send + Sync + 'static,
) -> (Report, Vec<Vec<ChatMessage>>) {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new(script);
    let mut tasks = grammar.to_vec();
    let report = rewrite(&suite, &mut tasks, &model, limits(), folder.path()).await;
    let asked = model.asked();
    // Two rounds, then the words of the grammar.
    assert_eq!(asked.len(), 3 * grammar.len());
    assert_eq!(report.written, 0, "{report:?}");
    for (task, old) in tasks.iter().zip(grammar) {
        assert_eq!(task.author, Author::Refused);
        assert_eq!(task.turns, old.turns);
    }
    // The same run asks nothing more.
    let mut again = grammar.to_vec();
    let later = rewrite(&suite, &mut again, &model, limits(), folder.path()).await;
    assert_eq!(
        (later.refused, model.asked().len()),
        (report.refused.clone(), 0)
    );
    assert_eq!(again, tasks);
    (report, asked)
}

/// The faults that the model was told after its first answer, for some task.
fn told(asked: &[Vec<ChatMessage>]) -> String {
    let again = asked.iter().find(|messages| messages.len() == 4);
    again.unwrap()[3].content.clone()
}

#[tokio::test]
async fn answers_of_another_form_are_refused() {
    let grammar = made(&examples(), &options(3)).tasks;
    for (answer, why) in [
        ("{\"turns\": [\"a\"", "it is no JSON"),
        ("[1, 2]", "invalid"),
        ("{\"turns\": [1]}", "expected a string"),
        ("{\"texts\": []}", "unknown field `texts`"),
        ("{\"turns\": []}", "the answer has 0"),
        ("<think>Hm.", "it is empty"),
        ("", "it is empty"),
    ] {
        let (report, asked) = refused(&grammar, move |_| Act::Says(answer.to_owned())).await;
        assert_eq!(report.refused.get("form"), Some(&3), "{answer}: {report:?}");
        assert!(told(&asked).contains(why), "{answer}: {}", told(&asked));
    }
}

#[tokio::test]
async fn words_that_leave_something_out_are_refused() {
    let grammar = made(&examples(), &options(12)).tasks;
    let (report, asked) = refused(&grammar, |messages| {
        with(messages, |_| "Please do what I need.".to_owned())
    })
    .await;
    assert_eq!(report.refused.get("unsaid"), Some(&12), "{report:?}");
    assert!(
        told(&asked).contains("write it exactly so"),
        "{}",
        told(&asked)
    );
    let (report, _) = refused(&grammar, |messages| with(messages, |_| String::new())).await;
    assert_eq!(report.refused.get("form"), Some(&12), "{report:?}");
}

#[tokio::test]
async fn words_with_characters_that_nobody_sees_are_refused() {
    let grammar = made(&examples(), &options(3)).tasks;
    for (hidden, code) in [
        ('\0', "U+0000"),
        ('\u{7}', "U+0007"),
        ('\u{200b}', "U+200B"),
        ('\u{202e}', "U+202E"),
    ] {
        let (report, asked) = refused(&grammar, move |messages| {
            with(messages, |text| format!("Well then:{hidden} {text}"))
        })
        .await;
        assert_eq!(report.refused.get("form"), Some(&3), "{report:?}");
        assert!(told(&asked).contains(code), "{}", told(&asked));
    }
}

#[tokio::test]
async fn words_that_add_something_are_refused() {
    let grammar = made(&examples(), &options(6)).tasks;
    for (more, kind) in [
        (" Do it 77 times.", "invented"),
        (" Use find_books for it.", "name"),
    ] {
        let (report, asked) = refused(&grammar, move |messages| {
            with(messages, |text| format!("{text}{more}"))
        })
        .await;
        assert_eq!(report.refused.get(kind), Some(&6), "{report:?}");
        assert!(told(&asked).contains("turn 1: "), "{}", told(&asked));
    }
    let long = " and so on".repeat(400);
    let (report, _) = refused(&grammar, move |messages| {
        with(messages, |text| format!("{text}{long}"))
    })
    .await;
    assert_eq!(report.refused.get("form"), Some(&6), "{report:?}");
}

#[tokio::test]
async fn words_that_say_what_only_a_tool_knows_are_refused() {
    let suite = examples();
    let all = made(&suite, &options(60)).tasks;
    // A key that a call of the first turn needs, and a name in a result that nobody has said.
    let secret = |task: &TaskRecord| {
        let calls = task.turns[0].calls.iter();
        let mut arguments = calls.flat_map(|call| {
            let names = call.arguments.iter();
            names.map(|(name, value)| (call.tool.clone(), name.clone(), value.clone()))
        });
        arguments.find_map(|(tool, name, value)| {
            let input = suite.input(&tool, &name)?;
            let is_key = matches!(input.kind, ValueType::Key(_)) && input.from_user.is_none();
            is_key.then(|| value.as_str().map(str::to_owned))?
        })
    };
    let result = |task: &TaskRecord| {
        let first = &task.turns[0];
        let items = first.calls[0].result.as_array()?.iter();
        let mut values = items
            .filter_map(Value::as_object)
            .flat_map(|item| item.values());
        values.find_map(|value| {
            let text = value.as_str()?;
            let tells = text.contains(' ') && text.contains(char::is_uppercase);
            (tells && !text.contains(char::is_numeric) && !first.query.contains(text))
                .then(|| text.to_owned())
        })
    };
    let mut found = [0, 0];
    for task in &all {
        for (place, leaked) in [secret(task), result(task)].into_iter().enumerate() {
            let Some(leaked) = leaked else { continue };
            if found[place] == 3 {
                continue;
            }
            found[place] += 1;
            let (report, asked) = refused(std::slice::from_ref(task), move |messages| {
                with(messages, |text| format!("{text} It is about {leaked}."))
            })
            .await;
            let kinds: Vec<&String> = report.refused.keys().collect();
            assert!(kinds == ["leak"] || kinds == ["invented"], "{report:?}");
            let told = told(&asked);
            assert!(
                told.contains("the text says the key") || told.contains("only a tool can know"),
                "{told}"
            );
        }
    }
    assert!(found.iter().all(|found| *found > 0), "{found:?}");
}

#[tokio::test]
async fn the_lowest_in_place_of_the_highest_is_refused() {
    let all = made(&examples(), &options(120)).tasks;
    let extreme = |task: &&TaskRecord| {
        let requests = task.turns[0].requests.iter();
        requests
            .flat_map(|request| request.arguments.values())
            .any(|mention| {
                matches!(mention, Mention::Described(described) if described.facts.iter()
                .any(|fact| matches!(fact, Fact::Extreme { .. })))
            })
    };
    let tasks: Vec<TaskRecord> = all.iter().filter(extreme).take(3).cloned().collect();
    assert!(!tasks.is_empty());
    let count = tasks.len();
    let (report, asked) = refused(&tasks, |messages| {
        with(messages, |text| {
            let words = [
                ("highest", "strangest"),
                ("largest", "strangest"),
                ("smallest", "strangest"),
                (" most ", " strangest "),
                ("fewest", "strangest"),
                ("lowest", "strangest"),
                ("latest", "strangest"),
                ("earliest", "strangest"),
                ("cheapest", "strangest"),
                ("most expensive", "strangest"),
            ];
            words
                .iter()
                .fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
        })
    })
    .await;
    assert_eq!(report.refused.get("unsaid"), Some(&count), "{report:?}");
    assert!(told(&asked).contains("is meant"), "{}", told(&asked));
}

/// The values that the first turn of a task says.
fn said(task: &TaskRecord) -> Vec<Value> {
    let requests = task.turns[0].requests.iter();
    let mentions = requests.flat_map(|request| request.arguments.values());
    mentions
        .filter_map(|mention| match mention {
            Mention::Value(value) => Some(value.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_value_of_two_requests_is_said_twice() {
    let all = made(&examples(), &options(400)).tasks;
    let twice = all.iter().find_map(|task| {
        let values = said(task).into_iter().filter_map(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        });
        let query = &task.turns[0].query;
        let value = values
            .into_iter()
            .find(|value| query.matches(value).count() == 2);
        value.map(|value| (task.clone(), value))
    });
    let (task, value) = twice.expect("a task says a value twice");
    let (report, asked) = refused(std::slice::from_ref(&task), move |messages| {
        with(messages, |text| text.replacen(&value, "the other", 1))
    })
    .await;
    assert_eq!(report.refused.get("unsaid"), Some(&1), "{report:?}");
    assert!(told(&asked).contains("1 of 2 times"), "{}", told(&asked));
}

#[tokio::test]
async fn a_text_that_is_mended_after_its_faults_were_told_is_kept() {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = made(&suite, &options(5)).tasks;
    let model = Scripted::new(|messages| match messages.len() {
        2 => with(messages, |text| format!("{text} And 77 more.")),
        // It is told what was wrong with its last answer.
        _ if messages[2].content != "no" => Act::Says("no".to_owned()),
        _ => good(messages),
    });
    let report = rewrite(&suite, &mut tasks, &model, limits(), folder.path()).await;
    assert_eq!((report.written, model.asked().len()), (5, 15), "{report:?}");
    assert!(tasks.iter().all(|task| task.author == Author::Model));
}

#[tokio::test]
async fn an_endpoint_that_fails_or_stalls_loses_nothing() {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let grammar = made(&suite, &options(40)).tasks;
    let half = |messages: &[ChatMessage]| {
        let first = plain(messages)[0].len();
        if first.is_multiple_of(2) {
            good(messages)
        } else {
            Act::Fails
        }
    };
    let one = RewriteOptions {
        concurrent: 1,
        ..limits()
    };
    let mut tasks = grammar.clone();
    let model = Scripted::new(half);
    let report = rewrite(&suite, &mut tasks, &model, one, folder.path()).await;
    assert!(report.written > 0 && report.unanswered > 0, "{report:?}");
    assert!(report.why.unwrap().contains("status 500"));
    for (task, old) in tasks.iter().zip(&grammar) {
        assert!(task.author == Author::Model || task.turns == old.turns);
    }
    // Nobody answers: after eight failures one after the other, nothing more is asked.
    let model = Scripted::new(|_| Act::Fails);
    let mut again = grammar.clone();
    let later = rewrite(&suite, &mut again, &model, one, folder.path()).await;
    assert_eq!(later.written, report.written);
    assert!(model.asked().len() <= 8);
    // A model that never answers ends with the time.
    let hurried = RewriteOptions {
        limits: Limits {
            time: Duration::from_millis(200),
            ..one.limits
        },
        ..one
    };
    let model = Scripted::new(|_| Act::Stalls);
    let stalled = rewrite(&suite, &mut grammar.clone(), &model, hurried, folder.path()).await;
    assert_eq!((stalled.written, model.asked().len()), (report.written, 1));
    assert!(stalled.why.unwrap().contains("ends here"));
    // Too few tokens for one question.
    let poor = RewriteOptions {
        limits: Limits {
            tokens: report.spent.tokens() + 100,
            ..one.limits
        },
        ..one
    };
    let model = Scripted::new(good);
    let ended = rewrite(&suite, &mut grammar.clone(), &model, poor, folder.path()).await;
    assert_eq!((ended.written, model.asked().len()), (report.written, 0));
    assert!(ended.why.unwrap().contains("the limit of"));
    // The rest is asked for, and only the rest.
    let mut whole = grammar.clone();
    let end = rewrite(&suite, &mut whole, &model, limits(), folder.path()).await;
    assert_eq!((end.written, end.unanswered), (40, 0));
    assert_eq!(model.asked().len(), 40 - report.written);
    // The order in which answers arrive changes no task.
    let straight = tempfile::tempdir().unwrap();
    let mut at_once = grammar.clone();
    rewrite(&suite, &mut at_once, &model, limits(), straight.path()).await;
    assert_eq!(whole, at_once);
}

#[tokio::test]
async fn a_result_on_disk_that_was_edited_is_checked_again() {
    let suite = examples();
    let folder = tempfile::tempdir().unwrap();
    let grammar = made(&suite, &options(4)).tasks;
    let model = Scripted::new(good);
    rewrite(
        &suite,
        &mut grammar.clone(),
        &model,
        limits(),
        folder.path(),
    )
    .await;
    let file = folder.path().join("6-texts.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("So much for now.", "That makes 77.")).unwrap();
    let mut tasks = grammar.clone();
    let report = rewrite(&suite, &mut tasks, &model, limits(), folder.path()).await;
    assert_eq!(report.refused.get("invented"), Some(&4), "{report:?}");
    assert!(
        tasks
            .iter()
            .zip(&grammar)
            .all(|(task, old)| task.turns == old.turns)
    );
}

/// Answers a question of the solver for a task that it knows: its gold calls, and then an end.
fn solve(tasks: &[TaskRecord], messages: &[ChatMessage]) -> Act {
    let users = messages.iter().filter(|message| {
        matches!(message.role, rlf_endpoint::ChatRole::User)
            && !message.content.starts_with("Results:")
    });
    let said: Vec<&String> = users.map(|message| &message.content).collect();
    let task = tasks
        .iter()
        .find(|task| said[0].contains(&task.turns[0].query))
        .unwrap();
    let turn = &task.turns[said.len() - 1];
    let last = &messages[messages.len() - 1].content;
    let calls: Vec<Value> = if last.starts_with("Results:") {
        Vec::new()
    } else {
        let calls = turn.calls.iter();
        calls
            .map(|call| json!({"tool": call.tool, "arguments": call.arguments}))
            .collect()
    };
    Act::Says(json!({"calls": calls, "answer": "Done."}).to_string())
}

#[tokio::test]
async fn a_text_is_kept_if_the_model_solves_it_and_refused_if_it_does_not() {
    let suite = examples();
    let grammar = made(&suite, &options(6)).tasks;
    let how = RewriteOptions {
        attempts: 2,
        rounds: 1,
        ..limits()
    };
    let is_solver = |messages: &[ChatMessage]| messages[0].content.contains("You are an assistant");

    let known = grammar.clone();
    let model = Scripted::new(move |messages| {
        if is_solver(messages) {
            solve(&known, messages)
        } else {
            good(messages)
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = grammar.clone();
    let report = rewrite(&suite, &mut tasks, &model, how, folder.path()).await;
    assert_eq!(report.written, 6, "{report:?}");
    let asked = model.asked();
    // One attempt is enough, with two questions a turn: no key is in the question before a tool gives it.
    let turns: usize = grammar.iter().map(|task| task.turns.len()).sum();
    assert_eq!(
        asked.iter().filter(|asked| is_solver(asked)).count(),
        2 * turns
    );

    for answer in ["{\"calls\": [], \"answer\": \"Done.\"}", "I cannot."] {
        let model = Scripted::new(move |messages| {
            if is_solver(messages) {
                Act::Says(answer.to_owned())
            } else {
                good(messages)
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let mut tasks = grammar.clone();
        let report = rewrite(&suite, &mut tasks, &model, how, folder.path()).await;
        assert_eq!(report.refused.get("unsolved"), Some(&6), "{report:?}");
        assert!(
            tasks
                .iter()
                .zip(&grammar)
                .all(|(task, old)| task.turns == old.turns)
        );
        let asked = model.asked();
        let again = asked
            .iter()
            .find(|asked| !is_solver(asked) && asked.len() == 4)
            .unwrap();
        assert!(
            again[3].content.contains("only your text and the tools"),
            "{}",
            again[3].content
        );
    }
}

#[tokio::test]
async fn refused_and_unsolved_texts_count_towards_the_same_rounds() {
    let suite = examples();
    let mut tasks = made(&suite, &options(6)).tasks;
    let how = RewriteOptions {
        attempts: 1,
        rounds: 2,
        ..limits()
    };
    let is_solver = |messages: &[ChatMessage]| messages[0].content.contains("You are an assistant");
    // The first text has a wrong form. No task can be solved from the others.
    let model = Scripted::new(move |messages| {
        if is_solver(messages) {
            Act::Says("I cannot.".to_owned())
        } else if messages.len() == 2 {
            Act::Says("no JSON".to_owned())
        } else {
            good(messages)
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let report = rewrite(&suite, &mut tasks, &model, how, folder.path()).await;
    assert_eq!(report.refused.get("unsolved"), Some(&6), "{report:?}");
    let texts = model.asked();
    let texts = texts.iter().filter(|asked| !is_solver(asked));
    assert_eq!(texts.count(), 6 * 3);
}

#[tokio::test]
async fn an_estimate_is_near_what_is_asked() {
    let suite = examples();
    let options = options(10);
    let tasks = made(&suite, &options).tasks;
    let maker = Maker::new(&suite, &options);
    let prompts = Prompts::load(PROMPTS, None).unwrap();
    let model = Scripted::new(good);
    let rewriter = Rewriter {
        maker: &maker,
        model: &model,
        prompts: &prompts,
        options: limits(),
        observer: &Silent,
    };
    let (estimate, first) = rewriter.estimate(&tasks).unwrap();
    assert_eq!((estimate.questions, estimate.solver_questions), (10, 0));
    assert_eq!(model.asked().len(), 0);
    assert!(
        first.unwrap().messages[1]
            .content
            .contains(&tasks[0].turns[0].query)
    );
    let folder = tempfile::tempdir().unwrap();
    let report = rewrite(&suite, &mut tasks.clone(), &model, limits(), folder.path()).await;
    let (prompt, answer) = estimate.tokens();
    assert_eq!(report.spent.prompt_tokens, prompt);
    assert!(report.spent.answer_tokens <= 2 * answer && answer <= 2 * report.spent.answer_tokens);
    assert!(estimate.most_tokens > 3 * prompt);
}
