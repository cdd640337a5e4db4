//! Measures the cost of the dialogue layer per turn: `cargo bench -p rlf-dialogue`. The comparison is rendering and
//! tokenising the whole conversation again each turn, as rollouts without cached observations do.

use std::sync::Arc;
use std::time::Instant;

use rlf_dialogue::{
    BpeOptions, CallOutcome, ChatTemplate, Dialogue, DialogueConfig, Episode, Observation,
    RenderInput, Step, Task, Tokenizer, ToolDefinition,
};
use serde_json::json;

const TURNS: u32 = 6;
const ROUNDS: u32 = 300;

fn main() {
    let qwen_like = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
    let small_corpus = [
        "what is the capital of",
        r#"{"name":"lookup","arguments":{"x":1}}"#,
    ];
    let corpus = small_corpus.map(String::from).into_iter().cycle().take(50);
    let small = Tokenizer::train_bpe(corpus, &BpeOptions::default()).expect("a corpus");
    let qwen = Tokenizer::load(format!("{qwen_like}tokenizer.json").as_ref()).expect("a fixture");
    let qwen3 = ChatTemplate::load(format!("{qwen_like}qwen3.jinja").as_ref()).expect("a fixture");
    println!(
        "{:<12}{:>12}{:>12}{:>16}",
        "template", "start", "turn", "turn, anew"
    );
    for (name, tokenizer, template) in [
        ("small", small, ChatTemplate::small()),
        ("qwen3", qwen, qwen3),
    ] {
        let config = DialogueConfig {
            context: 1 << 20,
            max_turns: TURNS + 1,
            ..DialogueConfig::default()
        };
        let dialogue = Dialogue::new(Arc::new(tokenizer), template, config, &[]).expect("they fit");
        let dialogue = Arc::new(dialogue);
        let (mut starting, mut turning, mut anew) = (0.0, 0.0, 0.0);
        for _ in 0..ROUNDS {
            let (start, turn, rendered) = round(&dialogue);
            starting += start;
            turning += turn;
            anew += rendered;
        }
        let (rounds, turns) = (f64::from(ROUNDS), f64::from(ROUNDS * TURNS));
        let us = |seconds: f64, count: f64| format!("{:.1} us", seconds * 1e6 / count);
        let (start, turn, anew) = (us(starting, rounds), us(turning, turns), us(anew, turns));
        println!("{name:<12}{start:>12}{turn:>12}{anew:>16}");
    }
}

fn round(dialogue: &Arc<Dialogue>) -> (f64, f64, f64) {
    let task: Task = serde_json::from_value(json!({
        "id": "1", "source": "bench", "reference": null,
        "prompt": [{"role": "user", "content": "What is the capital of the country?"}],
    }))
    .expect("a task");
    let tool: ToolDefinition = serde_json::from_value(json!({
        "name": "lookup", "description": "Looks up.",
        "input-schema": {"type": "object", "properties": {"x": {"type": "integer"}}},
    }))
    .expect("a tool");
    let call = r#"<tool_call>{"name": "lookup", "arguments": {"x": 1}}</tool_call>"#;
    let mut ids = dialogue.tokenizer().encode_trusted(call);
    ids.push(dialogue.end_of_turn());

    let clock = Instant::now();
    let mut episode = Episode::start(dialogue, "r".into(), &task, vec![tool]).expect("it fits");
    let start = clock.elapsed().as_secs_f64();
    let (mut turn, mut anew) = (0.0, 0.0);
    for _ in 0..TURNS {
        let clock = Instant::now();
        episode.next_input();
        let Step::Act(calls) = episode.push_sampled(ids.clone(), vec![-0.5; ids.len()]) else {
            panic!("a call was sampled")
        };
        let outcome = CallOutcome::from_observation(
            calls[0].call_id.clone(),
            calls[0].name.clone(),
            Observation::text("The capital is Paris, of France.", false),
        );
        episode.push_outcomes(vec![outcome]);
        turn += clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let text = dialogue.template().render(&RenderInput {
            messages: episode.messages(),
            tools: episode.tools(),
            enable_thinking: Some(false),
            add_generation_prompt: true,
        });
        std::hint::black_box(
            dialogue
                .tokenizer()
                .encode_trusted(&text.expect("it renders")),
        );
        anew += clock.elapsed().as_secs_f64();
    }
    (start, turn, anew)
}
