//! The measure of similarity by embeddings, with an embedder that a test writes.

use std::fs;
use std::sync::Mutex;

use async_trait::async_trait;
use rlf_endpoint::{Embedded, EndpointError};
use rlf_forge::graph::{
    EmbedError, Embedder, Embeddings, Missing, Reason, Tool, ToolGraph, ValueType, VectorError,
    Vectors,
};

use super::{examples, from_user, input, output, tool};

/// Embeds a text by a function, and keeps the sizes of its batches.
struct Scripted {
    vector: fn(&str) -> Vec<f32>,
    /// The batch that fails.
    fails: Option<usize>,
    batches: Mutex<Vec<usize>>,
}

impl Scripted {
    fn new(vector: fn(&str) -> Vec<f32>) -> Self {
        Self {
            vector,
            fails: None,
            batches: Mutex::default(),
        }
    }

    fn batches(&self) -> Vec<usize> {
        std::mem::take(&mut self.batches.lock().unwrap())
    }
}

#[async_trait]
impl Embedder for Scripted {
    fn identity(&self) -> String {
        "scripted".to_owned()
    }

    fn model(&self) -> String {
        "scripted".to_owned()
    }

    async fn embed(&self, texts: &[String]) -> Result<Embedded, EndpointError> {
        let mut batches = self.batches.lock().unwrap();
        if self.fails == Some(batches.len()) {
            return Err(EndpointError::NoEmbeddings {
                host: "h".to_owned(),
                reason: "the vector of text 3 is zero or empty".to_owned(),
            });
        }
        batches.push(texts.len());
        Ok(Embedded {
            vectors: texts.iter().map(|text| (self.vector)(text)).collect(),
            tokens: None,
        })
    }
}

/// A vector of three numbers: about money, about people, and a rest.
fn meaning(text: &str) -> Vec<f32> {
    let has = |words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
    vec![
        has(&["fine", "cents", "price"]),
        has(&["name", "person"]),
        0.1,
    ]
}

/// A tool that gives a fine, and one that takes cents and a name.
fn tools() -> Vec<Tool> {
    vec![
        tool(
            "A",
            "owed",
            vec![],
            vec![output("fine", ValueType::Integer)],
        ),
        tool(
            "A",
            "pay",
            vec![
                input("cents", ValueType::Integer),
                from_user("name", ValueType::Text),
            ],
            vec![],
        ),
    ]
}

async fn fetch(
    tools: &[Tool],
    embedder: &Scripted,
    folder: &std::path::Path,
) -> Result<Embeddings, EmbedError> {
    let mut vectors = Vectors::open(folder, &embedder.identity())?;
    Embeddings::fetch(tools, embedder, &mut vectors, 1_000_000).await
}

#[tokio::test]
async fn an_edge_that_no_word_shows_is_found_by_its_meaning_and_the_graph_says_by_what() {
    let folder = tempfile::tempdir().unwrap();
    let embeddings = fetch(&tools(), &Scripted::new(meaning), folder.path())
        .await
        .unwrap();
    let graph = ToolGraph::new(tools(), &embeddings).unwrap();
    let links = graph.links();
    assert_eq!(links.len(), 1);
    // Both vectors are (1, 0, 0.1).
    let Reason::Similarity { score } = links[0].reason else {
        panic!("{links:?}")
    };
    assert!((score - 1.0).abs() < 1e-12, "{score}");
    assert_eq!(graph.similarity(), ("embeddings", 0.85));
    let details = graph.similarity_details();
    assert_eq!(details["model"], "scripted");
    assert_eq!(
        (details["dimension"].as_str(), details["vectors"].as_str()),
        ("3", "3")
    );
    assert_eq!(details["digest"].len(), 16);
    let json = serde_json::to_value(&graph).unwrap();
    assert_eq!(json["similarity_details"]["digest"], details["digest"]);
}

#[tokio::test]
async fn the_cosine_decides() {
    let folder = tempfile::tempdir().unwrap();
    // Cosine 0.8 of (3, 4) and (0, 2).
    let vector = |text: &str| match &text[..4] {
        "fine" => vec![3.0, 4.0],
        "cent" => vec![0.0, 2.0],
        _ => vec![0.0, -1.0],
    };
    let mut embeddings = fetch(&tools(), &Scripted::new(vector), folder.path())
        .await
        .unwrap();
    for (threshold, edges) in [(0.79, 1), (0.81, 0), (0.0, 1)] {
        embeddings.threshold = threshold;
        let graph = ToolGraph::new(tools(), &embeddings).unwrap();
        assert_eq!(graph.links().len(), edges, "at {threshold}");
    }
}

#[tokio::test]
async fn texts_are_asked_in_batches_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let specifications = examples();
    let tools: Vec<Tool> = specifications
        .iter()
        .flat_map(rlf_forge::graph::specified_tools)
        .collect();
    let embedder = Scripted::new(meaning);
    let first = fetch(&tools, &embedder, folder.path()).await.unwrap();
    let batches = embedder.batches();
    let all: usize = batches.iter().sum();
    assert!(batches.len() > 1 && batches.iter().all(|size| *size <= 32));
    let vectors = Vectors::open(folder.path(), "scripted").unwrap();
    assert_eq!(Missing::new(&tools, &vectors).texts.len(), 0);
    assert_eq!(Missing::new(&tools, &vectors).all, all);
    let again = fetch(&tools, &embedder, folder.path()).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(embedder.batches(), [0; 0]);
    // Another model has a file of its own.
    let others = Vectors::open(folder.path(), "another").unwrap();
    assert_eq!(Missing::new(&tools, &others).texts.len(), all);
}

#[tokio::test]
async fn a_failure_half_way_keeps_what_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let specifications = examples();
    let tools: Vec<Tool> = specifications
        .iter()
        .flat_map(rlf_forge::graph::specified_tools)
        .collect();
    let mut embedder = Scripted::new(meaning);
    embedder.fails = Some(1);
    let error = fetch(&tools, &embedder, folder.path()).await.unwrap_err();
    assert!(matches!(error, EmbedError::Endpoint(_)), "{error}");
    assert_eq!(embedder.batches(), [32]);
    // A line that was cut off is asked for again.
    let path = Vectors::open(folder.path(), "scripted").unwrap();
    let path = path.path().to_owned();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    embedder.fails = None;
    fetch(&tools, &embedder, folder.path()).await.unwrap();
    let vectors = Vectors::open(folder.path(), "scripted").unwrap();
    let rest = Missing::new(&tools, &vectors).all - 31;
    assert_eq!(embedder.batches().iter().sum::<usize>(), rest);
}

#[tokio::test]
async fn vectors_of_another_dimension_are_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fetch(&tools(), &Scripted::new(meaning), folder.path())
        .await
        .unwrap();
    let mut more = tools();
    more.push(tool(
        "B",
        "new",
        vec![input("size", ValueType::Text)],
        vec![],
    ));
    let error = fetch(&more, &Scripted::new(|_| vec![1.0]), folder.path()).await;
    let error = error.unwrap_err();
    let expected = matches!(
        &error,
        EmbedError::Vectors(VectorError::Dimension {
            wanted: 3,
            got: 1,
            ..
        })
    );
    assert!(expected, "{error}");
    assert!(error.to_string().contains("it runs another model now"));
}

#[tokio::test]
async fn a_file_with_a_bad_vector_is_an_error_with_its_line() {
    for (line, why) in [
        (r#"{"text": "a", "vector": [0.0, 0.0]}"#, "is zero"),
        (r#"{"text": "a", "vector": [NaN, 1.0]}"#, "expected value"),
        (r#"{"text": "a", "vector": [1e99, 1.0]}"#, "out of range"),
        (r#"{"text": "a", "vector": [1.0]}"#, "it has 1 numbers"),
        (r#"{"text": "a"}"#, "missing field `vector`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = Vectors::open(folder.path(), "m").unwrap().path().to_owned();
        let good = r#"{"text": "b", "vector": [1.0, 0.0]}"#;
        fs::write(&path, format!("{good}\n{line}\n")).unwrap();
        let error = Vectors::open(folder.path(), "m").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(error.contains(why), "{error}");
        assert!(error.contains("delete the file"), "{error}");
    }
}

#[tokio::test]
async fn more_tokens_than_the_limit_are_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let embedder = Scripted::new(meaning);
    let mut vectors = Vectors::open(folder.path(), "scripted").unwrap();
    let tokens = Missing::new(&tools(), &vectors).tokens();
    let error = Embeddings::fetch(&tools(), &embedder, &mut vectors, tokens - 1).await;
    assert!(matches!(error, Err(EmbedError::TooMany { texts: 3, .. })));
    assert_eq!(embedder.batches(), [0; 0]);
    let embeddings = Embeddings::fetch(&tools(), &embedder, &mut vectors, tokens).await;
    // A graph of other tools has texts that were not fetched.
    let others = vec![tool("C", "c", vec![input("else", ValueType::Text)], vec![])];
    let error = ToolGraph::new(others, &embeddings.unwrap()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.contains("no embedding of \"else (text): \""),
        "{source}"
    );
}
