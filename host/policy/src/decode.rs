//! Batched decoding with a preallocated key-value cache, over the model's own weights.
//!
//! A step takes entries of any length: whole prompts beside single tokens. Each worker thread gets a contiguous run of
//! entries and takes them through all layers to the logits, without waiting for the others. The network of training
//! computes every number of a row. So a row does not depend on the rows beside it, and the logits of a position equal
//! those of training's forward pass, bit for bit.

use rayon::prelude::*;

use crate::error::{PolicyError, Result};
use crate::model::Model;
#[cfg(feature = "cuda")]
use crate::model::Precision;
use crate::ops::attention::Heads;
use crate::qwen3::lock;
use crate::sample::{Draw, Sampled};

#[cfg(feature = "cuda")]
mod cuda;
mod fused;
mod plain;

use fused::{CacheShape, Job, Scratch, Slot};

/// The tokens to read into one slot.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The slot; each slot at most once per step.
    pub slot: usize,
    /// Position of the first token. The slot must hold all positions before it, and forgets those from here on.
    pub start: usize,
    /// Tokens to read, at least one. The step returns the logits after the last.
    pub tokens: &'a [u32],
}

/// The ids of all rows of a step, and the number of each entry's last row.
fn rows_of<'e>(entries: impl IntoIterator<Item = &'e Entry<'e>>) -> (Vec<u32>, Vec<u32>) {
    let (mut ids, mut last) = (Vec::new(), Vec::new());
    for entry in entries {
        ids.extend_from_slice(entry.tokens);
        last.push(ids.len() as u32 - 1);
    }
    (ids, last)
}

/// Up to this much work (rows times parameters) a step stays on the calling thread: waking another costs more.
const SINGLE_THREAD_WORK: usize = 6_000_000;

enum Cache {
    Fused(Vec<Slot>),
    Device(Box<dyn DeviceCache>),
}

/// A cache on a device that takes all entries of a step together.
trait DeviceCache: Send {
    /// Number of positions filled in a slot.
    fn len(&self, slot: usize) -> usize;
    /// Copies the first `len` positions of a slot to another.
    fn copy_prefix(&mut self, from: usize, to: usize, len: usize) -> Result<()>;
    /// The logits after each entry's last token, `[entries, vocabulary]`. The decoder checked the entries.
    fn step(&mut self, model: &Model, entries: &[Entry<'_>]) -> Result<Vec<f32>>;
    /// The same step with draws on the device, or `None`, with nothing done, if the device cannot make them.
    fn sample(
        &mut self,
        _model: &Model,
        _entries: &[Entry<'_>],
        _draws: &[Option<Draw>],
    ) -> Result<Option<Vec<Option<Sampled>>>> {
        Ok(None)
    }
}

/// The cache of a model that does not use the CPU's operators.
fn device_cache(model: &Model, slots: usize, context: usize) -> Result<Box<dyn DeviceCache>> {
    #[cfg(feature = "cuda")]
    if model.fused() {
        return Ok(match model.precision() {
            Precision::F32 => Box::new(cuda::CudaCache::<f32>::new(model, slots, context)?),
            Precision::Bf16 => Box::new(cuda::CudaCache::<half::bf16>::new(model, slots, context)?),
        });
    }
    Ok(Box::new(plain::PlainCache::new(model, slots, context)?))
}

/// A key-value cache, and the threads that fill it.
///
/// It belongs to a model's shape, not to its weights. After an optimiser's step the slots are stale and must be read
/// again from position 0.
pub struct Decoder {
    cache: Cache,
    slots: usize,
    context: usize,
    layers: usize,
    heads: Heads,
    pool: rayon::ThreadPool,
    scratch: Vec<Scratch>,
}

impl Decoder {
    /// A decoder for `slots` sequences of up to `context` tokens, with `workers` threads.
    ///
    /// # Errors
    /// If `context` exceeds the model's maximum, or threads cannot be started.
    pub fn new(model: &Model, slots: usize, context: usize, workers: usize) -> Result<Self> {
        let longest = model.table().positions();
        if context == 0 || context > longest {
            return Err(PolicyError::Input(format!(
                "a decoding context of {context} tokens; the model's max_position_embeddings allows 1 to {longest}"
            )));
        }
        if slots == 0 {
            return Err(PolicyError::Input("a decoder without slots".to_owned()));
        }
        let workers = workers.max(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|index| format!("decode-{index}"))
            .build()
            .map_err(|error| {
                PolicyError::Input(format!("cannot start {workers} decoding threads: {error}"))
            })?;
        let layers = model.config().num_hidden_layers;
        let heads = model.heads();
        let on_cpu = model.fused() && model.device().is_cpu();
        let cache = if on_cpu {
            let [keys, values] = heads.cache_lens(layers, context);
            // The allocator may clear the pages, so all of it counts as used: `memory` does.
            let slot = || Slot {
                len: 0,
                keys: vec![0.0; keys],
                values: vec![0.0; values],
            };
            Cache::Fused((0..slots).map(|_| slot()).collect())
        } else {
            Cache::Device(device_cache(model, slots, context)?)
        };
        Ok(Self {
            cache,
            slots,
            context,
            layers,
            heads,
            pool,
            scratch: (0..workers).map(|_| Scratch::default()).collect(),
        })
    }

    /// Number of slots, one per sequence.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Maximum number of tokens of a sequence.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Number of positions filled in a slot; 0 if the slot does not exist.
    pub fn len(&self, slot: usize) -> usize {
        match &self.cache {
            Cache::Fused(slots) => slots.get(slot).map_or(0, |slot| slot.len),
            Cache::Device(cache) => cache.len(slot),
        }
    }

    /// True if a slot holds nothing.
    pub fn is_empty(&self, slot: usize) -> bool {
        self.len(slot) == 0
    }

    /// Copies the first `len` positions of slot `from` to slot `to`, so that a shared prompt is computed once.
    pub fn copy_prefix(&mut self, from: usize, to: usize, len: usize) -> Result<()> {
        if from >= self.slots || to >= self.slots {
            return Err(PolicyError::Input(format!(
                "slots {from} and {to} of {}",
                self.slots
            )));
        }
        if len > self.len(from) {
            return Err(PolicyError::Input(format!(
                "{len} positions of slot {from}, which holds {}",
                self.len(from)
            )));
        }
        if from == to {
            return Ok(());
        }
        match &mut self.cache {
            Cache::Device(cache) => cache.copy_prefix(from, to, len),
            Cache::Fused(slots) => {
                let Ok([source, target]) = slots.get_disjoint_mut([from, to]) else {
                    return Ok(());
                };
                let (tiles, values) = (
                    self.heads.tiles_len(self.context),
                    self.context * self.heads.dim,
                );
                // The last tile is copied whole; its positions beyond `len` are overwritten before they are read.
                let (used_tiles, used_values) = (self.heads.tiles_len(len), len * self.heads.dim);
                for head in 0..self.layers * self.heads.key_value {
                    let (k, v) = (head * tiles, head * values);
                    target.keys[k..k + used_tiles].copy_from_slice(&source.keys[k..k + used_tiles]);
                    target.values[v..v + used_values]
                        .copy_from_slice(&source.values[v..v + used_values]);
                }
                target.len = len;
                Ok(())
            }
        }
    }

    /// Makes one step: reads every entry's tokens and returns the logits after its last one, `[vocabulary]` for each
    /// entry.
    pub fn step(&mut self, model: &Model, entries: &[Entry<'_>]) -> Result<Vec<Vec<f32>>> {
        self.step_with(model, entries, |_, logits| logits.to_vec())
    }

    /// Makes one step that draws a token after each entry for which a draw is given. Results are in the order of entries.
    ///
    /// # Errors
    /// If an entry does not fit its slot or the vocabulary, and then the cache is unchanged; if a logit is not a number.
    pub fn sample(
        &mut self,
        model: &Model,
        entries: &[Entry<'_>],
        draws: &[Option<Draw>],
    ) -> Result<Vec<Option<Sampled>>> {
        self.check(model, entries)?;
        if draws.len() != entries.len() {
            let (draws, entries) = (draws.len(), entries.len());
            return Err(PolicyError::Input(format!(
                "{draws} draws for {entries} entries"
            )));
        }
        if let Cache::Device(cache) = &mut self.cache
            && let Some(drawn) = cache.sample(model, entries, draws)?
        {
            return Ok(drawn);
        }
        let drawn = self.step_with(model, entries, |entry, logits| {
            draws[entry]
                .map(|draw| draw.sampler.sample(logits, draw.key))
                .transpose()
        })?;
        drawn.into_iter().collect()
    }

    /// Makes one step that calls `f` with each entry's index and logits, on the thread that computed them. Results are in
    /// the order of entries.
    ///
    /// # Errors
    /// If an entry does not fit its slot or the vocabulary. Then the cache is unchanged.
    pub fn step_with<R: Send>(
        &mut self,
        model: &Model,
        entries: &[Entry<'_>],
        f: impl Fn(usize, &[f32]) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.check(model, entries)?;
        let slots = match &mut self.cache {
            Cache::Device(cache) => {
                let logits = cache.step(model, entries)?;
                return Ok(self.pool.install(|| {
                    let rows = logits.par_chunks_exact(model.vocabulary()).enumerate();
                    rows.map(|(index, logits)| f(index, logits)).collect()
                }));
            }
            Cache::Fused(slots) => slots,
        };
        let locked = lock(model.operands());
        let network = crate::cpu::network(model, &locked)?;
        let shape = CacheShape {
            heads: self.heads,
            context: self.context,
        };
        // Every slot is used at most once, so each entry can own its slot for the step.
        let mut free: Vec<Option<&mut Slot>> = slots.iter_mut().map(Some).collect();
        let mut jobs: Vec<Job<'_>> = entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                free[entry.slot].take().map(|slot| Job {
                    index,
                    entry: *entry,
                    slot,
                })
            })
            .collect();
        let rows: usize = entries.iter().map(|entry| entry.tokens.len()).sum();
        let parts = if rows * network.size <= SINGLE_THREAD_WORK {
            1
        } else {
            self.scratch.len()
        };
        if parts == 1 {
            return Ok(network.run(&shape, &mut jobs, &mut self.scratch[0], &f)?);
        }
        let cuts = share(&jobs, rows, parts);
        let scratch = &mut self.scratch;
        let results: Vec<Vec<R>> = self.pool.install(|| {
            cut(&mut jobs, &cuts)
                .into_par_iter()
                .zip(scratch.par_iter_mut())
                .map(|(jobs, scratch)| network.run(&shape, jobs, scratch, &f))
                .collect::<candle_core::Result<_>>()
        })?;
        Ok(results.into_iter().flatten().collect())
    }

    fn check(&self, model: &Model, entries: &[Entry<'_>]) -> Result<()> {
        let heads = model.heads();
        let same = heads.dim == self.heads.dim
            && heads.key_value == self.heads.key_value
            && heads.query == self.heads.query
            && model.config().num_hidden_layers == self.layers
            && (model.fused() && model.device().is_cpu()) == matches!(self.cache, Cache::Fused(_));
        if !same {
            return Err(PolicyError::Input(
                "the decoder was made for a model of another shape or other operators".to_owned(),
            ));
        }
        let mut used = vec![false; self.slots];
        for (index, entry) in entries.iter().enumerate() {
            let bad = |what: String| {
                Err(PolicyError::Input(format!(
                    "decoding entry {index} (slot {}): {what}",
                    entry.slot
                )))
            };
            if entry.slot >= self.slots {
                return bad(format!("there are {} slots", self.slots));
            }
            if std::mem::replace(&mut used[entry.slot], true) {
                return bad("the slot is used twice in one step".to_owned());
            }
            if entry.tokens.is_empty() {
                return bad("it has no tokens".to_owned());
            }
            if entry.start > self.len(entry.slot) {
                return bad(format!(
                    "it starts at position {}, but the slot holds {}",
                    entry.start,
                    self.len(entry.slot)
                ));
            }
            if entry.start + entry.tokens.len() > self.context {
                return bad(format!(
                    "it ends at position {}, beyond the context of {}",
                    entry.start + entry.tokens.len(),
                    self.context
                ));
            }
            model.check_ids(entry.tokens)?;
        }
        Ok(())
    }
}

/// The places to cut jobs, so that each part has about the same number of rows.
fn share(jobs: &[Job<'_>], rows: usize, parts: usize) -> Vec<usize> {
    let mut cuts = Vec::with_capacity(parts);
    let mut done = 0;
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && done * parts >= (cuts.len() + 1) * rows && cuts.len() + 1 < parts {
            cuts.push(index);
        }
        done += job.entry.tokens.len();
    }
    cuts
}

/// Cuts a slice at the given places.
fn cut<'a, T>(mut all: &'a mut [T], cuts: &[usize]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut from = 0;
    for &to in cuts {
        let (part, rest) = all.split_at_mut(to - from);
        parts.push(part);
        all = rest;
        from = to;
    }
    parts.push(all);
    parts
}
