//! For any text of a model and its tools, training sees the tokens that generation saw.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rlf_dialogue::Step;

#[allow(dead_code, unused_imports)]
#[path = "../../../host/dialogue/tests/all/episode.rs"]
mod property_tests;
#[allow(dead_code)]
#[path = "../../../host/dialogue/tests/all/support.rs"]
mod support;

static DIALOGUES: LazyLock<Vec<std::sync::Arc<rlf_dialogue::Dialogue>>> =
    LazyLock::new(property_tests::all_dialogues);

fuzz_target!(|bytes: &[u8]| {
    let Some(script) = rlf_fuzz::draw(&property_tests::turns(), bytes) else {
        return;
    };
    for dialogue in DIALOGUES.iter() {
        let mut episode = support::start(dialogue);
        let mut reader = support::Reader::default();
        for (text, ended, body) in &script {
            let mut ids = dialogue.tokenizer().encode_trusted(text);
            if *ended {
                ids.push(dialogue.end_of_turn());
            }
            let step = match reader.say_ids(&mut episode, ids) {
                step @ Step::Act(_) => support::answer_calls(&mut episode, step, body),
                step => step,
            };
            if let Step::Finished(_) = step {
                break;
            }
        }
        let said = reader.said.concat();
        reader.read(&mut episode);
        let trajectory = episode.finish();
        assert_eq!(trajectory.sequences.len(), reader.sequences.len());
        let mut masked = Vec::new();
        for (sequence, seen) in trajectory.sequences.iter().zip(&reader.sequences) {
            let tokens = sequence.sampled().expect("every token was sampled or read");
            assert_eq!(&tokens.ids, seen);
            let mask = tokens.mask.as_slice().iter();
            masked.extend(
                tokens
                    .ids
                    .iter()
                    .zip(mask)
                    .filter_map(|(id, model)| model.then_some(*id)),
            );
        }
        assert_eq!(masked, said);
    }
});
