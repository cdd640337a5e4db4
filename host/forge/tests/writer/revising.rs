//! Stages and rounds: what goes back to the model, and why the rounds end.

use std::fs;

use rlf_files::FolderLock;
use rlf_forge::ask::{AskError, Limits};
use rlf_forge::writer::{NotOpened, Reached, Standstill, Stop, WriteError};

use crate::scripted::{Act, Scripted, hurried, says};
use crate::writing::{
    NoPlugins, PLAN, SCENARIOS, SKETCH, SPECIFICATION, Stalls, request, write, write_with,
};

/// A mistake that the static checks find at the condition of `lend_tool`.
fn misspelt(text: &str) -> String {
    text.replace(
        "require = \"!tool.in_repair\", error = \"the {tool.title} is in repair; end",
        "require = \"!tool.in_repar\", error = \"the {tool.title} is in repair; end",
    )
}

/// Another one, in an invariant.
fn wrong_rule(text: &str) -> String {
    text.replace("<= members[m].max_loans)", "<= members[m].most)")
}

fn whole(text: &str) -> String {
    format!("{text}\n{SCENARIOS}")
}

fn fenced(said: &str, text: &str) -> Act {
    says(format!("{said}\n```toml\n{text}\n```\n"))
}

/// A script up to the first candidate, then `acts`.
fn script(first: &str, acts: Vec<Act>) -> Scripted {
    let mut all = vec![
        says(format!("```json\n{SKETCH}```")),
        says(PLAN),
        fenced("", first),
        fenced("", SCENARIOS),
    ];
    all.extend(acts);
    Scripted::new(all)
}

#[tokio::test]
async fn findings_go_back_and_a_lie_is_found_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let both = wrong_rule(&misspelt(SPECIFICATION));
    let model = script(
        &both,
        vec![
            // It says that it mended both, and mended the second.
            fenced("1: mended\n2: mended", &whole(&misspelt(SPECIFICATION))),
            // It says so again, and changes a comment.
            fenced(
                "1: mended",
                &format!("# Mended.\n{}", whole(&misspelt(SPECIFICATION))),
            ),
        ],
    );
    let written = write(&model, 5, folder.path()).await.unwrap();
    assert_eq!(
        written.stop,
        Stop::NoProgress {
            why: Standstill::NothingMended
        }
    );
    assert_eq!(
        (written.best, written.rounds.len(), written.sound),
        (1, 3, false)
    );
    let asked = model.last(4);
    assert!(
        asked.contains("/operations/3/preconditions/0/require: "),
        "{asked}"
    );
    assert!(asked.contains("/invariants/2/require: "), "{asked}");
    assert!(asked.contains("(bad-expression)"), "{asked}");
    assert!(!asked.contains("were found again"));
    let claims = written.rounds[1].claims.as_ref().unwrap();
    assert_eq!((claims.mended.len(), claims.untrue.len()), (2, 1));
    assert!(
        model
            .last(5)
            .contains("found again: /operations/3/preconditions/0/require. ")
    );
    // Every round is on disk, and nothing is where sound environments are.
    for round in &written.rounds {
        let record = round.file.with_file_name("round.json");
        let record: serde_json::Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        assert_eq!(record["number"], round.number);
    }
    assert!(!folder.path().join("ToolLibrary.toml").exists());
}

#[tokio::test]
async fn a_file_that_was_there_before_is_no_progress() {
    let folder = tempfile::tempdir().unwrap();
    let first = whole(&misspelt(SPECIFICATION));
    let second = whole(&wrong_rule(SPECIFICATION));
    let model = script(
        &misspelt(SPECIFICATION),
        vec![fenced("", &second), fenced("", &second)],
    );
    let written = write(&model, 5, folder.path()).await.unwrap();
    assert_eq!(
        written.stop,
        Stop::NoProgress {
            why: Standstill::Unchanged
        }
    );
    assert_eq!((written.best, written.rounds.len()), (0, 2));
    let folder = tempfile::tempdir().unwrap();
    // `with_scenarios` made the first file, so that the same words come back in its form.
    let first_file = {
        let model = script(&misspelt(SPECIFICATION), vec![Act::Fails]);
        let written = write(&model, 5, folder.path()).await.unwrap();
        fs::read_to_string(&written.file).unwrap()
    };
    assert_ne!(first_file, first);
    let folder = tempfile::tempdir().unwrap();
    let model = script(
        &misspelt(SPECIFICATION),
        vec![fenced("", &second), fenced("", &first_file)],
    );
    let written = write(&model, 5, folder.path()).await.unwrap();
    assert_eq!(
        written.stop,
        Stop::NoProgress {
            why: Standstill::Repeated
        }
    );
}

#[tokio::test]
async fn the_best_round_is_kept_when_the_rounds_end() {
    let folder = tempfile::tempdir().unwrap();
    // It mends the condition and breaks two rules.
    let worse = wrong_rule(SPECIFICATION).replace("].in_repair)\"", "].in_repar)\"");
    let model = script(
        &misspelt(SPECIFICATION),
        vec![fenced("1: mended", &whole(&worse))],
    );
    let written = write(&model, 1, folder.path()).await.unwrap();
    assert_eq!(written.stop, Stop::Rounds);
    let errors: Vec<usize> = written
        .rounds
        .iter()
        .map(|one| one.examination.errors())
        .collect();
    assert_eq!((errors[0], written.best), (1, 0));
    assert!(errors[1] > 1, "{errors:?}");
    assert_eq!(written.file, written.rounds[0].file);
}

#[tokio::test]
async fn what_a_revision_leaves_out_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (before, rest) = SPECIFICATION
        .split_once("[[operations]]\nname = \"start_repair\"")
        .unwrap();
    let without = format!(
        "{before}[[operations]]{}",
        rest.split_once("[[operations]]").unwrap().1
    );
    let model = script(&without, vec![]);
    let written = write(&model, 0, folder.path()).await.unwrap();
    let found = &written.rounds[0].examination;
    assert_eq!(found.reached, Reached::Checked);
    let missing = found
        .findings
        .iter()
        .find(|one| one.kind == "missing-operation");
    assert_eq!(missing.unwrap().place, "start_repair");
    let renamed = SPECIFICATION.replace("name = \"ToolLibrary\"", "name = \"Tools\"");
    let folder = tempfile::tempdir().unwrap();
    let written = write(&script(&renamed, vec![]), 0, folder.path())
        .await
        .unwrap();
    assert_eq!(written.rounds[0].examination.findings[0].kind, "wrong-name");
    // A file that passes the checks is opened, and what the opener says goes back to the model.
    let folder = tempfile::tempdir().unwrap();
    let model = script(SPECIFICATION, vec![Act::Fails]);
    let written = write(&model, 1, folder.path()).await.unwrap();
    assert!(
        model
            .last(4)
            .contains("ToolLibrary.toml: there are no plugins")
    );
    assert!(
        matches!(written.stop, Stop::Unanswered { ref message } if message.contains("no money"))
    );
}

#[tokio::test]
async fn a_failure_half_way_loses_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let broken = SKETCH.replacen("\"name\"", "\"name\",", 1);
    let model = Scripted::new(vec![
        says(broken),
        says(SKETCH.replace("ToolLibrary", "tool library")),
        says(SKETCH),
        Act::Fails,
    ]);
    let error = write(&model, 3, folder.path()).await.unwrap_err();
    assert!(
        matches!(error, WriteError::Ask(AskError::Endpoint { .. })),
        "{error}"
    );
    assert!(model.last(1).contains("it is no JSON: "));
    assert!(model.last(2).contains("/name: "), "{}", model.last(2));
    // The plan is asked for; the sketch is not.
    let rest = Scripted::new(vec![
        says(PLAN.replace("key of loan", "key of lease")),
        says(PLAN),
        says("name = \"ToolLibrary\"\nentities = ["),
        fenced("", SPECIFICATION),
        fenced("", SCENARIOS),
    ]);
    let written = write(&rest, 0, folder.path()).await.unwrap();
    assert!(rest.asked()[0][1].content.contains("This is the sketch"));
    assert!(rest.last(1).contains("`lease`, which is no entity"));
    assert!(rest.last(3).contains("is no TOML: "));
    assert_eq!(written.spent.answers, 8);
    let silent = Scripted::new(vec![]);
    let again = write(&silent, 0, folder.path()).await.unwrap();
    assert_eq!((again.spent.answers, &again.file), (8, &written.file));
}

#[tokio::test]
async fn time_and_tokens_end_the_rounds_and_the_same_request_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let opener = NoPlugins(NotOpened::Faulty);
    // The time begins with the first question that has no answer on disk: the one that stalls.
    let model = script(&misspelt(SPECIFICATION), vec![]);
    write(&model, 0, folder.path()).await.unwrap();
    let model = Scripted::new(vec![Act::Stalls]);
    let written = write_with(&model, 3, folder.path(), hurried(), &opener).await;
    let written = written.unwrap();
    assert_eq!((written.stop, written.rounds.len()), (Stop::Time, 1));
    let poor = Limits {
        tokens: 5_000,
        ..Limits::default()
    };
    let silent = Scripted::new(vec![]);
    let written = write_with(&silent, 3, folder.path(), poor, &opener).await;
    let written = written.unwrap();
    assert!(
        matches!(written.stop, Stop::Tokens { .. }),
        "{:?}",
        written.stop
    );
    let rest = Scripted::new(vec![fenced("1: mended", &whole(SPECIFICATION))]);
    let written = write(&rest, 1, folder.path()).await.unwrap();
    assert_eq!((written.stop, written.rounds.len()), (Stop::Rounds, 2));
}

#[tokio::test]
async fn a_machine_that_cannot_play_is_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    let opener = NoPlugins(NotOpened::Unavailable);
    let model = script(SPECIFICATION, vec![]);
    let error = write_with(&model, 3, folder.path(), Limits::default(), &opener).await;
    let error = error.unwrap_err();
    assert!(
        matches!(&error, WriteError::Unplayable { path, .. } if path.ends_with("ToolLibrary.toml")),
        "{error}"
    );
    // The answers are kept: played elsewhere, nothing is asked again.
    let silent = Scripted::new(vec![]);
    assert_eq!(
        write(&silent, 0, folder.path()).await.unwrap().stop,
        Stop::Rounds
    );
}

#[tokio::test]
async fn a_candidate_that_the_time_did_not_suffice_for_is_not_called_slow() {
    let folder = tempfile::tempdir().unwrap();
    let model = script(SPECIFICATION, vec![]);
    let error = write_with(&model, 3, folder.path(), hurried(), &Stalls).await;
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "round 0: the limit of 1 s ends here");
    // The answers are kept, and the candidate is examined when there is time.
    let silent = Scripted::new(vec![]);
    let written = write(&silent, 0, folder.path()).await.unwrap();
    assert_eq!(
        written.rounds[0].examination.findings[0].kind,
        "does-not-load"
    );
    // Of a revision there is an earlier candidate to keep.
    let folder = tempfile::tempdir().unwrap();
    let revised = fenced("1: mended", &whole(SPECIFICATION));
    let model = script(&misspelt(SPECIFICATION), vec![revised]);
    let written = write_with(&model, 3, folder.path(), hurried(), &Stalls).await;
    let written = written.unwrap();
    assert_eq!((written.stop, written.rounds.len()), (Stop::Time, 1));
}

#[tokio::test]
async fn the_same_request_is_not_paid_for_twice_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let work = request(0).folder(&folder.path().join("work"));
    fs::create_dir_all(&work).unwrap();
    let _held = FolderLock::take(&work).unwrap();
    let model = Scripted::new(vec![]);
    let error = write(&model, 0, folder.path()).await.unwrap_err();
    assert!(
        matches!(&error, WriteError::InUse(held) if *held == work),
        "{error}"
    );
    assert!(model.asked().is_empty());
}
