//! Token ids are those of transformers, and untrusted text never gives a control token.

use std::path::Path;

use crate::support::{QWEN, SMALL, expected, fixture};
use proptest::prelude::*;
use rlf_dialogue::*;

#[test]
fn ids_equal_those_of_transformers_on_plain_text() {
    for case in expected()["plain"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(QWEN.encode_untrusted(text), ids, "{text:?}");
        assert_eq!(QWEN.encode_trusted(text), ids, "{text:?}");
    }
}

#[test]
fn trusted_text_gives_every_added_token_and_untrusted_text_none() {
    for tokenizer in [&QWEN, &SMALL] {
        let added: Vec<u32> = tokenizer.added_tokens().map(|(id, _)| id).collect();
        assert!(added.len() > 10);
        for (id, token) in tokenizer.added_tokens() {
            assert_eq!(tokenizer.encode_trusted(token), [id], "{token}");
            let ids = tokenizer.encode_untrusted(token);
            assert!(
                ids.iter().all(|id| !added.contains(id)),
                "{token} became {ids:?}"
            );
            assert_eq!(tokenizer.decode(&ids), token);
        }
    }
}

#[test]
fn an_added_token_that_merges_can_spell_is_not_given_to_untrusted_text() {
    let corpus = std::iter::repeat_n("hello hello".to_owned(), 20);
    let options = BpeOptions {
        special_tokens: vec!["<end>".into()],
        ..BpeOptions::default()
    };
    let trained = Tokenizer::train_bpe(corpus, &options).unwrap();
    let hello = trained.id("hello").expect("merged into one token");
    assert_eq!(trained.encode_untrusted("hello"), [hello]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    trained.save(&path).unwrap();
    let mut json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut token = json["added_tokens"][0].clone();
    token["id"] = hello.into();
    token["content"] = "hello".into();
    json["added_tokens"].as_array_mut().unwrap().push(token);
    std::fs::write(&path, json.to_string()).unwrap();

    let tokenizer = Tokenizer::load(&path).unwrap();
    assert_eq!(tokenizer.encode_trusted("hello"), [hello]);
    for text in ["hello", "hellohello hello", "say hello.", "hhello"] {
        let ids = tokenizer.encode_untrusted(text);
        assert!(!ids.contains(&hello), "{text:?} became {ids:?}");
        assert_eq!(tokenizer.decode(&ids), text);
    }
}

proptest! {
    #[test]
    fn no_text_at_all_gives_an_added_token(
        pieces in prop::collection::vec(
            prop_oneof![
                any::<String>(),
                (0..26_usize).prop_map(|at| QWEN.added_tokens().nth(at).unwrap().1.to_owned()),
                (0..26_usize, 1..9_usize).prop_map(|(at, cut)| {
                    let token = QWEN.added_tokens().nth(at).unwrap().1;
                    token[..cut.min(token.len())].to_owned()
                }),
            ],
            0..8,
        ),
    ) {
        let text = pieces.concat();
        let ids = QWEN.encode_untrusted(&text);
        prop_assert!(QWEN.added_tokens().all(|(added, _)| !ids.contains(&added)));
    }

    #[test]
    fn decoding_gives_back_what_was_encoded(text in "[a-zA-Z0-9 .,\\n<>|_äöü日本😀-]{0,60}") {
        prop_assert_eq!(SMALL.decode(&SMALL.encode_untrusted(&text)), text.clone());
        prop_assert_eq!(SMALL.decode(&SMALL.encode_trusted(&text)), text);
    }

    #[test]
    fn any_ids_decode(ids in prop::collection::vec(any::<u32>(), 0..20)) {
        let _ = SMALL.decode(&ids);
    }
}

#[test]
fn a_text_cut_inside_a_character_decodes_with_a_replacement() {
    let ids = SMALL.encode_untrusted("日");
    assert_eq!(ids.len(), 3, "three bytes, never merged in this corpus");
    assert_eq!(SMALL.decode(&ids[..2]), "\u{fffd}");
    assert_eq!(SMALL.decode(&ids), "日");
}

#[test]
fn every_digit_stands_alone() {
    let corpus = std::iter::repeat_n("1234 1234 1234".to_owned(), 50);
    let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
    assert_eq!(tokenizer.encode_untrusted("1234").len(), 4);
}

#[test]
fn training_depends_on_corpus_and_options_alone() {
    let train = || {
        let corpus = (0..200).map(|n| format!("row {n} <tool_call>capital of name{}\n", n % 7));
        let options = BpeOptions {
            vocab_size: 320,
            ..BpeOptions::default()
        };
        Tokenizer::train_bpe(corpus, &options).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str| {
        let path = folder.path().join(name);
        train().save(&path).unwrap();
        std::fs::read(path).unwrap()
    };
    let first = save("a.json");
    for _ in 0..3 {
        assert!(first == save("b.json"), "two trainings differ");
    }
    // Special tokens come first, in their order, and are not merged into words.
    let loaded = Tokenizer::load(&folder.path().join("a.json")).unwrap();
    for (at, token) in template::small::SPECIAL_TOKENS.iter().enumerate() {
        assert_eq!(loaded.id(token), Some(at as u32));
    }
    assert!(loaded.vocab_size() <= 320);
    assert!(loaded.id("_call").is_none());
    let text = "capital of <tool_call>\n";
    assert_eq!(loaded.encode_trusted(text), train().encode_trusted(text));
}

#[test]
fn files_that_are_no_tokenizer_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, text).unwrap();
        Tokenizer::load(&path).unwrap_err().to_string()
    };
    assert!(refused("{").contains("not a Hugging Face tokenizer.json"));
    assert!(refused("version https://git-lfs.github.com/spec/v1\n").contains("git lfs pull"));
    let missing = Tokenizer::load(Path::new("missing.json"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("missing.json"), "{missing}");

    let mut json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fixture("tokenizer.json")).unwrap()).unwrap();
    json["model"] = serde_json::json!({
        "type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]",
    });
    assert!(refused(&json.to_string()).contains("only byte-level BPE"));
    let too_small = BpeOptions {
        vocab_size: 100,
        ..BpeOptions::default()
    };
    let error = Tokenizer::train_bpe(std::iter::empty(), &too_small)
        .unwrap_err()
        .to_string();
    assert!(error.contains("need 267"), "{error}");
}
