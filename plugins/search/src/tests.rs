use rlf_plugin::serde_json::{self, Map, Value, json};
use rlf_plugin::testing::{self, text};
use rlf_plugin::{Error, ToolPlugin, error_message};

use crate::Plugin;

#[path = "../../../tests/src/data.rs"]
mod data;

const RIVERS: &str = r#"{
  "Rhine": ["The Rhine rises in Switzerland.", " It flows into the North Sea."],
  "Danube": "The Danube rises in Germany and flows into the Black Sea.",
  "Black Forest": "A forest in the south-west of Germany."
}"#;

fn with(corpus: &str, config: Value) -> Result<(), Error> {
    testing::bind("corpus", "corpus", corpus);
    testing::init::<Plugin>(config)
}

fn search(query: &str, top_k: u32) -> (String, bool) {
    let found =
        testing::call::<Plugin>("search", json!({ "query": query, "top_k": top_k })).unwrap();
    (text(&found), found.failed)
}

#[test]
fn the_best_passage_comes_first_under_its_title() {
    with(RIVERS, json!({})).unwrap();
    assert_eq!(
        search("Which river flows to the Black Sea?", 2).0,
        "[1] Danube\nThe Danube rises in Germany and flows into the Black Sea.\n\n\
         [2] Rhine\nThe Rhine rises in Switzerland. It flows into the North Sea."
    );
    // Stems, not letters: "forests" finds "forest".
    assert!(search("forests", 1).0.starts_with("[1] Black Forest\n"));
}

#[test]
fn a_query_without_a_known_word_fails_and_says_so() {
    with(RIVERS, json!({})).unwrap();
    let nothing = |query: &str| {
        (
            format!("nothing found for {query:?}; try other words"),
            true,
        )
    };
    assert_eq!(search("Amazonas", 3), nothing("Amazonas"));
    assert_eq!(search("", 3), nothing(""));
    // A stop word is in every passage and finds none.
    assert_eq!(search("the", 3), nothing("the"));
}

#[test]
fn every_form_of_corpus_gives_the_same_answers() {
    let lines =
        "{\"title\": \"A\", \"text\": \"one cat\"}\n{\"title\": \"B\", \"text\": \"two dogs\"}\n";
    let array = r#"[{"title": "A", "text": "one cat"}, {"title": "B", "text": "two dogs"}]"#;
    let object = r#"{"A": ["one", "cat"], "B": "two dogs"}"#;
    let contents = "{\"id\": \"0\", \"contents\": \"\\\"A\\\"\\none cat\"}\n{\"contents\": \"\\\"B\\\"\\ntwo dogs\"}\n";
    for corpus in [lines, array, object, contents] {
        with(corpus, json!({})).unwrap();
        assert_eq!(search("dog", 3).0, "[1] B\ntwo dogs", "{corpus}");
    }
}

#[test]
fn the_score_is_bm25() {
    // By hand, k1 = 1.2, b = 0.75, two passages of 3 and 5 words (title included):
    // f = 1 for both, mean length 4, so the shorter one wins; f = 2 in the longer one turns it round:
    // 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / 4)) = 1.114 < 4.4 / (2 + 1.2 * (0.25 + 0.75 * 5 / 4)) = 1.284.
    with(
        r#"{"red": "apple pear", "green": "plum apple cherry fig"}"#,
        json!({}),
    )
    .unwrap();
    assert!(search("apple", 1).0.starts_with("[1] red"));
    with(
        r#"{"red": "apple pear", "green": "plum apple apple fig"}"#,
        json!({}),
    )
    .unwrap();
    assert!(search("apple", 1).0.starts_with("[1] green"));
    // With b = 1 and k1 = 0 neither length nor repetition counts: the corpus decides.
    with(
        r#"{"red": "apple pear", "green": "plum apple apple fig"}"#,
        json!({ "k1": 0.0, "b": 1.0 }),
    )
    .unwrap();
    assert!(search("apple", 1).0.starts_with("[1] red"));
}

#[test]
fn equal_scores_keep_the_order_of_the_corpus() {
    let row = |n: usize| format!("{{\"title\": \"T{n}\", \"text\": \"same words\"}}");
    let corpus = (0..50).map(row).collect::<Vec<_>>().join("\n");
    with(&corpus, json!({ "max_top_k": 50 })).unwrap();
    let shown = search("words", 3).0;
    assert_eq!(
        shown,
        "[1] T0\nsame words\n\n[2] T1\nsame words\n\n[3] T2\nsame words"
    );
}

#[test]
fn a_long_passage_is_cut_at_a_word_and_marked() {
    with(
        r#"{"T": "alpha beta gamma delta"}"#,
        json!({ "max_passage_chars": 13 }),
    )
    .unwrap();
    assert_eq!(search("alpha", 1).0, "[1] T\nalpha beta ...");
}

#[test]
fn the_schema_states_the_operators_bounds() {
    with(RIVERS, json!({ "top_k": 2, "max_top_k": 5 })).unwrap();
    assert_eq!(
        Plugin::list_tools()[0].input_schema,
        concat!(
            r#"{"type":"object","properties":{"query":{"type":"string","description":"Words to look for"},"#,
            r#""top_k":{"type":"integer","description":"How many passages","minimum":1,"maximum":5,"default":2}},"#,
            r#""required":["query"],"additionalProperties":false}"#,
        )
    );
    let found = testing::call::<Plugin>("search", json!({ "query": "rises" })).unwrap();
    assert!(text(&found).contains("[2] ") && !text(&found).contains("[3] "));
}

#[test]
fn what_cannot_be_used_says_why_and_where() {
    let refused =
        |corpus: &str, config: Value| error_message(&with(corpus, config).unwrap_err()).to_owned();
    assert_eq!(refused("{}", json!({})), "data `corpus` holds no passages");
    assert!(
        refused("{\"text\": \"a\"}\n{broken", json!({}))
            .starts_with("data `corpus`, file corpus, line 2: ")
    );
    assert_eq!(
        refused("{\"text\": \"a\"}\n{\"title\": \"b\"}", json!({})),
        "data `corpus`, file corpus, line 2: expected `title` and `text`, or `contents`"
    );
    assert!(refused(r#"{"A": 3}"#, json!({})).contains("title \"A\": expected a text"));
    assert!(refused(RIVERS, json!({ "top_k": 0 })).contains("top_k is 1 to max_top_k = 10, not 0"));
    assert!(refused(RIVERS, json!({ "b": 2 })).contains("b is 0 to 1"));
}

/// HotpotQA's corpus, if it is present. The number of titles that find their passage, 955 of 994, was measured with
/// this index.
#[test]
fn the_titles_of_a_real_corpus_find_their_passages() {
    let Some(path) = data::data("hotpotqa/corpus.json") else {
        return;
    };
    let corpus = std::fs::read_to_string(path).unwrap();
    with(&corpus, json!({})).unwrap();
    let corpus: Map<String, Value> = serde_json::from_str(&corpus).unwrap();
    let found = |title: &&String| search(title, 1).0.starts_with(&format!("[1] {title}\n"));
    assert_eq!(
        (corpus.len(), corpus.keys().filter(found).count()),
        (994, 955)
    );
}
