//! The promises of the stages that make rows, for any seed. The end-to-end tests run the interpreter.

#[path = "rows/decomposing.rs"]
mod decomposing;
#[path = "writer/scripted.rs"]
mod scripted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;
use rlf_dialogue::split::Split;
use rlf_forge::rows::complexity_scaling::scale;
use rlf_forge::rows::decompose::decompose;
use rlf_forge::rows::deployment::deploy;
use rlf_forge::rows::document::{Function, ParameterKind, Record, Role, Toolset};
use rlf_forge::rows::document_generation::document;
use rlf_forge::rows::facts::Facts;
use rlf_forge::rows::function_integration::integrate;
use rlf_forge::rows::generated_facts::generate_facts;
use rlf_forge::rows::options::{Complexity, MAX_TOOLS, RowOptions, Scenario};
use rlf_forge::rows::output::{demonstration, ftrl_row, task};
use rlf_forge::rows::question::{Question, Source, Work};
use rlf_forge::rows::rejection::Check;
use rlf_forge::rows::row::Row;
use rlf_forge::rows::{Input, make_rows};
use serde_json::Value;

/// Entities of each kind in the graphs of these tests.
const ENTITIES: usize = 60;

fn options(seed: u64, complexity: Complexity) -> RowOptions {
    RowOptions {
        count: 100,
        seed,
        complexity,
        ..RowOptions::default()
    }
}

fn questions(facts: &Facts, options: &RowOptions, count: usize) -> Vec<Question> {
    (0..count)
        .filter_map(|index| decompose(facts, options, index).ok())
        .collect()
}

fn toolsets(question: Question, facts: &Facts, options: &RowOptions) -> [Toolset; 3] {
    let documented = document(question, facts, options);
    let integrated = integrate(documented.clone(), options);
    let scaled = scale(integrated.clone(), facts, options);
    [documented, integrated, scaled]
}

fn rows(seed: u64, complexity: Complexity, count: usize) -> Vec<Row> {
    let options = options(seed, complexity);
    let facts = generate_facts(seed, ENTITIES);
    questions(&facts, &options, count)
        .into_iter()
        .map(|question| {
            let [_, _, scaled] = toolsets(question, &facts, &options);
            deploy(scaled, &options).expect("it is small enough")
        })
        .collect()
}

/// Each look-up has one record in its tool, with the sub-answer.
fn knows_every_step(toolset: &Toolset) {
    for (step, used) in toolset.question.steps.iter().zip(&toolset.uses) {
        let document = &toolset.documents[*used];
        let (Work::Lookup(lookup), Function::Lookup(table)) = (&step.work, &document.function)
        else {
            assert!(
                matches!(step.work, Work::Calculate(_))
                    && matches!(document.function, Function::Calculate)
            );
            continue;
        };
        let subject = toolset
            .question
            .value(&step.sources[0])
            .expect("an earlier step");
        let is_it =
            |record: &&Record| record.subject == subject && record.attribute == lookup.relation;
        let known: Vec<_> = table.records.iter().filter(is_it).collect();
        assert_eq!(known.len(), 1, "{document:?}");
        assert_eq!(known[0].value, step.answer);
        // A tool that knows several things asks which one is wanted, and offers them all.
        let offered = document
            .parameters
            .iter()
            .find(|one| one.role == Role::Attribute);
        let attributes: Vec<&str> = table
            .attributes
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        match offered.map(|parameter| &parameter.kind) {
            Some(ParameterKind::Choice(values)) => assert_eq!(*values, attributes),
            other => assert!(attributes.len() == 1 && other.is_none(), "{document:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_question_has_as_many_sub_answers_as_published_and_needs_only_earlier_ones(seed in any::<u64>()) {
        let options = options(seed, Complexity::None);
        let facts = generate_facts(seed, ENTITIES);
        for question in questions(&facts, &options, 16) {
            let (least, most) = question.scenario.sub_answers();
            prop_assert!((least..=most).contains(&question.steps.len()), "{:?}", question);
            let mut needed = BTreeSet::new();
            for (index, step) in question.steps.iter().enumerate() {
                for source in &step.sources {
                    match source {
                        Source::Step(earlier) => {
                            prop_assert!(*earlier < index);
                            needed.insert(*earlier);
                        }
                        Source::Text(text) => prop_assert!(question.question.contains(text.as_str())),
                    }
                }
                prop_assert!(!question.question.contains(&step.answer), "{:?}", question);
            }
            // No step is superfluous: the last one, or those that are compared, need all others.
            let ends = (0..question.steps.len()).filter(|step| !needed.contains(step)).count();
            prop_assert!(ends <= 3);
        }
    }

    #[test]
    fn stages_keep_a_tool_for_every_step(seed in any::<u64>(), which in 0..Complexity::ALL.len()) {
        let options = options(seed, Complexity::ALL[which]);
        let facts = generate_facts(seed, ENTITIES);
        for question in questions(&facts, &options, 8) {
            let steps = question.steps.len();
            let [documented, integrated, scaled] = toolsets(question, &facts, &options);
            prop_assert_eq!(documented.documents.len(), steps);
            prop_assert!(integrated.documents.len() <= steps);
            let distractors = scaled.documents.iter().filter(|one| one.distractor).count();
            prop_assert_eq!(scaled.documents.len() - distractors, integrated.documents.len());
            for toolset in [&documented, &integrated, &scaled] {
                knows_every_step(toolset);
                let names: BTreeSet<&str> = toolset.documents.iter().map(|one| one.name.as_str()).collect();
                prop_assert_eq!(names.len(), toolset.documents.len());
            }
        }
    }

    #[test]
    fn deployed_calls_fit_their_schemas_and_tools_their_sizes(seed in any::<u64>(), which in 0..Complexity::ALL.len()) {
        let complexity = Complexity::ALL[which];
        for row in rows(seed, complexity, 8) {
            prop_assert!((1..=MAX_TOOLS).contains(&row.tools.len()));
            for call in &row.calls {
                let tool = row.tool(&call.tool).expect("it is one of the row's");
                let arguments = Value::Object(call.arguments.clone());
                prop_assert!(jsonschema::is_valid(&tool.parameters, &arguments), "{} {arguments}", tool.parameters);
                let head = format!("def {}(", tool.name);
                prop_assert!(tool.source.starts_with(&head));
            }
            let written = ftrl_row(&row);
            let tools = written["tools"].as_str().expect("a text");
            prop_assert!(tools.chars().count() <= complexity.max_tool_characters());
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_rows() {
    for complexity in Complexity::ALL {
        assert_eq!(rows(7, complexity, 12), rows(7, complexity, 12));
    }
    assert_ne!(rows(7, Complexity::None, 4), rows(8, Complexity::None, 4));
}

#[tokio::test]
async fn a_larger_count_continues_a_smaller_one() {
    let deployed = async |count: usize| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = RowOptions {
            count,
            ..options(7, Complexity::None)
        };
        let input = Input::Generated;
        let made = make_rows(&input, &options, folder.path(), None, None, |_| {}).await;
        made.expect("it needs no interpreter");
        let file = folder.path().join("5-deployed.jsonl");
        fs::read_to_string(file).expect("it was made")
    };
    let (few, many) = (deployed(8).await, deployed(1_600).await);
    let (few, many): (Vec<&str>, Vec<&str>) = (few.lines().collect(), many.lines().collect());
    assert!(few.len() > 8 && many.len() > 1_600);
    // The first line has the key of what it was made from.
    assert_eq!(few[1..], many[1..few.len()]);
}

#[test]
fn no_entity_and_no_tool_is_in_two_splits() {
    let mut owners: BTreeMap<String, Split> = BTreeMap::new();
    let mut splits = BTreeSet::new();
    for row in rows(3, Complexity::Published, 300) {
        splits.insert(row.split);
        let tools = row.tools.iter().map(|tool| format!("tool {}", tool.name));
        let named = row.calls.iter().map(|call| &call.answer);
        let named = named.filter(|answer| answer.chars().any(char::is_alphabetic));
        let entities = row
            .given
            .iter()
            .chain(named)
            .map(|name| format!("entity {name}"));
        for name in tools.chain(entities) {
            assert_eq!(
                *owners.entry(name.clone()).or_insert(row.split),
                row.split,
                "{name}"
            );
        }
    }
    assert_eq!(splits.len(), 3);
}

#[test]
fn a_row_has_the_fields_of_ftrls_rows() {
    for (row, scenario) in rows(1, Complexity::Published, 4).iter().zip(Scenario::ALL) {
        let written = ftrl_row(row);
        let fields: Vec<&String> = written.as_object().expect("an object").keys().collect();
        assert_eq!(
            fields,
            [
                "messages",
                "tools",
                "codes",
                "unsolved_set",
                "solve_rate",
                "data_source",
                "split",
                "answer"
            ]
        );
        assert_eq!(written["data_source"], format!("self/{scenario}"));
        let inside = |name: &str| -> Value {
            let text = written[name].as_str().expect("a text");
            // As Python's json.dumps writes it.
            assert!(!text.contains("\":\""), "{text}");
            serde_json::from_str(text).expect("JSON")
        };
        let (tools, codes, unsolved) = (inside("tools"), inside("codes"), inside("unsolved_set"));
        let names: Vec<&str> = tools
            .as_array()
            .expect("a list")
            .iter()
            .map(|tool| tool["function"]["name"].as_str().expect("a name"))
            .collect();
        let coded: Vec<&String> = codes.as_object().expect("an object").keys().collect();
        assert_eq!(names, coded);
        let answers: usize = unsolved
            .as_object()
            .expect("an object")
            .values()
            .map(|answers| answers.as_array().expect("a list").len())
            .sum();
        assert_eq!(answers, row.calls.len());
        assert_eq!(
            task(row).reference["calls"]
                .as_array()
                .expect("a list")
                .len(),
            row.calls.len()
        );
    }
}

#[test]
fn a_demonstration_makes_independent_calls_in_one_turn() {
    let rows = rows(5, Complexity::None, 40);
    let mut parallel = 0;
    for row in &rows {
        let results: Vec<String> = row.calls.iter().map(|call| call.answer.clone()).collect();
        let made = demonstration(row, &results);
        let messages = made["messages"].as_array().expect("a list");
        let calls: Vec<usize> = messages
            .iter()
            .filter_map(|message| Some(message["tool_calls"].as_array()?.len()))
            .collect();
        assert_eq!(calls.iter().sum::<usize>(), row.calls.len());
        parallel += usize::from(calls.iter().any(|count| *count > 1));
        let said = messages.last().expect("there is one");
        assert_eq!(said["content"], row.answer.as_str());
        // A result comes before every call that needs it.
        let mut seen = String::new();
        for message in messages {
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let arguments = call["arguments"].to_string();
                for earlier in &row.calls {
                    let is_needed = arguments.contains(&format!("\"{}\"", earlier.answer));
                    assert!(!is_needed || seen.contains(&earlier.answer), "{made}");
                }
            }
            seen.push_str(message["content"].as_str().unwrap_or_default());
        }
    }
    assert!(parallel > 5);
}

#[test]
fn tools_that_are_too_long_are_rejected_with_their_size() {
    let options = options(0, Complexity::None);
    let facts = generate_facts(0, ENTITIES);
    let question = questions(&facts, &options, 1).remove(0);
    let mut toolset = document(question, &facts, &options);
    toolset.documents[0].description = "long ".repeat(4_000);
    let found = deploy(toolset, &options).expect_err("it is too long");
    assert_eq!(found.check, Check::Size);
    assert!(
        found.reason.contains("8000 characters are allowed"),
        "{found:?}"
    );
}
