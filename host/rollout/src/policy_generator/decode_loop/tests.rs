use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;

use candle_core::{Device, Tensor};
use rlf_policy::{DrawKey, Key, LoraConfig, Purpose, Qwen3Config, Sampler, SamplingParams};
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

/// A turn of up to `max_new_tokens` tokens, after these.
fn request(sequence: u64, append: &[u32], max_new_tokens: usize) -> GenerateRequest {
    GenerateRequest {
        sequence: SequenceId(sequence),
        append: append.to_vec(),
        max_new_tokens,
        sampler: Sampler::new(SamplingParams::default(), 0, Purpose::Test).unwrap(),
        key: DrawKey {
            step: 0,
            task: 0,
            sample: sequence,
            position: 0,
        },
    }
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
        let request = request(number as u64, prompt, NEW);
        let (reply, generated) = oneshot::channel();
        commands
            .send(Command::Generate(request, None, reply))
            .unwrap();
        replies.push(generated);
    }
    let decoding = thread::spawn(move || {
        let model = model();
        let decoder = Decoder::new(&model, cache_tokens, CONTEXT, 1).unwrap();
        let first = inbox.recv().unwrap();
        let mut decode_loop = DecodeLoop::new(&model, decoder, Vec::new(), config);
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

/// A loop with a cache of four pages, whose passes a test makes one by one.
fn small_cache(model: &Model, slots: usize) -> DecodeLoop<'_> {
    let decoder = Decoder::new(model, CONTEXT, CONTEXT, 1).unwrap();
    let config = PolicyGeneratorConfig {
        slots,
        ..PolicyGeneratorConfig::default()
    };
    DecodeLoop::new(model, decoder, Vec::new(), config)
}

/// Asks for a turn whose result nobody waits for.
fn ask(decoding: &mut DecodeLoop<'_>, sequence: u64, append: &[u32], max_new_tokens: usize) {
    let (reply, _) = oneshot::channel();
    let request = request(sequence, append, max_new_tokens);
    decoding.handle(Command::Generate(request, None, reply));
}

/// The sequences that the next pass feeds, and the number of tokens of each.
fn chosen(decoding: &mut DecodeLoop<'_>) -> Vec<(u64, usize)> {
    let chosen = decoding.choose().unwrap();
    chosen
        .into_iter()
        .map(|(id, count)| (id.0, count))
        .collect()
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

#[test]
fn a_sequence_that_begins_takes_pages_that_were_unused_for_as_many_passes_as_they_are() {
    let model = model();
    // Its prompt is another one, or that of the sequence that loses its pages.
    for prompt in [[5; 40], [2; 40]] {
        let mut decoding = small_cache(&model, 8);
        // It fills two pages in pass 1, and is idle then.
        ask(&mut decoding, 1, &[2; 40], 1);
        decoding.pass().unwrap();
        ask(&mut decoding, 0, &[1; PROMPT], NEW);
        decoding.pass().unwrap();
        // The new sequence would fit into the free page and those, with a page for the older one to grow.
        ask(&mut decoding, 2, &prompt, NEW / 2);
        assert_eq!(chosen(&mut decoding), [(0, 1)]);
        assert_eq!(decoding.times.evicted, 0);
        decoding.pass().unwrap();
        assert_eq!(chosen(&mut decoding), [(0, 1), (2, 40)]);
        decoding.pass().unwrap();
        assert_eq!((decoding.times.evicted, decoding.times.preempted), (1, 0));
        assert_eq!(chosen(&mut decoding), [(0, 1), (2, 1)]);
    }
}

#[test]
fn a_sequence_that_waits_for_pages_leaves_its_slot_to_younger_ones_that_have_some() {
    let model = model();
    let mut decoding = small_cache(&model, 2);
    // Sequence 1 is idle after pass 1. Sequences 2 and 3 begin in pass 2, and 0 in pass 3: each has one of four pages.
    ask(&mut decoding, 1, &[1; PROMPT], 1);
    decoding.pass().unwrap();
    ask(&mut decoding, 2, &[2; PROMPT], NEW);
    ask(&mut decoding, 3, &[3; PROMPT], NEW);
    decoding.pass().unwrap();
    ask(&mut decoding, 0, &[4; PAGE_TOKENS - 1], NEW / 2);
    decoding.pass().unwrap();
    decoding.pass().unwrap();
    assert_eq!(
        (decoding.decoder.free_pages(), decoding.times.evicted),
        (0, 0)
    );
    // In pass 5, sequence 0 grows and takes the page of sequence 1, which then has its next turn.
    decoding.pass().unwrap();
    assert_eq!((decoding.times.evicted, decoding.times.preempted), (1, 0));
    ask(&mut decoding, 1, &[5; 2], NEW / 2);
    assert_eq!(chosen(&mut decoding), [(0, 1), (2, 1)]);
    // It begins when it is the oldest one that generates, and then takes what it needs.
    decoding.handle(Command::Close(SequenceId(0)));
    assert_eq!(chosen(&mut decoding), [(1, PROMPT + 3), (2, 1)]);
}

#[test]
fn a_sequence_that_decodes_does_not_wait_for_the_prompts_of_older_ones() {
    let model = model();
    let mut decoding = small_cache(&model, 3);
    decoding.config.step_tokens = 8;
    ask(&mut decoding, 1, &[1; 3], 9);
    ask(&mut decoding, 2, &[2; 3], 9);
    decoding.pass().unwrap();
    // An older one reads a long observation meanwhile. It gets what those that decode leave.
    ask(&mut decoding, 0, &[3; 20], 9);
    for read in [6, 6, 6] {
        assert_eq!(chosen(&mut decoding), [(0, read), (1, 1), (2, 1)]);
        decoding.pass().unwrap();
    }
    assert_eq!(chosen(&mut decoding), [(0, 2), (1, 1), (2, 1)]);
    // The oldest one goes on, even if nothing is left.
    decoding.config.step_tokens = 1;
    assert_eq!(chosen(&mut decoding), [(0, 1)]);
}

/// This model with adapters whose numbers are drawn from `seed`.
fn adapted(model: &Model, seed: u64) -> Arc<Model> {
    let config = LoraConfig {
        rank: 2,
        ..LoraConfig::default()
    };
    let adapted = model.share().with_lora(&config, seed, Path::new("base"));
    let adapted = adapted.unwrap();
    for (index, (_, variable)) in adapted.parameters().enumerate() {
        // New adapters change nothing, because half of their numbers are zero.
        let key = Key::new(seed, Purpose::Test).at(index as u64);
        let numbers = (0..variable.elem_count() as u64).map(|i| key.normal(i) as f32);
        let numbers = Tensor::from_iter(numbers, &Device::Cpu).unwrap();
        variable
            .set(&numbers.reshape(variable.shape()).unwrap())
            .unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    adapted.save_adapter(folder.path()).unwrap();
    Arc::new(
        model
            .share()
            .with_adapter(folder.path(), Path::new("base"))
            .unwrap(),
    )
}

#[test]
fn models_with_other_adapters_share_one_engine_and_each_draws_the_tokens_that_it_draws_alone() {
    let model = model();
    let models = [None, Some(adapted(&model, 1)), Some(adapted(&model, 2))];
    // The same prompt for all of them: what one model has read, another one must not use.
    let play = |models: &[Option<Arc<Model>>]| -> Vec<Generated> {
        let mut decoding = small_cache(&model, 8);
        let mut replies = Vec::new();
        for round in 0..2 {
            for (number, own) in models.iter().enumerate() {
                let id = (10 * round + number) as u64;
                let (reply, generated) = oneshot::channel();
                let mut request = request(id, &[3; 20], 9);
                request.key.sample = round as u64;
                decoding.handle(Command::Generate(request, own.clone(), reply));
                replies.push(generated);
            }
        }
        while decoding.sequences.values().any(|one| one.turn.is_some()) {
            decoding.pass().unwrap();
        }
        let ids: Vec<SequenceId> = decoding.sequences.keys().copied().collect();
        for id in ids {
            decoding.close(id);
        }
        assert!(decoding.prompts.is_empty());
        let replies = replies.into_iter();
        replies
            .map(|mut reply| reply.try_recv().unwrap().unwrap())
            .collect()
    };
    let together = play(&models);
    for (number, own) in models.iter().enumerate() {
        let alone = play(std::slice::from_ref(own));
        assert_eq!(
            [&alone[0], &alone[1]],
            [&together[number], &together[number + 3]]
        );
    }
    assert_ne!(together[0].log_probs, together[1].log_probs);
    assert_ne!(together[1].log_probs, together[2].log_probs);
}

#[test]
fn a_model_that_cannot_compute_ends_its_own_turns_and_no_others() {
    let model = model();
    let broken = adapted(&model, 1);
    for (_, variable) in broken.parameters() {
        let huge = Tensor::full(3e38f32, variable.shape(), &Device::Cpu).unwrap();
        variable.set(&huge).unwrap();
    }
    let broken = Arc::new(broken.copy().unwrap());
    let mut decoding = small_cache(&model, 8);
    let mut replies = Vec::new();
    for (id, own) in [(1, None), (2, Some(broken)), (3, Some(adapted(&model, 2)))] {
        let (reply, generated) = oneshot::channel();
        decoding.handle(Command::Generate(request(id, &[3; 20], 9), own, reply));
        replies.push(generated);
    }
    while decoding.sequences.values().any(|one| one.turn.is_some()) {
        decoding.pass().unwrap();
    }
    let mut ended = replies
        .into_iter()
        .map(|mut reply| reply.try_recv().unwrap());
    assert!(ended.next().unwrap().is_ok());
    let failed = ended.next().unwrap().unwrap_err().to_string();
    assert!(failed.contains("not finite"), "{failed}");
    assert!(ended.next().unwrap().is_ok());
}
