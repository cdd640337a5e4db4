//! Properties of every text: it stays between its delimiters, line by line, and nothing in it is invisible.

use proptest::prelude::*;
use rlf_plugin::model::Question;
use rlf_plugin::serde_json::json;
use rlf_plugin::{Ended, testing};

use super::{accuracy_is, answer_with, config, grade, nonce, user};

/// Any text, with a taste for what could break out.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "\n",
            "\r\n",
            "\r",
            "\u{2028}",
            "<<<end ",
            "<<<data ",
            ">>>\n",
            "| ",
            "\u{200b}",
            "[... 7 characters left out ...]",
            "turn 1, the model says:",
            "<|im_end|>",
            "</s>",
            "0123456789abcdef",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Asserts that delimiters open and close in turn, and that between them every line is marked or one of our labels.
fn is_contained(question: &Question) {
    let nonce = nonce(question);
    let mut inside = false;
    let mut blocks = 0;
    for line in user(question).split('\n') {
        let opens = line.starts_with(&format!("<<<data {nonce}: ")) && line.ends_with(">>>");
        let closes = line == format!("<<<end {nonce}>>>");
        assert!(!(inside && opens), "{line}");
        assert!(inside || !closes, "{line}");
        if opens || closes {
            inside = opens;
            blocks += usize::from(opens);
            continue;
        }
        let label = [
            "the user says",
            "turn ",
            "a tool returned, for ",
            "accepted answer",
            "[... ",
        ];
        let ours = label.iter().any(|start| line.starts_with(start));
        let outside = line.is_empty() || line.starts_with("This is all of the material.");
        assert!(
            if inside {
                ours || line.starts_with("| ")
            } else {
                outside
            },
            "{line}"
        );
        assert!(!line.starts_with("| ") || !line.contains(&nonce), "{line}");
    }
    assert!(!inside);
    assert_eq!(
        blocks,
        user(question)
            .matches(&format!("<<<end {nonce}>>>"))
            .count()
    );
    let hidden = |c: char| {
        c.is_control() && c != '\n' && c != '\t' || "\u{200b}\u{2028}\u{202e}".contains(c)
    };
    assert!(!user(question).contains(hidden));
    assert!(!user(question).contains("<|"));
}

proptest! {
    #[test]
    fn no_text_leaves_its_block(
        task in text(),
        reference in text(),
        answer in text(),
        tool in text(),
        seed in any::<u64>(),
        max_chars in 100_usize..400,
        judged in prop::sample::select(vec!["answer", "visible", "transcript"]),
    ) {
        answer_with(|question| {
            is_contained(question);
            accuracy_is(5)
        });
        let mut asked = testing::task(json!(reference));
        asked.prompt[0].content = vec![rlf_plugin::Content::Text(task)];
        let trajectory = testing::trajectory()
            .called(&tool, json!({ "text": tool }), Ended::Ok)
            .answered(&answer);
        let config = config(json!({ "judged": judged, "max_chars": max_chars }));
        prop_assert!(super::grade_with_seed(config, &asked, &[trajectory], seed)[0].is_ok());
    }

    #[test]
    fn no_answer_of_the_judge_panics_or_scores_outside_0_to_1(answer in text(), number in any::<f64>()) {
        for answer in [answer.clone(), format!("{{\"nonce\":\"NONCE\",\"scores\":{{\"accuracy\":{number}}}}}")] {
            rlf_plugin::testing::answer_questions_with(move |question| {
                Ok(rlf_plugin::model::Answer::text(answer.replace("NONCE", &nonce(question))))
            });
            let scores = grade(config(json!({})), &testing::task(json!("x")), &super::group(&["x"]));
            if let Ok(score) = &scores[0] {
                prop_assert!((0.0..=1.0).contains(&score.get("score").unwrap()));
                prop_assert!((0.0..=10.0).contains(&number));
            }
        }
    }
}
