//! Measures the tokens per second that a policy decodes and trains.
//!
//! On the CPU, the comparison is the plain twin: the same network in candle's own operators. In bf16 it is the network in
//! f32. Both are measured in turn in the same run, so that a busy machine slows both. Where a Python with torch and
//! transformers is given, the same work is done there first, on the CPU with as many threads.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;

use rlf_policy::measure::{decode_together, quickstart_shape};
use rlf_policy::{
    AdamW, Decoder, Key, Model, Operators, OptimizerConfig, PAGE_TOKENS, PackedBatch, PassOptions,
    Precision, Processor, PublishedShape, Purpose, Qwen3Config, Result, Sampler, SamplingParams,
    Sequence, cpu_facts, micro_batches,
};
use rlf_run::PlannedMachine;

/// The sizes of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    /// Name in the report.
    pub(crate) name: String,
    /// The model's shape.
    pub(crate) config: Qwen3Config,
    /// Numbers that products read.
    pub(crate) precision: Precision,
    /// Sequences per training step.
    pub(crate) sequences: usize,
    /// Tokens per sequence; all but the first are trained.
    pub(crate) length: usize,
    /// Tokens per micro-batch.
    pub(crate) micro_batch_tokens: usize,
    /// Whether a layer's intermediate results are computed again in the backward pass.
    pub(crate) checkpointing: bool,
    /// Batch sizes to decode with.
    pub(crate) decode_batches: Vec<usize>,
    /// Prompt tokens before decoding.
    pub(crate) prompt: usize,
    /// Tokens decoded after it.
    pub(crate) new_tokens: usize,
    /// Time spent on each figure.
    pub(crate) time: Duration,
}

impl Workload {
    /// The quickstart's shape.
    pub(crate) fn quickstart() -> Self {
        Self {
            name: "quickstart shape".to_owned(),
            config: quickstart_shape(),
            precision: Precision::F32,
            sequences: 64,
            length: 128,
            micro_batch_tokens: 2048,
            checkpointing: false,
            decode_batches: vec![1, 16, 64, 512],
            prompt: 32,
            new_tokens: 64,
            time: Duration::from_secs(2),
        }
    }

    /// Larger shapes for a CPU, 3.7 and 30 M parameters.
    pub(crate) fn small() -> Vec<Self> {
        let shape = |name: &str, vocabulary, hidden, inner, layers, head_dim| Self {
            name: format!("{name} shape"),
            config: Qwen3Config {
                vocab_size: vocabulary,
                hidden_size: hidden,
                intermediate_size: inner,
                num_hidden_layers: layers,
                num_attention_heads: 8,
                num_key_value_heads: 4,
                head_dim,
                max_position_embeddings: 512,
                ..quickstart_shape()
            },
            sequences: 16,
            // Two micro-batches, because a worker takes whole ones.
            micro_batch_tokens: 1024,
            decode_batches: vec![1, 16, 64],
            ..Self::quickstart()
        };
        vec![
            shape("3.7M", 2048, 256, 768, 4, 32),
            shape("30M", 8192, 512, 1536, 8, 64),
        ]
    }

    /// The shapes of published Qwen3 models, with random weights, for a GPU.
    pub(crate) fn qwen3() -> Vec<Self> {
        let shape = |name: &str, published: PublishedShape, precision| Self {
            name: format!("Qwen3-{name} shape"),
            config: Qwen3Config {
                max_position_embeddings: 4096,
                ..published.config()
            },
            precision,
            sequences: 16,
            length: 1024,
            micro_batch_tokens: 8192,
            // The intermediate results of smaller ones fit a GPU of 80 GB.
            checkpointing: published == PublishedShape::Qwen3_4B,
            decode_batches: vec![1, 64],
            prompt: 128,
            new_tokens: 64,
            time: Duration::from_secs(3),
        };
        vec![
            shape("0.6B", PublishedShape::Qwen3_0_6B, Precision::F32),
            shape("0.6B", PublishedShape::Qwen3_0_6B, Precision::Bf16),
            shape("1.7B", PublishedShape::Qwen3_1_7B, Precision::Bf16),
            shape("4B", PublishedShape::Qwen3_4B, Precision::Bf16),
        ]
    }
}

/// One figure: tokens per second of the model and of others.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    /// The name of the figure.
    pub(crate) what: String,
    /// Tokens per second of the operators that the model uses by default.
    pub(crate) tokens_per_second: f64,
    /// Floating-point operations of a token: for each weight of a product 2 in decoding and 6 in training, without
    /// attention's scores, prompts and what checkpointing computes again.
    pub(crate) operations: f64,
    /// Tokens per second of each peer, with its name. The plain twin is one, if the model does not use the plain operators
    /// itself.
    pub(crate) peers: Vec<(String, f64)>,
}

/// All figures of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// The workload's name.
    pub(crate) name: String,
    /// Number of parameters in the model.
    pub(crate) parameters: usize,
    /// The device and the number of threads.
    pub(crate) place: String,
    /// Floating-point operations per second of matrix products alone: measured on the CPU, of a GPU what its maker states.
    /// None for an unknown GPU.
    pub(crate) products: Option<f64>,
    /// The figures.
    pub(crate) rates: Vec<Rate>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} ({:.2} M parameters), {}",
            self.name,
            self.parameters as f64 / 1e6,
            self.place
        )?;
        if let Some(products) = self.products {
            let giga = products / 1e9;
            writeln!(f, "  {:<34} {giga:>9.0} GFLOP/s", "matrix products alone")?;
        }
        for rate in &self.rates {
            let ours = rate.tokens_per_second;
            write!(f, "  {:<34} {ours:>9.0} tokens/s", rate.what)?;
            let speed = ours * rate.operations;
            if speed >= 1e12 {
                write!(f, ", {:.0} TFLOP/s", speed / 1e12)?;
            } else {
                write!(f, ", {:.0} GFLOP/s", speed / 1e9)?;
            }
            match self.products {
                Some(products) => writeln!(f, ", {:.0} % of products", 100.0 * speed / products)?,
                None => writeln!(f)?,
            }
            for (name, peer) in &rate.peers {
                writeln!(f, "    {name:<32} {peer:>9.0}, ratio {:.2}", ours / peer)?;
            }
        }
        Ok(())
    }
}

/// The twin as a peer, from the seconds that it took.
fn twin_peer(twin: Option<&Model>, tokens: f64, seconds: Option<f64>) -> Vec<(String, f64)> {
    let twin = twin.zip(seconds).map(|(twin, seconds)| {
        let name = match twin.operators() {
            Operators::Plain => "plain candle",
            Operators::Fused => "in f32",
        };
        (name.to_owned(), tokens / seconds)
    });
    twin.into_iter().collect()
}

/// Figures of a peer, in the order of a report's rates, by number format. A figure is tokens per second, and the way in
/// which they were reached.
pub(crate) type PeerFigures = BTreeMap<String, Vec<(f64, String)>>;

/// Variables that keep MKL, oneDNN and torch from a processor's best instructions. The peer does not inherit them.
const LIMITS: [&str; 6] = [
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
];

impl Workload {
    /// Does the same work in transformers with this Python, on the CPU with `workers` threads.
    pub(crate) fn in_transformers(
        &self,
        device: &candle_core::Device,
        python: &Path,
        workers: usize,
    ) -> anyhow::Result<PeerFigures> {
        let device = if device.is_cpu() { "cpu" } else { "cuda" };
        let format = match self.precision {
            Precision::F32 => "float32",
            Precision::Bf16 => "bfloat16",
        };
        let work = json!({
            "device": device,
            "formats": [format],
            "config": self.config,
            "sequences": self.sequences,
            "length": self.length,
            "micro_batch_tokens": self.micro_batch_tokens,
            "checkpointing": self.checkpointing,
            "decode_batches": self.decode_batches,
            "prompt": self.prompt,
            "new_tokens": self.new_tokens,
            "seconds": self.time.as_secs_f64(),
            "workers": workers,
        });
        let mut peer = Command::new(python);
        peer.args(["-c", include_str!("policy_peer.py"), &work.to_string()]);
        for name in LIMITS {
            peer.env_remove(name);
        }
        let output = peer
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {}", python.display()))?;
        ensure!(
            output.status.success(),
            "transformers did not do the same work"
        );
        serde_json::from_slice(&output.stdout).context("the figures of transformers cannot be read")
    }
}

impl Report {
    /// Adds the figures of transformers.
    pub(crate) fn compare(&mut self, figures: PeerFigures) {
        for (format, figures) in figures {
            for (rate, (figure, way)) in self.rates.iter_mut().zip(figures) {
                rate.peers
                    .push((format!("transformers {format}, {way}"), figure));
            }
        }
    }
}

/// All figures as one table in Markdown, for docs/performance.md.
pub(crate) fn table(reports: &[Report]) -> String {
    let mut text =
        "| shape | work | tokens/s | others, and the ratio to them |\n|---|---|---|---|\n"
            .to_owned();
    for report in reports {
        for rate in &report.rates {
            let ours = rate.tokens_per_second;
            let others: Vec<String> = (rate.peers.iter())
                .map(|(name, peer)| format!("{name}: {peer:.0} ({:.2})", ours / peer))
                .collect();
            let (shape, work, others) = (&report.name, &rate.what, others.join("; "));
            _ = writeln!(text, "| {shape} | {work} | {ours:.0} | {others} |");
        }
    }
    text
}

/// Measures `workload` with `workers` threads on the model's device.
pub(crate) fn run(
    workload: &Workload,
    device: &candle_core::Device,
    workers: usize,
) -> Result<Report> {
    let mut model = Model::init(&workload.config, 0, device)?;
    let twin = if device.is_cpu() {
        let mut twin = model.copy()?;
        if workload.precision == Precision::F32 {
            twin.use_operators(Operators::Plain)?;
        }
        Some(twin)
    } else {
        None
    };
    let twin = twin.as_ref();
    let products = || {
        let machine = PlannedMachine::here(device, workload.precision, workers);
        machine
            .speed
            .map(|speed| speed.products(workload.precision))
    };
    let before = products();
    model.use_operators(Operators::Fused)?;
    model.use_precision(workload.precision)?;
    let mut rates = vec![train(workload, &model, twin, workers)?];
    for &batch in &workload.decode_batches {
        rates.push(decode(workload, &model, twin, batch, workers)?);
    }
    Ok(Report {
        name: workload.name.clone(),
        parameters: workload.config.parameter_count(),
        place: format!(
            "{:?}, {:?}, {workers} threads, {}",
            device.location(),
            workload.precision,
            cpu_facts().simd
        ),
        // The larger, because a busy machine slows one of them.
        products: before.into_iter().chain(products()).reduce(f64::max),
        rates,
    })
}

fn tokens(seed: u64, len: usize, vocabulary: usize) -> Vec<u32> {
    let key = Key::new(seed, Purpose::Test);
    (0..len as u64)
        .map(|i| key.below(i, vocabulary as u64) as u32)
        .collect()
}

/// Calls both in turn until the time is over. Returns the seconds of the fastest call of each, because the fastest is
/// the least disturbed by other work on the machine.
fn fastest(
    time: Duration,
    mut first: impl FnMut() -> Result<()>,
    mut second: Option<impl FnMut() -> Result<()>>,
) -> Result<(f64, Option<f64>)> {
    let timed = |f: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let start = Instant::now();
        f()?;
        Ok(start.elapsed().as_secs_f64())
    };
    first()?;
    let start = Instant::now();
    let (mut best, mut best_second) = (f64::INFINITY, second.is_some().then_some(f64::INFINITY));
    loop {
        best = best.min(timed(&mut first)?);
        if let (Some(second), Some(other)) = (&mut second, &mut best_second) {
            *other = other.min(timed(second)?);
        }
        if start.elapsed() > time {
            return Ok((best, best_second));
        }
    }
}

fn train(workload: &Workload, model: &Model, twin: Option<&Model>, workers: usize) -> Result<Rate> {
    let mask: Vec<bool> = (0..workload.length).map(|i| i > 0).collect();
    let all: Vec<Vec<u32>> = (0..workload.sequences)
        .map(|i| tokens(i as u64, workload.length, workload.config.vocab_size))
        .collect();
    let lengths = vec![workload.length; workload.sequences];
    let batches = micro_batches(
        &lengths,
        workload.micro_batch_tokens,
        Processor::of(model.device()),
    )
    .into_iter()
    .map(|range| {
        let sequences: Vec<Sequence<'_>> = all[range]
            .iter()
            .map(|ids| Sequence { ids, mask: &mask })
            .collect();
        PackedBatch::new(&sequences)
    })
    .collect::<Result<Vec<_>>>()?;
    let targets: usize = batches.iter().map(|batch| batch.targets().len()).sum();
    let options = PassOptions {
        workers,
        checkpointing: workload.checkpointing,
        ..PassOptions::default()
    };
    let step = |model: &Model, optimizer: &mut AdamW| -> Result<()> {
        let done = model.accumulate(&batches, &options, |_, t| {
            Ok(((t.log_probs.sum_all()? * (-1.0 / targets as f64))?, ()))
        })?;
        optimizer.step(model, &done.gradients, 1e-5)?;
        model.device().synchronize()?;
        Ok(())
    };
    let mut own = AdamW::new(model, OptimizerConfig::default())?;
    let mut other = twin
        .map(|twin| AdamW::new(twin, OptimizerConfig::default()))
        .transpose()?;
    let (seconds, of_twin) = fastest(
        workload.time,
        || step(model, &mut own),
        twin.zip(other.as_mut())
            .map(|(twin, optimizer)| || step(twin, optimizer)),
    )?;
    let count = (workload.sequences * workload.length) as f64;
    Ok(Rate {
        what: format!("train {} x {}", workload.sequences, workload.length),
        tokens_per_second: count / seconds,
        operations: 6.0 * workload.config.parameter_count() as f64,
        peers: twin_peer(twin, count, of_twin),
    })
}

fn decode(
    workload: &Workload,
    model: &Model,
    twin: Option<&Model>,
    batch: usize,
    workers: usize,
) -> Result<Rate> {
    let prompts: Vec<Vec<u32>> = (0..batch)
        .map(|i| tokens(i as u64, workload.prompt, workload.config.vocab_size))
        .collect();
    let context = workload.prompt + workload.new_tokens;
    let cache = batch * context.next_multiple_of(PAGE_TOKENS);
    let sampler = Sampler::new(SamplingParams::default(), 0, Purpose::Test)?;
    let episode = |model: &Model, decoder: &mut Decoder| {
        decode_together(model, decoder, &sampler, &prompts, workload.new_tokens)
    };
    let mut own = Decoder::new(model, cache, context, workers)?;
    let mut other = twin
        .map(|twin| Decoder::new(twin, cache, context, workers))
        .transpose()?;
    let (seconds, of_twin) = fastest(
        workload.time,
        || episode(model, &mut own),
        twin.zip(other.as_mut())
            .map(|(twin, decoder)| || episode(twin, decoder)),
    )?;
    let count = (batch * workload.new_tokens) as f64;
    Ok(Rate {
        what: format!(
            "decode {batch}, prompt {} + {} new",
            workload.prompt, workload.new_tokens
        ),
        tokens_per_second: count / seconds,
        operations: 2.0 * workload.config.parameter_count() as f64,
        peers: twin_peer(twin, count, of_twin),
    })
}
