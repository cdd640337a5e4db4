//! Decoding on the CPU, through the network of training.
//!
//! A worker thread takes its share of a step's entries through all layers. So each worker reads all weights. If that
//! takes longer than computing, because a step has few rows and the weights are many, the workers share each product
//! instead, and each reads its part of the weights.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::pages::PAGE_TOKENS;
use super::{Entry, Placed, rows_of};
use crate::cpu::Cpu;
use crate::error::Result;
use crate::model::Model;
use crate::ops::attention::{Paged, attend_cached, prepare_head, store_keys};
use crate::qwen3::{Layer, Network, lock};

/// Up to this much work (rows times parameters) a step stays on the calling thread: waking another costs more.
const SINGLE_THREAD_WORK: usize = 6_000_000;
/// Up to so many rows for each worker, workers share products.
const SHARED_ROWS: usize = 32;
/// Weights from which on workers share products. Fewer are in the caches, and waiting for each other costs more.
const SHARED_WEIGHTS: usize = 1_000_000;

/// Keys and values, and the buffers of workers.
pub(super) struct FusedCache {
    /// Each is `[layer][kv head][keys | values]`: the keys as tiles `[tile][dim][16]`, the values `[position][dim]`.
    pages: Vec<Vec<f32>>,
    scratch: Vec<Scratch>,
}

/// Buffers of one worker, kept between steps.
#[derive(Debug, Default)]
struct Scratch {
    /// Keys or queries of a head, normed and rotated.
    prepared: Vec<f32>,
    /// Attention's weights.
    weights: Vec<f32>,
}

/// An entry and the pages of its sequence, for one step.
struct Job<'a> {
    index: usize,
    entry: Entry<'a>,
    /// The pages before those that it writes.
    read: &'a [&'a [f32]],
    /// The pages that it writes.
    own: &'a mut [Vec<f32>],
}

/// Grows a buffer if it is too short, and returns its first `len` numbers. They may have any value.
fn resized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

impl FusedCache {
    /// A cache of so many pages for a model's shape, with buffers for so many workers.
    pub(super) fn new(model: &Model, pages: usize, workers: usize) -> Self {
        let heads = model.heads();
        let layers = model.config().num_hidden_layers;
        let len = 2 * layers * heads.key_value * PAGE_TOKENS * heads.dim;
        // The allocator may clear the pages, so all of them count as used: `memory` does.
        Self {
            pages: (0..pages).map(|_| vec![0.0; len]).collect(),
            scratch: (0..workers).map(|_| Scratch::default()).collect(),
        }
    }

    /// Copies a page to another one.
    pub(super) fn copy_page(&mut self, from: usize, to: usize) {
        if let Ok([from, to]) = self.pages.get_disjoint_mut([from, to]) {
            to.copy_from_slice(from);
        }
    }

    /// Makes a step that calls `f` with each entry's index and logits, on the thread that computed them.
    pub(super) fn step<R: Send>(
        &mut self,
        model: &Model,
        placed: &[Placed<'_>],
        pool: &ThreadPool,
        f: impl Fn(usize, &[f32]) -> R + Sync,
    ) -> Result<Vec<R>> {
        // Each page that is written belongs to one entry, which owns it for the step. All other pages are only read.
        let written: Vec<u32> = placed
            .iter()
            .flat_map(|placed| &placed.table[placed.first_written()..])
            .copied()
            .collect();
        let mut own: Vec<Vec<f32>> = written
            .iter()
            .map(|page| std::mem::take(&mut self.pages[*page as usize]))
            .collect();
        let results = self.run(model, placed, &mut own, pool, &f);
        for (page, own) in written.into_iter().zip(own) {
            self.pages[page as usize] = own;
        }
        results
    }

    fn run<R: Send>(
        &mut self,
        model: &Model,
        placed: &[Placed<'_>],
        own: &mut [Vec<f32>],
        pool: &ThreadPool,
        f: &(impl Fn(usize, &[f32]) -> R + Sync),
    ) -> Result<Vec<R>> {
        let (pages, scratch) = (&self.pages[..], &mut self.scratch[..]);
        let read: Vec<&[f32]> = placed
            .iter()
            .flat_map(|placed| &placed.table[..placed.first_written()])
            .map(|page| &pages[*page as usize][..])
            .collect();
        let (mut read_left, mut own_left) = (&read[..], own);
        let mut jobs = Vec::with_capacity(placed.len());
        for (index, placed) in placed.iter().enumerate() {
            let first = placed.first_written();
            let (of_read, read_rest) = read_left.split_at(first);
            let (of_own, own_rest) = own_left.split_at_mut(placed.table.len() - first);
            jobs.push(Job {
                index,
                entry: placed.entry,
                read: of_read,
                own: of_own,
            });
            (read_left, own_left) = (read_rest, own_rest);
        }
        let locked = lock(model.operands());
        let mut network = crate::cpu::network(model, &locked)?;
        let rows: usize = jobs.iter().map(|job| job.entry.tokens.len()).sum();
        let workers = scratch.len();
        let few = rows <= SHARED_ROWS * workers;
        if few && workers > 1 && network.size >= SHARED_WEIGHTS {
            network.backend.threads = workers;
            return Ok(pool.install(|| network.run(&mut jobs, scratch, f))?);
        }
        if workers == 1 || rows * network.size <= SINGLE_THREAD_WORK {
            return Ok(network.run(&mut jobs, &mut scratch[..1], f)?);
        }
        let cuts = share(&jobs, workers);
        let results: Vec<Vec<R>> = pool.install(|| {
            cut(&mut jobs, &cuts)
                .into_par_iter()
                .zip(scratch.par_chunks_mut(1))
                .map(|(jobs, scratch)| network.run(jobs, scratch, f))
                .collect::<candle_core::Result<_>>()
        })?;
        Ok(results.into_iter().flatten().collect())
    }
}

/// The places to cut jobs, so that each of at most `parts` parts has about the same number of rows.
fn share(jobs: &[Job<'_>], parts: usize) -> Vec<usize> {
    let rows: usize = jobs.iter().map(|job| job.entry.tokens.len()).sum();
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

impl<'w> Network<Cpu<'w>> {
    /// Takes jobs through all layers, and hands their logits to `f`. As many threads compute as there are buffers.
    fn run<R: Send>(
        &self,
        jobs: &mut [Job<'_>],
        scratch: &mut [Scratch],
        f: &(impl Fn(usize, &[f32]) -> R + Sync),
    ) -> candle_core::Result<Vec<R>> {
        let cuts = share(jobs, scratch.len());
        let (ids, last) = rows_of(jobs.iter().map(|job| &job.entry));
        let rows = ((&ids, ids.len()), (&last, last.len()));
        let logits = self.decode(rows.0, rows.1, |number, layer, packed, mixed| {
            self.attend_all(layer, number, cut(jobs, &cuts), (packed, mixed), scratch);
            Ok(())
        })?;
        let rows: Vec<_> = jobs.iter().zip(logits.chunks_exact(self.head.n)).collect();
        let each = |(job, logits): &(&Job<'_>, &[f32])| f(job.index, logits);
        Ok(if scratch.len() == 1 {
            rows.iter().map(each).collect()
        } else {
            rows.par_iter().map(each).collect()
        })
    }

    /// Attends the rows of jobs that come in parts, one part for each buffer.
    fn attend_all(
        &self,
        layer: &Layer<Cpu<'w>>,
        number: usize,
        parts: Vec<&mut [Job<'_>]>,
        (mut packed, mut mixed): (&[f32], &mut [f32]),
        scratch: &mut [Scratch],
    ) {
        let heads = self.backend.heads;
        let mut work = Vec::with_capacity(parts.len());
        for (jobs, scratch) in parts.into_iter().zip(scratch) {
            let rows: usize = jobs.iter().map(|job| job.entry.tokens.len()).sum();
            let (of_packed, rest) = packed.split_at(rows * heads.packed_width());
            let (of_mixed, after) = mixed.split_at_mut(rows * heads.out_width());
            work.push((jobs, of_packed, of_mixed, scratch));
            (packed, mixed) = (rest, after);
        }
        let attend = |(jobs, mut packed, mut mixed, scratch): (
            &mut [Job<'_>],
            &[f32],
            &mut [f32],
            &mut Scratch,
        )| {
            for job in jobs {
                let count = job.entry.tokens.len();
                let (of_packed, rest) = packed.split_at(count * heads.packed_width());
                let (of_mixed, after) = mixed.split_at_mut(count * heads.out_width());
                self.attend(layer, number, job, of_packed, of_mixed, scratch);
                (packed, mixed) = (rest, after);
            }
        };
        if work.len() == 1 {
            work.into_iter().for_each(attend);
        } else {
            work.into_par_iter().for_each(attend);
        }
    }

    /// Writes one entry's keys and values and attends its rows.
    fn attend(
        &self,
        layer: &Layer<Cpu<'w>>,
        number: usize,
        job: &mut Job<'_>,
        packed: &[f32],
        mixed: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Scratch { prepared, weights } = scratch;
        let heads = &self.backend.heads;
        let (dim, width, start) = (heads.dim, heads.packed_width(), job.entry.start);
        let count = job.entry.tokens.len();
        let group = heads.group();
        // Numbers of a head's keys in a page, and of its values.
        let block = PAGE_TOKENS * dim;
        for head in 0..heads.key_value {
            let keys_at = 2 * block * (number * heads.key_value + head);
            let values_at = keys_at + block;
            let keys = resized(prepared, count * dim);
            prepare_head(
                heads,
                self.backend.table,
                packed,
                heads.key_column(head),
                layer.k_norm,
                start,
                1.0,
                keys,
            );
            let column = heads.value_column(head);
            let (mut row, mut place) = (0, start % PAGE_TOKENS);
            for page in &mut *job.own {
                let here = (PAGE_TOKENS - place).min(count - row);
                let keys = &keys[row * dim..(row + here) * dim];
                store_keys(keys, dim, place, &mut page[keys_at..values_at]);
                let values = &mut page[values_at + place * dim..][..here * dim];
                for (value, row) in values.chunks_exact_mut(dim).zip(row..) {
                    value.copy_from_slice(&packed[row * width + column..][..dim]);
                }
                (row, place) = (row + here, 0);
            }
            let keys = Paged {
                read: job.read,
                own: &*job.own,
                first: keys_at,
                positions: PAGE_TOKENS,
            };
            let values = Paged {
                first: values_at,
                ..keys
            };
            let first = head * group;
            if count == 1 {
                // The heads of the group share keys and values, and are computed together.
                let queries = resized(prepared, group * dim);
                for (query, out) in queries.chunks_exact_mut(dim).enumerate() {
                    let column = (first + query) * dim;
                    prepare_head(
                        heads,
                        self.backend.table,
                        packed,
                        column,
                        layer.q_norm,
                        start,
                        heads.scale(),
                        out,
                    );
                }
                let out = &mut mixed[first * dim..(first + group) * dim];
                attend_cached(queries, keys, values, dim, start + 1, 0, weights, out, dim);
            } else {
                for query in first..first + group {
                    let queries = resized(prepared, count * dim);
                    prepare_head(
                        heads,
                        self.backend.table,
                        packed,
                        query * dim,
                        layer.q_norm,
                        start,
                        heads.scale(),
                        queries,
                    );
                    let out = &mut mixed[query * dim..];
                    attend_cached(
                        queries,
                        keys,
                        values,
                        dim,
                        start + 1,
                        1,
                        weights,
                        out,
                        heads.out_width(),
                    );
                }
            }
        }
    }
}
