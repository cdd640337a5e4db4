//! Fixtures of several tests: Qwen3's template with a matching tokenizer, and a model that says the texts of a test.
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rlf_dialogue::trajectory::Segment;
use rlf_dialogue::*;
use serde_json::{Value, json};

pub(crate) fn fixture(name: &str) -> PathBuf {
    // The search works from any crate that includes this file: the fuzz targets do too.
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.find(|folder| folder.join("host/dialogue").is_dir());
    let root = root.expect("tests run inside a checkout");
    root.join("host/dialogue/tests/fixtures").join(name)
}

/// The values that `fixtures/make.py` recorded.
pub(crate) fn expected() -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture("expected.json")).unwrap()).unwrap()
}

pub(crate) static QWEN: LazyLock<Arc<Tokenizer>> =
    LazyLock::new(|| Arc::new(Tokenizer::load(&fixture("tokenizer.json")).unwrap()));

pub(crate) static SMALL: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    let corpus = [
        "look up capital country answer name arguments 0123456789",
        r#"{"name":"lookup"}"#,
    ];
    let corpus = corpus.map(String::from).into_iter().cycle().take(40);
    Arc::new(Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap())
});

pub(crate) fn qwen3(config: DialogueConfig) -> Arc<Dialogue> {
    let template = ChatTemplate::load(&fixture("qwen3.jinja")).unwrap();
    Arc::new(Dialogue::new(Arc::clone(&QWEN), template, config, &[]).unwrap())
}

pub(crate) fn qwq(config: DialogueConfig) -> Arc<Dialogue> {
    let template = ChatTemplate::load(&fixture("qwq.jinja")).unwrap();
    Arc::new(Dialogue::new(Arc::clone(&QWEN), template, config, &[]).unwrap())
}

pub(crate) fn small(config: DialogueConfig) -> Arc<Dialogue> {
    Arc::new(Dialogue::new(Arc::clone(&SMALL), ChatTemplate::small(), config, &[]).unwrap())
}

pub(crate) fn tools() -> Vec<ToolDefinition> {
    ["lookup", "add"]
        .map(|name| ToolDefinition {
            name: name.into(),
            description: format!("The tool {name}."),
            input_schema: json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
            output_schema: None,
            hints: tool::Hints::default(),
            extra: Vec::new(),
        })
        .to_vec()
}

pub(crate) fn task(prompt: &[(Role, &str)]) -> Task {
    Task {
        id: "t".into(),
        source: "test".into(),
        prompt: prompt
            .iter()
            .map(|(role, text)| Message::text(*role, *text))
            .collect(),
        tools: None,
        reference: Value::Null,
        environment: None,
        setup: Value::Null,
        extra: serde_json::Map::new(),
    }
}

pub(crate) fn ask() -> Task {
    task(&[(Role::User, "What is it?")])
}

pub(crate) fn start(dialogue: &Arc<Dialogue>) -> Episode {
    Episode::start(dialogue, "run/0".into(), &ask(), tools()).unwrap()
}

/// A generator that keeps the sequence it read and wrote, as a KV cache does.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) sequences: Vec<Vec<u32>>,
    pub(crate) said: Vec<Vec<u32>>,
}

impl Reader {
    /// Reads the next input; false if there is none.
    pub(crate) fn read(&mut self, episode: &mut Episode) -> bool {
        match episode.next_input() {
            NextInput::Restart { ids, .. } => self.sequences.push(ids),
            NextInput::Continue { append, .. } => self.sequences.last_mut().unwrap().extend(append),
            NextInput::Finished => return false,
        }
        true
    }

    /// Reads, then says `ids`.
    pub(crate) fn say_ids(&mut self, episode: &mut Episode, ids: Vec<u32>) -> Step {
        assert!(self.read(episode), "nothing to sample");
        self.sequences.last_mut().unwrap().extend(&ids);
        self.said.push(ids.clone());
        let log_probs = vec![-0.5; ids.len()];
        episode.push_sampled(ids, log_probs)
    }

    /// Reads, then says `text` and ends the turn.
    pub(crate) fn say(&mut self, episode: &mut Episode, dialogue: &Dialogue, text: &str) -> Step {
        let mut ids = dialogue.tokenizer().encode_trusted(text);
        ids.push(dialogue.end_of_turn());
        self.say_ids(episode, ids)
    }
}

pub(crate) fn outcome(call: &ToolCall, text: &str) -> CallOutcome {
    let observation = Observation::text(text, false);
    CallOutcome::from_observation(call.call_id.clone(), call.name.clone(), observation)
}

/// Answers the calls of a step with `text`.
pub(crate) fn answer_calls(episode: &mut Episode, step: Step, text: &str) -> Step {
    let Step::Act(calls) = step else {
        panic!("no calls but {step:?}")
    };
    episode.push_outcomes(calls.iter().map(|call| outcome(call, text)).collect())
}

/// The ids of the last observation.
pub(crate) fn last_observation(trajectory: &Trajectory) -> &[u32] {
    let segments = trajectory
        .sequences
        .iter()
        .flat_map(TrainingSequence::segments);
    let mut ids = segments.filter_map(|s| {
        if let Segment::Observation(ids) = s {
            Some(ids)
        } else {
            None
        }
    });
    ids.next_back().expect("an observation")
}

pub(crate) const CALL: &str =
    "<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"x\": 1}}\n</tool_call>";
pub(crate) const SMALL_CALL: &str =
    r#"<tool_call>{"name":"lookup","arguments":{"x":1}}</tool_call>"#;
