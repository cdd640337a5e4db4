//! The promises of the countries, tested through their public interface only.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_forge::countries::{
    CALCULATE, CountriesConfig, CountryTasks, DemonstratedTurn, DemonstrationError, KindShares,
    LOOKUP, QuestionKind, Stage,
};

fn small() -> CountriesConfig {
    CountriesConfig {
        generated: 400,
        ..CountriesConfig::default()
    }
}

fn generator(seed: u64) -> CountryTasks {
    CountryTasks::generate(seed, &small()).unwrap()
}

fn answer(task: &Task) -> &str {
    let answers = task.reference["answer"].as_array().unwrap();
    assert_eq!(answers.len(), 1, "{}", task.id);
    answers[0].as_str().unwrap()
}

/// Performs a demonstration. Returns its turns, each with the results of its calls.
fn carry_out(generator: &CountryTasks, task: &Task) -> Vec<(DemonstratedTurn, Vec<String>)> {
    let mut demonstrator = generator.demonstration(task).unwrap();
    let mut turns: Vec<(DemonstratedTurn, Vec<String>)> = Vec::new();
    let none = Vec::new();
    while let Some(turn) = demonstrator
        .next_turn(turns.last().map_or(&none, |(_, seen)| seen))
        .unwrap()
    {
        let seen = turn
            .calls()
            .iter()
            .map(|call| generator.execute(call))
            .collect();
        turns.push((turn, seen));
    }
    turns
}

#[test]
fn every_demonstration_ends_with_the_right_answer() {
    let generator = generator(1);
    let mut kinds = BTreeSet::new();
    for stage in Stage::ALL {
        for index in 0..1_500 {
            let task = generator.task(Split::Train, stage, index);
            kinds.insert(task.kind().to_owned());
            let turns = carry_out(&generator, &task);
            let (last, _) = turns.last().unwrap();
            assert_eq!(
                last.answer(),
                Some(answer(&task)),
                "{}: {}",
                task.id,
                task.prompt[0].plain_text()
            );
            assert!(turns.len() <= 4, "{}: {} turns", task.id, turns.len());
            for seen in turns.iter().flat_map(|(_, seen)| seen) {
                assert!(
                    !seen.starts_with("no ") && !seen.starts_with("error"),
                    "{}: {seen}",
                    task.id
                );
            }
        }
    }
    assert_eq!(kinds.len(), QuestionKind::ALL.len());
}

#[test]
fn kinds_need_the_calls_they_are_described_with() {
    let generator = generator(2);
    let mut shapes: BTreeMap<String, BTreeSet<Vec<usize>>> = BTreeMap::new();
    for stage in Stage::ALL {
        for index in 0..1_000 {
            let task = generator.task(Split::Train, stage, index);
            let calls = carry_out(&generator, &task)
                .iter()
                .map(|(turn, _)| turn.calls().len())
                .collect();
            shapes
                .entry(task.kind().to_owned())
                .or_default()
                .insert(calls);
        }
    }
    let expected: BTreeMap<String, BTreeSet<Vec<usize>>> = [
        ("spell", vec![0]),
        ("lookup", vec![1, 0]),
        ("contrast", vec![1, 0]),
        ("calculate", vec![1, 0]),
        ("chain", vec![1, 1, 0]),
        ("scale", vec![1, 1, 0]),
        ("chain-scale", vec![1, 1, 1, 0]),
        ("sum", vec![2, 1, 0]),
        ("compare", vec![2, 1, 0]),
        ("ratio", vec![2, 1, 0]),
        ("compare-sums", vec![3, 1, 0]),
    ]
    .into_iter()
    .map(|(kind, shape)| (kind.to_owned(), BTreeSet::from([shape])))
    .collect();
    assert_eq!(shapes, expected);
}

#[test]
fn kinds_come_with_their_shares() {
    let generator = generator(3);
    for (stage, shares) in [
        (Stage::Sft, &generator.config().sft),
        (Stage::Rl, &generator.config().rl),
        (Stage::Eval, &generator.config().eval),
    ] {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for index in 0..8_000 {
            *counts
                .entry(generator.task(Split::Train, stage, index).kind().to_owned())
                .or_default() += 1;
        }
        for kind in QuestionKind::ALL {
            let share = shares.share(kind);
            let found = f64::from(counts.get(kind.as_str()).copied().unwrap_or(0)) / 8_000.0;
            // Five standard deviations.
            let slack = 5.0 * (share * (1.0 - share) / 8_000.0).sqrt();
            assert!(
                (found - share).abs() <= slack,
                "{stage:?} {kind}: {found} for {share}"
            );
        }
    }
}

#[test]
fn a_task_depends_on_its_number_and_not_on_what_was_drawn_before() {
    let (one, other) = (generator(4), generator(4));
    let forwards: Vec<Task> = (0..50)
        .map(|i| one.task(Split::Train, Stage::Rl, i))
        .collect();
    let mut backwards: Vec<Task> = (0..50)
        .rev()
        .map(|i| other.task(Split::Train, Stage::Rl, i))
        .collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    assert_eq!(one.table().to_csv(), other.table().to_csv());
    let ids: BTreeSet<&str> = forwards.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids.len(), 50);
}

#[test]
fn runs_of_different_seeds_train_differently_and_are_tested_alike() {
    let (one, other) = (generator(5), generator(6));
    let prompts = |generator: &CountryTasks, split, stage| -> Vec<Task> {
        (0..50)
            .map(|index| generator.task(split, stage, index))
            .collect()
    };
    for split in [Split::Validation, Split::Test] {
        assert_eq!(
            prompts(&one, split, Stage::Eval),
            prompts(&other, split, Stage::Eval)
        );
    }
    assert_ne!(
        prompts(&one, Split::Train, Stage::Sft),
        prompts(&other, Split::Train, Stage::Sft)
    );

    let dealt_otherwise = CountryTasks::generate(
        5,
        &CountriesConfig {
            split_seed: 1,
            ..small()
        },
    )
    .unwrap();
    assert_ne!(
        prompts(&one, Split::Test, Stage::Eval),
        prompts(&dealt_otherwise, Split::Test, Stage::Eval)
    );
}

#[test]
fn no_question_can_be_told_from_its_answer() {
    // A model that answers without tools must have nothing to copy: no question contains its answer, except names to
    // repeat and comparisons of numbers.
    let generator = generator(7);
    for index in 0..1_000 {
        let task = generator.task(Split::Test, Stage::Eval, index);
        let question = task.prompt[0].plain_text();
        if !matches!(task.kind(), "spell" | "calculate") && answer(&task).len() > 2 {
            let quoted = format!("\"{}\"", answer(&task));
            assert!(!question.contains(&quoted), "{question}");
        }
    }
}

#[test]
fn prompts_are_short() {
    // The largest possible number of tokens: one for every other word, one for every letter of a name.
    let generator = generator(8);
    let tokens = |question: &str| -> usize {
        let parts = question.split('"').enumerate();
        parts
            .map(|(i, part)| {
                if i % 2 == 1 {
                    part.len()
                } else {
                    part.split(' ').count() + 2
                }
            })
            .sum()
    };
    for split in Split::ALL {
        let longest = (0..2_000)
            .map(|i| tokens(&generator.task(split, Stage::Eval, i).prompt[0].plain_text()))
            .max();
        assert!(longest.unwrap() <= 110, "{longest:?} tokens in {split:?}");
    }
}

#[test]
fn the_table_is_plain_csv_with_unique_names() {
    let generator = generator(9);
    let csv = generator.table().to_csv();
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("name,area,population,capital,continent,neighbour")
    );
    let mut names = BTreeSet::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), 6, "{line}");
        assert!(cells[..5].iter().all(|cell| !cell.is_empty()), "{line}");
        assert!(names.insert(cells[0]), "{line}");
    }
    assert_eq!(names.len(), 169 + 400);
    assert!(csv.contains("\nfrance,552,65.8,paris,europe,"));
}

#[test]
fn demonstrations_of_held_out_tasks_are_refused() {
    let generator = generator(10);
    for split in [Split::Validation, Split::Test] {
        let task = generator.task(split, Stage::Eval, 0);
        assert_eq!(
            generator.demonstration(&task).unwrap_err(),
            DemonstrationError::HeldOut { id: task.id }
        );
    }
    for id in [
        "",
        "facts/train/sft",
        "facts/train/sft/x",
        "facts/train/sft/1/2",
        "other/train/sft/1",
    ] {
        let task = Task {
            id: id.to_owned(),
            ..generator.task(Split::Train, Stage::Sft, 0)
        };
        assert_eq!(
            generator.demonstration(&task).unwrap_err(),
            DemonstrationError::UnknownTask { id: id.to_owned() }
        );
    }
}

#[test]
fn a_demonstrator_says_what_it_was_given_and_wants_one_observation_a_call() {
    let config = CountriesConfig {
        sft: KindShares::new([(QuestionKind::Sum, 1.0)]),
        ..small()
    };
    let generator = CountryTasks::generate(11, &config).unwrap();
    let mut demonstrator = generator
        .demonstration(&generator.task(Split::Train, Stage::Sft, 0))
        .unwrap();
    let first = demonstrator.next_turn(&[]).unwrap().unwrap();
    assert_eq!(
        first
            .calls()
            .iter()
            .map(|call| call.name.as_str())
            .collect::<Vec<_>>(),
        [LOOKUP, LOOKUP]
    );
    assert_eq!(
        demonstrator.next_turn(&["1".into()]).unwrap_err(),
        DemonstrationError::Observations {
            calls: 2,
            observations: 1
        }
    );
    // The demonstrator trusts the tools' results, not the table.
    let second = demonstrator
        .next_turn(&["70001".into(), " 70000\n".into()])
        .unwrap()
        .unwrap();
    assert_eq!(second.calls()[0].name, CALCULATE);
    let expression = second.calls()[0].arguments["expression"].as_str().unwrap();
    assert!(
        ["70001+70000", "70001-70000"].contains(&expression),
        "{expression}"
    );
    let third = demonstrator
        .next_turn(&["forty-two".into()])
        .unwrap()
        .unwrap();
    assert_eq!(third.answer(), Some("forty-two"));
    assert_eq!(third.to_hermes(), "<answer>forty-two</answer>");
    assert_eq!(demonstrator.next_turn(&[]).unwrap(), None);
}

#[test]
fn turns_are_written_as_the_hermes_protocol_wants_them() {
    let config = CountriesConfig {
        sft: KindShares::new([(QuestionKind::Lookup, 1.0)]),
        ..small()
    };
    let generator = CountryTasks::generate(12, &config).unwrap();
    let task = generator.task(Split::Train, Stage::Sft, 0);
    let turn = generator
        .demonstration(&task)
        .unwrap()
        .next_turn(&[])
        .unwrap()
        .unwrap();
    let name = task.prompt[0]
        .plain_text()
        .split('"')
        .nth(1)
        .unwrap()
        .to_owned();
    let column = turn.calls()[0].arguments["get"].as_str().unwrap();
    assert_eq!(
        turn.to_hermes(),
        format!(
            "<tool_call>{{\"name\":\"lookup\",\"arguments\":{{\"of\":\"{name}\",\"get\":\"{column}\"}}}}</tool_call>"
        )
    );
}

#[test]
fn the_tokenizer_corpus_names_nobody() {
    let generator = generator(13);
    let corpus: Vec<String> = generator.tokenizer_corpus(500).collect();
    assert_eq!(corpus.len(), 1_000);
    for text in &corpus {
        for name in text.split('"').skip(1).step_by(2) {
            let is_word = !name.contains(|c: char| c.is_ascii_alphabetic());
            let is_known = [
                "name",
                "lookup",
                "calculate",
                "arguments",
                "of",
                "get",
                "expression",
            ]
            .contains(&name);
            let is_column =
                ["area", "population", "capital", "continent", "neighbour"].contains(&name);
            let is_expression = name.starts_with("max(") || name.starts_with("min(");
            assert!(
                is_word || is_known || is_column || is_expression,
                "{name:?} in {text}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// With any seeds, no held-out name reaches training, and held-out questions stay in their split.
    #[test]
    fn nothing_leaks(seed in any::<u64>(), split_seed in any::<u64>()) {
        let config = CountriesConfig { split_seed, ..small() };
        let generator = CountryTasks::generate(seed, &config).unwrap();
        prop_assert_eq!(generator.audit(150), []);
    }

    /// Every task of every split has one answer, and none is negative.
    #[test]
    fn every_task_can_be_answered(seed in any::<u64>(), index in any::<u64>()) {
        let generator = generator(seed);
        for split in Split::ALL {
            for stage in Stage::ALL {
                let task = generator.task(split, stage, index);
                let answer = answer(&task);
                prop_assert!(!answer.is_empty() && !answer.starts_with('-'), "{}: {answer}", task.id);
            }
        }
    }
}
