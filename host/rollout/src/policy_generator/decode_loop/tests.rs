use std::sync::mpsc::channel;
use std::thread;

use candle_core::Device;
use rlf_policy::{DrawKey, Purpose, Qwen3Config, Sampler, SamplingParams};
use tokio::sync::oneshot;

use super::*;

const CONTEXT: usize = 4 * PAGE_TOKENS;
const PROMPT: usize = 20;
const NEW: usize = 100;

fn model() -> Model {
    let config = Qwen3Config {
        vocab_size: 16,
        hidden_size: 16,
        intermediate_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        max_position_embeddings: CONTEXT,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        initializer_range: 0.2,
    };
    Model::init(&config, 0, &Device::Cpu).unwrap()
}

/// The turns of sequences with these prompts, asked for before the first pass, and the counts.
fn turns(prompts: &[Vec<u32>], cache_tokens: usize) -> (Vec<Generated>, GeneratorTimes) {
    let config = PolicyGeneratorConfig {
        slots: prompts.len(),
        cache_tokens: Some(cache_tokens),
        ..PolicyGeneratorConfig::default()
    };
    let (commands, inbox) = channel();
    let mut replies = Vec::new();
    for (number, prompt) in prompts.iter().enumerate() {
        let request = GenerateRequest {
            sequence: SequenceId(number as u64),
            append: prompt.clone(),
            max_new_tokens: NEW,
            sampler: Sampler::new(SamplingParams::default(), 0, Purpose::Test).unwrap(),
            key: DrawKey {
                step: 0,
                task: 0,
                sample: number as u64,
                position: 0,
            },
        };
        let (reply, generated) = oneshot::channel();
        commands.send(Command::Generate(request, reply)).unwrap();
        replies.push(generated);
    }
    let decoding = thread::spawn(move || {
        let model = model();
        let decoder = Decoder::new(&model, cache_tokens, CONTEXT, 1).unwrap();
        let first = inbox.recv().unwrap();
        let decode_loop = DecodeLoop::new(&model, decoder, Vec::new(), config);
        (decode_loop.run(first, &inbox)).map_err(|error| error.to_string())
    });
    let generated = replies
        .into_iter()
        .map(|reply| reply.blocking_recv().unwrap().unwrap())
        .collect();
    let (reply, times) = oneshot::channel();
    commands.send(Command::Times(reply)).unwrap();
    let times = times.blocking_recv().unwrap();
    drop(commands);
    decoding.join().unwrap().unwrap();
    (generated, times)
}

#[test]
fn the_youngest_loses_its_pages_and_reads_its_tokens_again() {
    let prompts: Vec<Vec<u32>> = (0..2).map(|first| vec![first; PROMPT]).collect();
    let (expected, _) = turns(&prompts, 2 * CONTEXT);
    let (generated, times) = turns(&prompts, CONTEXT);
    assert_eq!(generated, expected);
    // Both fill two pages. The first sequence needs a third, takes those of the second, and ends with four. Then it is
    // idle, and the second takes them to read its 64 tokens again.
    assert_eq!((times.preempted, times.evicted), (1, 1));
    assert_eq!(times.read_again, 2 * PAGE_TOKENS as u64);
    assert_eq!(times.sampled, 2 * NEW as u64);
    // The last token of a turn is not read.
    assert_eq!(times.fed, 2 * (PROMPT + NEW - 1) as u64 + times.read_again);
}

#[test]
fn a_prompt_is_read_once_if_its_sequences_fit() {
    let prompts = vec![vec![3; PROMPT]; 3];
    let (generated, times) = turns(&prompts, 3 * CONTEXT);
    assert_ne!(generated[0], generated[1]);
    assert_eq!((times.preempted, times.evicted), (0, 0));
    // The later ones read the last token of the prompt, and what they sample.
    assert_eq!(times.fed, (PROMPT + 2 + 3 * (NEW - 1)) as u64);
}
