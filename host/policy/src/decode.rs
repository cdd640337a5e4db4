//! Batched decoding with a key-value cache in pages, over the model's own weights.
//!
//! A step takes entries of any length: whole prompts beside single tokens. Each worker thread gets a contiguous run of
//! entries and takes them through all layers to the logits, without waiting for the others. The network of training
//! computes every number of a row. So a row does not depend on the rows beside it, and the logits of a position equal
//! those of training's forward pass, bit for bit.
//!
//! | looking for | module |
//! |---|---|
//! | which sequence holds which pages | `pages` |
//! | a step on the CPU | `fused` |
//! | on CUDA | `cuda` |
//! | in candle's operators | `plain` |

use rayon::prelude::*;

use crate::error::{PolicyError, Result};
use crate::model::Model;
#[cfg(feature = "cuda")]
use crate::model::Precision;
use crate::ops::attention::Heads;
use crate::sample::{Draw, Sampled};

#[cfg(feature = "cuda")]
mod cuda;
mod fused;
mod pages;
mod plain;

pub use pages::PAGE_TOKENS;
pub(crate) use pages::pages_of;

use fused::FusedCache;
use pages::{PageCopy, Pages};

/// The tokens to read into one sequence.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The sequence, by a number of the caller's choice; each at most once per step. An unknown one holds nothing.
    pub sequence: u64,
    /// Position of the first token. The sequence must hold all positions before it, and forgets those from here on.
    pub start: usize,
    /// Tokens to read, at least one. The step returns the logits after the last.
    pub tokens: &'a [u32],
}

impl Entry<'_> {
    /// The position after its last token.
    fn end(&self) -> usize {
        self.start + self.tokens.len()
    }
}

/// An entry with the pages of its sequence: as many as it has positions for after the step.
#[derive(Clone, Copy)]
struct Placed<'a> {
    entry: Entry<'a>,
    table: &'a [u32],
}

impl Placed<'_> {
    /// Place in its table of the first page that it writes.
    fn first_written(&self) -> usize {
        self.entry.start / PAGE_TOKENS
    }

    /// Place of a position in a cache `[pages, positions of a page]`.
    fn cell(&self, position: usize) -> usize {
        self.table[position / PAGE_TOKENS] as usize * PAGE_TOKENS + position % PAGE_TOKENS
    }
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

enum Cache {
    Fused(FusedCache),
    Device(Box<dyn DeviceCache>),
}

/// A cache on a device that takes all entries of a step together.
trait DeviceCache: Send {
    /// Copies a page to another one.
    fn copy_page(&mut self, from: usize, to: usize) -> Result<()>;
    /// The logits after each entry's last token, `[entries, vocabulary]`. The decoder checked the entries.
    fn step(&mut self, model: &Model, entries: &[Placed<'_>]) -> Result<Vec<f32>>;
    /// The same step with draws on the device, or `None`, with nothing done, if the device cannot make them.
    fn sample(
        &mut self,
        _model: &Model,
        _entries: &[Placed<'_>],
        _draws: &[Option<Draw>],
    ) -> Result<Option<Vec<Option<Sampled>>>> {
        Ok(None)
    }
}

/// The cache of a model that does not use the CPU's operators.
fn device_cache(model: &Model, pages: usize, context: usize) -> Result<Box<dyn DeviceCache>> {
    #[cfg(feature = "cuda")]
    if model.fused() {
        return Ok(match model.precision() {
            Precision::F32 => Box::new(cuda::CudaCache::<f32>::new(model, pages, context)?),
            Precision::Bf16 => Box::new(cuda::CudaCache::<half::bf16>::new(model, pages, context)?),
        });
    }
    // Plain operators make no room for a context.
    _ = context;
    Ok(Box::new(plain::PlainCache::new(model, pages)?))
}

/// A key-value cache, and the threads that fill it.
///
/// The cache is a pool of pages of [`PAGE_TOKENS`] tokens each. A sequence takes pages as it grows, and shares those of
/// a common prefix. The cache belongs to a model's shape, not to its weights. After an optimiser's step all sequences
/// are stale and must be read again from position 0.
pub struct Decoder {
    cache: Cache,
    pages: Pages,
    context: usize,
    layers: usize,
    heads: Heads,
    pool: rayon::ThreadPool,
}

impl Decoder {
    /// A decoder with a cache of `tokens` tokens, for sequences of up to `context` tokens, with `workers` threads.
    ///
    /// The cache has whole pages: `n` sequences of any length fit if `tokens` is
    /// `n * context.next_multiple_of(PAGE_TOKENS)`.
    ///
    /// # Errors
    /// If `context` exceeds the model's maximum or `tokens`, or threads cannot be started.
    pub fn new(model: &Model, tokens: usize, context: usize, workers: usize) -> Result<Self> {
        let longest = model.table().positions();
        if context == 0 || context > longest {
            return Err(PolicyError::Input(format!(
                "a decoding context of {context} tokens; the model's max_position_embeddings allows 1 to {longest}"
            )));
        }
        if tokens < context {
            return Err(PolicyError::Input(format!(
                "a key-value cache of {tokens} tokens has no room for one sequence of {context}; make it larger"
            )));
        }
        let workers = workers.max(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|index| format!("decode-{index}"))
            .build()
            .map_err(|error| {
                PolicyError::Input(format!("cannot start {workers} decoding threads: {error}"))
            })?;
        let pages = pages_of(tokens);
        let cache = if is_on_cpu(model) {
            Cache::Fused(FusedCache::new(model, pages, workers))
        } else {
            Cache::Device(device_cache(model, pages, context)?)
        };
        Ok(Self {
            cache,
            pages: Pages::new(pages),
            context,
            layers: model.config().num_hidden_layers,
            heads: model.heads(),
            pool,
        })
    }

    /// Maximum number of tokens of a sequence.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Number of positions that a sequence has filled; 0 if it is unknown.
    pub fn len(&self, sequence: u64) -> usize {
        self.pages.len(sequence)
    }

    /// Number of pages that no sequence holds.
    pub fn free_pages(&self) -> usize {
        self.pages.free()
    }

    /// Number of pages that a step takes from the free ones if it fills the positions `start..end` of a sequence: new
    /// pages, and copies of pages that it shares. Several entries of a step take at most the sum.
    pub fn wanted_pages(&self, sequence: u64, start: usize, end: usize) -> usize {
        self.pages.wanted(sequence, start, end)
    }

    /// Forgets a sequence. Its pages are free if no other sequence shares them.
    pub fn close(&mut self, sequence: u64) {
        self.pages.close(sequence);
    }

    /// Lets `to` begin with the first `len` positions of `from`, so that a shared prompt is computed once. Nothing is
    /// copied until one of the two continues a page that is not full.
    ///
    /// # Errors
    /// If `from` holds fewer positions.
    pub fn share_prefix(&mut self, from: u64, to: u64, len: usize) -> Result<()> {
        let held = self.len(from);
        if len > held {
            return Err(PolicyError::Input(format!(
                "{len} positions of sequence {from}, which holds {held}"
            )));
        }
        self.pages.share(from, to, len);
        Ok(())
    }

    /// Makes one step: reads every entry's tokens and returns the logits after its last one, `[vocabulary]` for each
    /// entry.
    pub fn step(&mut self, model: &Model, entries: &[Entry<'_>]) -> Result<Vec<Vec<f32>>> {
        self.step_with(model, entries, |_, logits| logits.to_vec())
    }

    /// Makes one step that draws a token after each entry for which a draw is given. Results are in the order of entries.
    ///
    /// # Errors
    /// If an entry does not fit its sequence, the vocabulary or the free pages, and then the cache is unchanged; if a
    /// logit is not a number.
    pub fn sample(
        &mut self,
        model: &Model,
        entries: &[Entry<'_>],
        draws: &[Option<Draw>],
    ) -> Result<Vec<Option<Sampled>>> {
        if draws.len() != entries.len() {
            let (draws, entries) = (draws.len(), entries.len());
            return Err(PolicyError::Input(format!(
                "{draws} draws for {entries} entries"
            )));
        }
        self.prepare(model, entries)?;
        if let Cache::Device(cache) = &mut self.cache {
            let drawn = cache.sample(model, &placed(&self.pages, entries), draws)?;
            if let Some(drawn) = drawn {
                self.fill(entries);
                return Ok(drawn);
            }
        }
        let drawn = self.run(model, entries, |entry, logits| {
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
    /// If an entry does not fit its sequence, the vocabulary or the free pages. Then the cache is unchanged.
    pub fn step_with<R: Send>(
        &mut self,
        model: &Model,
        entries: &[Entry<'_>],
        f: impl Fn(usize, &[f32]) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.prepare(model, entries)?;
        self.run(model, entries, f)
    }

    /// Makes a step whose entries are checked and have their pages.
    fn run<R: Send>(
        &mut self,
        model: &Model,
        entries: &[Entry<'_>],
        f: impl Fn(usize, &[f32]) -> R + Sync,
    ) -> Result<Vec<R>> {
        let placed = placed(&self.pages, entries);
        let results = match &mut self.cache {
            Cache::Fused(cache) => cache.step(model, &placed, &self.pool, f)?,
            Cache::Device(cache) => {
                let logits = cache.step(model, &placed)?;
                self.pool.install(|| {
                    let rows = logits.par_chunks_exact(model.vocabulary()).enumerate();
                    rows.map(|(index, logits)| f(index, logits)).collect()
                })
            }
        };
        self.fill(entries);
        Ok(results)
    }

    /// Checks the entries of a step, and gives each the pages that it writes.
    fn prepare(&mut self, model: &Model, entries: &[Entry<'_>]) -> Result<()> {
        self.check(model, entries)?;
        for entry in entries {
            let copy = self.pages.prepare(entry.sequence, entry.start, entry.end());
            if let Some(PageCopy { from, to }) = copy {
                match &mut self.cache {
                    Cache::Fused(cache) => cache.copy_page(from, to),
                    Cache::Device(cache) => cache.copy_page(from, to)?,
                }
            }
        }
        Ok(())
    }

    /// Records that the positions of the entries of a step are filled.
    fn fill(&mut self, entries: &[Entry<'_>]) {
        for entry in entries {
            self.pages.fill(entry.sequence, entry.end());
        }
    }

    fn check(&self, model: &Model, entries: &[Entry<'_>]) -> Result<()> {
        let heads = model.heads();
        let same = heads.dim == self.heads.dim
            && heads.key_value == self.heads.key_value
            && heads.query == self.heads.query
            && model.config().num_hidden_layers == self.layers
            && is_on_cpu(model) == matches!(self.cache, Cache::Fused(_));
        if !same {
            return Err(PolicyError::Input(
                "the decoder was made for a model of another shape or other operators".to_owned(),
            ));
        }
        for (index, entry) in entries.iter().enumerate() {
            let bad = |what: String| {
                Err(PolicyError::Input(format!(
                    "decoding entry {index} (sequence {}): {what}",
                    entry.sequence
                )))
            };
            if entry.tokens.is_empty() {
                return bad("it has no tokens".to_owned());
            }
            let held = self.len(entry.sequence);
            if entry.start > held {
                return bad(format!(
                    "it starts at position {}, but the sequence holds {held}",
                    entry.start
                ));
            }
            if entry.end() > self.context {
                return bad(format!(
                    "it ends at position {}, beyond the context of {}",
                    entry.end(),
                    self.context
                ));
            }
            model.check_ids(entry.tokens)?;
        }
        let mut sequences: Vec<u64> = entries.iter().map(|entry| entry.sequence).collect();
        sequences.sort_unstable();
        if let Some([twice, _]) = sequences.array_windows().find(|[one, next]| one == next) {
            return Err(PolicyError::Input(format!(
                "sequence {twice} is used twice in one decoding step"
            )));
        }
        let writes = entries
            .iter()
            .map(|entry| (entry.sequence, entry.start, entry.end()));
        let (wanted, free) = (self.pages.wanted_together(writes), self.free_pages());
        if wanted > free {
            return Err(PolicyError::Input(format!(
                "a decoding step takes {wanted} pages of {PAGE_TOKENS} tokens, and {free} are free; close sequences"
            )));
        }
        Ok(())
    }
}

/// True if a model decodes with the CPU's operators.
fn is_on_cpu(model: &Model) -> bool {
    model.fused() && model.device().is_cpu()
}

/// Entries with the pages of their sequences.
fn placed<'a>(pages: &'a Pages, entries: &[Entry<'a>]) -> Vec<Placed<'a>> {
    let placed = entries.iter().map(|entry| Placed {
        entry: *entry,
        table: pages.table(entry.sequence),
    });
    placed.collect()
}
