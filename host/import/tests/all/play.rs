//! Demonstrations as trajectories.

use std::sync::Arc;

use rlf_dialogue::trajectory::{ModelSegment, Segment};
use rlf_dialogue::{
    CallOutcome, ChatTemplate, Dialogue, DialogueConfig, Episode, Finish, History, NextInput,
    Observation, RenderInput, Step, Task, TrainingSequence, Trajectory,
};
use rlf_import::{Demonstration, Options, play};
use serde_json::{Value, json};

use crate::support::*;

fn config() -> DialogueConfig {
    DialogueConfig {
        enable_thinking: true,
        ..DialogueConfig::default()
    }
}

fn turns(dialogue: &Dialogue, trajectory: &Trajectory) -> Vec<String> {
    let all = trajectory
        .sequences
        .iter()
        .flat_map(TrainingSequence::segments);
    all.filter_map(|segment| match segment {
        Segment::Model(ModelSegment::Demonstrated { ids, .. }) => {
            Some(dialogue.tokenizer().decode(ids))
        }
        _ => None,
    })
    .collect()
}

fn said(dialogue: &Dialogue, trajectory: &Trajectory) -> String {
    dialogue
        .tokenizer()
        .decode(&trajectory.sequences[0].masked().unwrap().ids)
}

/// Calls with text before them, a result, and an answer, in one round.
fn one_round() -> Demonstration {
    let mut row = openai();
    row["messages"].as_array_mut().unwrap().truncate(8);
    for at in [5, 7] {
        row["messages"][at]["reasoning_content"] = "Now.".into();
    }
    demonstration(&row, &Options::default())
}

#[test]
fn each_turn_is_what_the_chat_template_writes_for_it() {
    let dialogue = qwen3(config());
    let shown = one_round();
    let trajectory = play(&dialogue, &shown).unwrap();
    assert_eq!(
        turns(&dialogue, &trajectory),
        [
            "<think>\nI need both.\n</think>\n\n<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"key\": \"one\"}}\n\
             </tool_call>\n<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"key\": \"two\"}}\n</tool_call><|im_end|>",
            "<think>\nNow.\n</think>\n\nAdding.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 7, \"b\": 35}}\n\
             </tool_call><|im_end|>",
            "<think>\nNow.\n</think>\n\nIt is 42.<|im_end|>",
        ]
    );
    // Qwen3 keeps prefixes within a round, so the sequence is the rendering of the whole conversation.
    let whole = dialogue.template().render(&RenderInput {
        messages: &shown.messages,
        tools: &shown.tools,
        enable_thinking: Some(true),
        add_generation_prompt: false,
    });
    assert_eq!(
        format!("{}\n", said(&dialogue, &trajectory)),
        whole.unwrap()
    );
    assert_eq!(trajectory.outcomes().count(), 3);
    assert_eq!(trajectory.excluded, None);
    let masked = trajectory.sequences[0].masked().unwrap();
    assert_eq!(masked.mask.count(), trajectory.model_tokens());
}

#[test]
fn a_turn_that_is_left_out_is_read_and_not_imitated() {
    let dialogue = qwen3(config());
    let whole = play(&dialogue, &one_round()).unwrap();
    let mut shown = one_round();
    shown.left_out = vec![5];
    let played = play(&dialogue, &shown).unwrap();
    assert_eq!(said(&dialogue, &played), said(&dialogue, &whole));
    let masked = played.sequences[0].masked().unwrap();
    let all = whole.sequences[0].masked().unwrap();
    let both = masked.mask.as_slice().iter().zip(all.mask.as_slice());
    let differing: Vec<u32> = both
        .enumerate()
        .filter(|(_, (now, before))| now != before)
        .map(|(at, _)| masked.ids[at])
        .collect();
    let left_out = masked.left_out.iter().zip(&masked.ids);
    let left_out: Vec<u32> = left_out
        .filter(|(out, _)| **out)
        .map(|(_, id)| *id)
        .collect();
    assert_eq!(differing, left_out);
    assert_eq!(
        dialogue.tokenizer().decode(&left_out),
        turns(&dialogue, &whole)[1]
    );
    let again: Trajectory = serde_json::from_str(&serde_json::to_string(&played).unwrap()).unwrap();
    assert_eq!(again, played);
}

/// The same turns, sampled.
fn rollout(
    dialogue: &Arc<Dialogue>,
    shown: &Demonstration,
    demonstrated: &Trajectory,
) -> Trajectory {
    let task: Task = serde_json::from_value(json!({
        "id": "t", "source": "s", "reference": null, "prompt": shown.messages[..shown.given],
    }))
    .unwrap();
    let mut episode = Episode::start(dialogue, "run/1".into(), &task, shown.tools.clone()).unwrap();
    let mut outcomes = demonstrated.outcomes();
    for segment in demonstrated.sequences[0].segments() {
        let Segment::Model(ModelSegment::Demonstrated { ids, .. }) = segment else {
            continue;
        };
        assert_ne!(episode.next_input(), NextInput::Finished);
        if let Step::Act(calls) = episode.push_sampled(ids.clone(), vec![0.0; ids.len()]) {
            let said = calls.into_iter().map(|call| {
                let observation = outcomes.next().unwrap().observation.clone().unwrap();
                CallOutcome::from_observation(call.call_id, call.name, observation)
            });
            episode.push_outcomes(said.collect());
        }
    }
    episode.finish()
}

#[test]
fn ids_and_mask_are_those_of_a_rollout_that_says_the_same() {
    for (dialogue, shown) in [
        (qwen3(config()), one_round()),
        (qwq(config()), one_round()),
        (
            qwen3(DialogueConfig::default()),
            demonstration(&sharegpt(), &Options::default()),
        ),
        (
            qwq(DialogueConfig::default()),
            demonstration(&sharegpt(), &Options::default()),
        ),
    ] {
        let demonstrated = play(&dialogue, &shown).unwrap();
        let sampled = rollout(&dialogue, &shown, &demonstrated);
        let (shown, seen) = (&demonstrated.sequences[0], &sampled.sequences[0]);
        let (shown, seen) = (shown.masked().unwrap(), seen.sampled().unwrap());
        assert_eq!((shown.ids, shown.mask), (seen.ids, seen.mask));
        assert_eq!(
            demonstrated
                .turns()
                .map(|turn| &turn.visible)
                .collect::<Vec<_>>(),
            sampled
                .turns()
                .map(|turn| &turn.visible)
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_turn_begins_where_the_prompt_for_it_ends() {
    // Thinking off: the prompt holds the empty think block.
    let dialogue = qwen3(DialogueConfig::default());
    let shown = demonstration(&sharegpt(), &Options::default());
    let trajectory = play(&dialogue, &shown).unwrap();
    assert_eq!(turns(&dialogue, &trajectory)[1], "It is 7.<|im_end|>");
    assert!(
        said(&dialogue, &trajectory)
            .ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\nIt is 7.<|im_end|>")
    );
    // Reasoning is not possible there.
    let error = play(&dialogue, &one_round()).unwrap_err().to_string();
    assert!(
        error.contains("messages[2]: ") && error.contains("dialogue.enable_thinking = true"),
        "{error}"
    );
    // This prompt leaves the think block open.
    let dialogue = qwq(config());
    let trajectory = play(&dialogue, &one_round()).unwrap();
    assert_eq!(
        turns(&dialogue, &trajectory)[2],
        "Now.\n</think>\n\nIt is 42.<|im_end|>"
    );
    assert_eq!(
        trajectory.turns().nth(2).unwrap().reasoning.as_deref(),
        Some("Now.\n")
    );
}

#[test]
fn users_speak_between_turns_as_an_environments_user_does() {
    for history in [History::AsSampled, History::Template] {
        let dialogue = qwen3(DialogueConfig {
            history,
            ..config()
        });
        let trajectory = play(&dialogue, &demonstration(&openai(), &Options::default())).unwrap();
        assert_eq!(turns(&dialogue, &trajectory).len(), 4);
        let last = trajectory.sequences.last().unwrap();
        let last = dialogue.tokenizer().decode(&last.masked().unwrap().ids);
        assert!(
            last.ends_with("<|im_start|>user\nAnd twice that?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n84.<|im_end|>"),
            "{last}"
        );
        // A new user turn removes earlier reasoning from Qwen3's rendering.
        assert_eq!(trajectory.sequences.len() > 1, history == History::Template);
    }
}

#[test]
fn what_is_given_is_read_and_not_imitated() {
    let dialogue = qwen3(config());
    let trajectory = play(&dialogue, &demonstration(&alpaca(), &Options::default())).unwrap();
    assert_eq!(
        turns(&dialogue, &trajectory),
        ["<think>\nSeven.\n</think>\n\nIt is 7.<|im_end|>"]
    );
    assert!(said(&dialogue, &trajectory).contains("<tool_response>\n7\n</tool_response>"));
}

#[test]
fn a_demonstration_may_end_with_calls() {
    let dialogue = qwen3(config());
    for length in [3, 5] {
        let mut row = openai();
        row["messages"].as_array_mut().unwrap().truncate(length);
        let trajectory = play(&dialogue, &demonstration(&row, &Options::default())).unwrap();
        assert_eq!(
            (trajectory.finish, trajectory.excluded.as_deref()),
            (Finish::Terminated, None)
        );
        assert_eq!(turns(&dialogue, &trajectory).len(), 1);
        assert_eq!(
            trajectory.outcomes().count(),
            if length == 3 { 0 } else { 2 }
        );
    }
}

#[test]
fn a_last_turn_answers_by_the_dialogues_rule() {
    let mut row = sharegpt();
    row["conversations"][3]["value"] = "<answer>7</answer>".into();
    let dialogue = qwen3(DialogueConfig::default());
    let trajectory = play(&dialogue, &demonstration(&row, &Options::default())).unwrap();
    assert_eq!(
        (trajectory.finish, trajectory.answer.as_deref()),
        (Finish::Answered, Some("7"))
    );
    let trajectory = play(&dialogue, &demonstration(&sharegpt(), &Options::default())).unwrap();
    assert_eq!(
        (trajectory.finish, trajectory.answer),
        (Finish::Terminated, None)
    );
}

#[test]
fn what_does_not_fit_the_dialogue_says_what_to_raise() {
    let shown = demonstration(&openai(), &Options::default());
    let refused = |config: DialogueConfig| play(&qwen3(config), &shown).unwrap_err().to_string();
    let said = refused(DialogueConfig {
        max_turns: 2,
        ..config()
    });
    assert!(
        said.contains("messages[5]") && said.contains("dialogue.max_turns (2)"),
        "{said}"
    );
    let said = refused(DialogueConfig {
        max_turns: 3,
        ..config()
    });
    assert!(said.contains("dialogue.max_turns (3)"), "{said}");
    let whole = play(&qwen3(config()), &shown).unwrap().sequences[0]
        .masked()
        .unwrap()
        .ids
        .len() as u32;
    let said = refused(DialogueConfig {
        context: whole - 20,
        ..config()
    });
    assert!(said.contains("dialogue.context"), "{said}");
    let said = refused(DialogueConfig {
        context: 20,
        ..config()
    });
    assert!(said.contains("raise it"), "{said}");
}

#[test]
fn control_tokens_in_a_demonstrated_turn_are_refused() {
    let dialogue = qwen3(config());
    for (place, text) in [
        ("content", "It is<|im_end|>\n<|im_start|>user"),
        ("reasoning_content", "<|endoftext|>"),
    ] {
        let mut row = openai();
        row["messages"][7][place] = text.into();
        let error = play(&dialogue, &demonstration(&row, &Options::default()))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("messages[7]: it holds \"<|") && error.contains("control token"),
            "{error}"
        );
    }
    // In a result the tags are text.
    let mut row = openai();
    row["messages"][3]["content"] = "<|im_end|>".into();
    let trajectory = play(&dialogue, &demonstration(&row, &Options::default())).unwrap();
    assert_eq!(turns(&dialogue, &trajectory).len(), 4);
}

#[test]
fn the_small_template_has_no_white_space_in_calls() {
    let tokenizer = rlf_dialogue::Tokenizer::train_bpe(
        std::iter::repeat_n("What is key one? It is 7.".to_owned(), 9),
        &rlf_dialogue::BpeOptions::default(),
    );
    let template = ChatTemplate::small();
    let dialogue = Dialogue::new(
        Arc::new(tokenizer.unwrap()),
        template,
        DialogueConfig::default(),
        &[],
    )
    .unwrap();
    let dialogue = Arc::new(dialogue);
    let trajectory = play(&dialogue, &demonstration(&sharegpt(), &Options::default())).unwrap();
    assert_eq!(
        turns(&dialogue, &trajectory),
        [
            "<tool_call>{\"name\":\"lookup\",\"arguments\":{\"key\":\"one\"}}</tool_call><|end|>",
            "It is 7.<|end|>"
        ]
    );
}

#[test]
fn what_a_result_said_is_the_calls_outcome() {
    let trajectory = play(&qwen3(config()), &one_round()).unwrap();
    let said: Vec<(&str, &Option<Observation>)> = trajectory
        .outcomes()
        .map(|outcome| (outcome.name.as_str(), &outcome.observation))
        .collect();
    assert_eq!(said[0], ("lookup", &Some(Observation::text("7", false))));
    assert_eq!(said[1], ("lookup", &Some(Observation::text("35", false))));
    assert_eq!(said[2], ("add", &Some(Observation::text("42", false))));
    let calls: Vec<&Value> = trajectory
        .turns()
        .flat_map(|turn| &turn.calls)
        .map(|call| &call.arguments)
        .collect();
    assert_eq!(calls[2], &json!({"a": 7, "b": 35}));
}
