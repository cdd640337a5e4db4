//! The operators on CUDA: matrix products by cuBLAS, and the rest by `kernels.cu`.
//!
//! Products read f32 or bf16 and add in f32. The residual stream, scores, logits and the gradients of weights are f32
//! in any case. Every kernel adds in a fixed order.
//!
//! A host thread has one stream, so its launches run in order and need no events between them. Steps that other threads
//! depend on (an optimiser's step, a decoding step) end by waiting for the device.

#![allow(unsafe_code)] // Kernel launches, memory that a kernel fills.

mod launch;
pub(crate) mod optimizer;
mod recording;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::result::memcpy_dtod_async;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr};
use candle_core::op::BackpropOp;
use candle_core::{
    CudaDevice, CudaStorage, DType, Device, Error, Layout, Result, Storage, Tensor, bail,
};

pub(crate) use launch::Number;
use launch::{At, Factor, Kernel, Product, WARP};
pub(crate) use recording::Recording;

use crate::batch::PackedBatch;
use crate::blocks::{attention_blocks, chunks, logit_rows, padded};
use crate::ops::attention::Heads;
use crate::ops::rotary::DeviceTable;
use crate::qwen3::Backend;
use crate::sample::{Draw, Sampled};

/// Threads of a block that takes one row.
const ROW: (usize, usize) = (256, 1);
/// Threads of a block that takes one row of logits.
const LONG_ROW: (usize, usize) = (1024, 1);
/// Numbers that a thread takes at once where rows have a multiple of them: `PACK` in `kernels.cu`.
const PACK: usize = 4;
/// Blocks, at most, that share the rows of a sum.
const SHARES: usize = 1024;
/// Warps of a block whose warps take one head each.
const HEADS: usize = 4;
/// Warps of a block that attends over the cache: `MOST` in `kernels.cu`.
const ATTENDING: usize = 8;

/// A weight `[k, n]`, with rows `stride` numbers apart.
pub(crate) struct Matrix<'a, T> {
    pub(crate) data: &'a CudaSlice<T>,
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) stride: usize,
}

impl<T> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<'_, T> {}

impl<T> Matrix<'_, T> {
    fn factor(&self) -> Factor<T> {
        Factor::new(At::new(self.data, 0), self.stride)
    }
}

/// The operators of a CUDA device, for weights that are locked for `'a` and products of `T`.
pub(crate) struct Cuda<'a, T> {
    pub(crate) device: CudaDevice,
    pub(crate) heads: Heads,
    pub(crate) table: &'a DeviceTable,
    pub(crate) eps: f32,
    pub(crate) number: PhantomData<T>,
}

/// A CUDA device, or an error that names the one given.
pub(crate) fn device_of(device: &Device) -> Result<&CudaDevice> {
    match device {
        Device::Cuda(device) => Ok(device),
        _ => bail!("a CUDA operator on {:?}", device.location()),
    }
}

/// The numbers of a contiguous tensor that begins its storage.
pub(crate) fn numbers<'a, T: Number>(
    storage: &'a Storage,
    layout: &Layout,
) -> Result<&'a CudaSlice<T>> {
    match storage {
        Storage::Cuda(storage) if layout.is_contiguous() && layout.start_offset() == 0 => {
            storage.as_cuda_slice::<T>()
        }
        _ => bail!("a CUDA operator needs a whole tensor on the device"),
    }
}

/// A tensor that takes over a slice.
fn tensor<T: Number>(slice: CudaSlice<T>, shape: &[usize], device: &CudaDevice) -> Tensor {
    let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(slice, device.clone()));
    Tensor::from_storage(storage, shape, BackpropOp::none(), false)
}

/// The places of a batch's rows.
pub(crate) struct Places {
    tokens: usize,
    sequences: usize,
    longest: usize,
    /// Packed row of each padded one, or the largest u32, `[sequences * longest]`.
    row_of: CudaSlice<u32>,
    /// Padded row of each packed one, `[tokens]`.
    place_of: CudaSlice<u32>,
    /// Different ids, the first of each one's rows, and the rows of all.
    distinct: [CudaSlice<u32>; 3],
    distinct_count: usize,
    targets: CudaSlice<u32>,
    target_count: usize,
}

impl<T: Number> Cuda<'_, T> {
    /// `count` numbers that have any value.
    pub(crate) fn room<N: DeviceRepr>(&self, count: usize) -> Result<CudaSlice<N>> {
        // SAFETY: every kernel and product here writes its whole output before anything reads it.
        unsafe { self.device.alloc::<N>(count) }
    }

    /// A copy of rows as a tensor, `[rows, width]`.
    fn copy_of_rows(&self, rows: &CudaSlice<T>, width: usize) -> Result<Tensor> {
        let mut copy = self.room::<T>(rows.len())?;
        self.device.memcpy_dtod(rows, &mut copy)?;
        Ok(tensor(copy, &[rows.len() / width, width], &self.device))
    }

    fn kernel(&self, name: &str) -> Kernel<'_> {
        Kernel::of::<T>(&self.device, name)
    }

    /// Adds to `out[width]` those of the rows `parts[rows, width]` whose number modulo `period` is in `from..from + count`.
    fn column_sum(
        &self,
        parts: &CudaSlice<f32>,
        width: usize,
        (period, from, count): (usize, usize, usize),
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        Kernel::new(&self.device, "column_sum")
            .slice(parts)
            .int(parts.len() / width)?
            .int(width)?
            .int(period)?
            .int(from)?
            .int(count)?
            .output(out)
            .launch((width.div_ceil(WARP), 1), (WARP, WARP))
    }

    /// Computes `out = x w`, of any type.
    fn product<N: Number>(
        &self,
        x: At<T>,
        rows: usize,
        w: Matrix<'_, T>,
        keep: f32,
        out: &mut CudaSlice<N>,
    ) -> Result<()> {
        let product = Product {
            keep,
            ..Product::new(rows, w.n, w.k)
        };
        let out = Factor::new(At::new(out, 0), w.n);
        product.run(&self.device, Factor::new(x, w.k), w.factor(), out)
    }

    /// Computes `dx = g wᵀ + keep dx`.
    fn transposed_product(
        &self,
        g: &CudaSlice<T>,
        w: Matrix<'_, T>,
        keep: f32,
        dx: &mut CudaSlice<T>,
    ) -> Result<()> {
        let product = Product {
            keep,
            ..Product::new(dx.len() / w.k, w.k, w.n)
        };
        let of_g = Factor::new(At::new(g, 0), w.n);
        let out = Factor::new(At::new(dx, 0), w.k);
        product.run(&self.device, of_g, w.factor().transposed(), out)
    }

    /// Padded queries, keys and values of packed rows, `[sequences, query heads, longest, dim]`.
    fn split(
        &self,
        places: &Places,
        packed: &CudaSlice<T>,
        [q_norm, k_norm]: [&CudaSlice<f32>; 2],
    ) -> Result<[CudaSlice<T>; 3]> {
        let heads = &self.heads;
        let padded = places.sequences * places.longest;
        let count = padded * heads.out_width();
        let mut split = [self.room(count)?, self.room(count)?, self.room(count)?];
        let [q, k, v] = &mut split;
        let all = heads.query + 2 * heads.key_value;
        self.kernel("split_heads")
            .slice(packed)
            .slice(&places.row_of)
            .slice(q_norm)
            .slice(k_norm)
            .slice(&self.table.cos)
            .slice(&self.table.sin)
            .output(q)
            .output(k)
            .output(v)
            .int(heads.query)?
            .int(heads.key_value)?
            .int(heads.dim / 2)?
            .int(places.longest)?
            .float(self.eps)
            .launch((padded, all.div_ceil(HEADS)), (HEADS * WARP, 1))?;
        Ok(split)
    }

    /// The blocks of query rows whose scores are computed at once: first row and number of rows.
    fn blocks(&self, places: &Places) -> impl Iterator<Item = (usize, usize)> + use<T> {
        attention_blocks(places.sequences * self.heads.query, places.longest)
    }

    /// The scores of a block of query rows: q kᵀ / sqrt(dim), `[sequences * heads, rows, keys]`.
    fn scores(
        &self,
        block: &Block,
        q: &CudaSlice<T>,
        k: &CudaSlice<T>,
        out: &CudaSlice<f32>,
    ) -> Result<()> {
        Product {
            scale: self.heads.scale(),
            ..block.product(block.rows, block.keys, block.dim)
        }
        .run(
            &self.device,
            block.query_rows(q),
            block.all_rows(k).transposed(),
            block.square(out),
        )
    }
}

/// A block of query rows, in every sequence and head.
struct Block {
    batch: usize,
    longest: usize,
    dim: usize,
    first: usize,
    rows: usize,
    /// Keys that its last row sees.
    keys: usize,
}

impl Block {
    fn product(&self, m: usize, n: usize, k: usize) -> Product {
        Product {
            batch: self.batch,
            ..Product::new(m, n, k)
        }
    }

    /// The block's rows of padded heads.
    fn query_rows<N>(&self, heads: &CudaSlice<N>) -> Factor<N> {
        Factor::new(At::new(heads, self.first * self.dim), self.dim).next(self.longest * self.dim)
    }

    /// All rows of padded heads.
    fn all_rows<N>(&self, heads: &CudaSlice<N>) -> Factor<N> {
        Factor::new(At::new(heads, 0), self.dim).next(self.longest * self.dim)
    }

    /// Scores.
    fn square<N>(&self, scores: &CudaSlice<N>) -> Factor<N> {
        Factor::new(At::new(scores, 0), self.keys).next(self.rows * self.keys)
    }

    fn count(&self) -> usize {
        self.batch * self.rows * self.keys
    }
}

impl<'a, T: Number> Backend for Cuda<'a, T> {
    type Stream = CudaSlice<f32>;
    type Rows = CudaSlice<T>;
    type Matrix = Matrix<'a, T>;
    type Gain = &'a CudaSlice<f32>;
    type Gradient = CudaSlice<f32>;
    type Indices = CudaSlice<u32>;
    type Places = Places;
    type Operand<'s>
        = Box<CudaSlice<T>>
    where
        Self: 's;

    fn places(&self, batch: &PackedBatch) -> Result<Places> {
        let spans = &batch.spans;
        let longest = padded(batch.longest());
        let mut row_of = vec![u32::MAX; spans.len() * longest];
        let mut place_of = Vec::with_capacity(batch.tokens());
        for (sequence, span) in spans.iter().enumerate() {
            for position in 0..span.len {
                let place = sequence * longest + position;
                row_of[place] = (span.start + position) as u32;
                place_of.push(place as u32);
            }
        }
        let mut of_id: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, id) in batch.ids.iter().enumerate() {
            of_id.entry(*id).or_default().push(row as u32);
        }
        let ids: Vec<u32> = of_id.keys().copied().collect();
        let mut starts = vec![0u32];
        let mut rows = Vec::with_capacity(batch.tokens());
        for of_one in of_id.values() {
            rows.extend(of_one);
            starts.push(rows.len() as u32);
        }
        let device = &self.device;
        Ok(Places {
            tokens: batch.tokens(),
            sequences: spans.len(),
            longest,
            row_of: device.clone_htod(&row_of)?,
            place_of: device.clone_htod(&place_of)?,
            distinct_count: ids.len(),
            distinct: [
                device.clone_htod(&ids)?,
                device.clone_htod(&starts)?,
                device.clone_htod(&rows)?,
            ],
            targets: device.clone_htod(&batch.targets[..])?,
            target_count: batch.targets.len(),
        })
    }

    fn indices(&self, numbers: &[u32]) -> Result<CudaSlice<u32>> {
        self.device.clone_htod(numbers)
    }

    fn stream(&self, tokens: usize, width: usize) -> Result<CudaSlice<f32>> {
        self.device.alloc_zeros(tokens * width)
    }

    fn rows(&self, tokens: usize, width: usize) -> Result<CudaSlice<T>> {
        self.room(tokens * width)
    }

    fn gradient(&self, len: usize) -> Result<CudaSlice<f32>> {
        self.device.alloc_zeros(len)
    }

    fn copy(&self, stream: &CudaSlice<f32>) -> Result<CudaSlice<f32>> {
        let mut copy = self.room(stream.len())?;
        self.device.memcpy_dtod(stream, &mut copy)?;
        Ok(copy)
    }

    fn operand<'s>(&'s self, stream: &'s CudaSlice<f32>) -> Result<Box<CudaSlice<T>>> {
        let mut out = self.room(stream.len())?;
        self.kernel("to_operand")
            .slice(stream)
            .output(&mut out)
            .long(stream.len())
            .launch_each(stream.len().div_ceil(PACK))?;
        Ok(Box::new(out))
    }

    fn add(&self, sum: &mut CudaSlice<f32>, part: &CudaSlice<f32>) -> Result<()> {
        Kernel::new(&self.device, "add")
            .output(sum)
            .slice(part)
            .long(part.len())
            .launch_each(part.len().div_ceil(PACK))
    }

    fn rows_tensor(&self, rows: &CudaSlice<T>, width: usize) -> Result<Tensor> {
        self.copy_of_rows(rows, width)?.to_dtype(DType::F32)
    }

    fn add_to_rows(&self, rows: &mut CudaSlice<T>, part: &Tensor) -> Result<()> {
        let own = self.copy_of_rows(rows, part.dim(1)?)?;
        let sum = (own.to_dtype(DType::F32)? + part)?.to_dtype(own.dtype())?;
        let (storage, layout) = sum.storage_and_layout();
        self.device
            .memcpy_dtod(numbers::<T>(&storage, layout)?, rows)
    }

    fn tensor(&self, gradient: CudaSlice<f32>, shape: &[usize]) -> Result<Tensor> {
        Ok(tensor(gradient, shape, &self.device))
    }

    fn embed(
        &self,
        w: Matrix<'a, T>,
        ids: &CudaSlice<u32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.kernel("embed")
            .slice(w.data)
            .slice(ids)
            .output(out)
            .int(w.k)?
            .int(w.stride)?
            .launch((ids.len(), 1), ROW)
    }

    fn embed_backward(
        &self,
        d: &CudaSlice<f32>,
        places: &Places,
        dw: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let hidden = d.len() / places.tokens;
        let vocabulary = dw.len() / hidden;
        let [ids, starts, rows] = &places.distinct;
        Kernel::new(&self.device, "embed_backward")
            .slice(d)
            .slice(ids)
            .slice(starts)
            .slice(rows)
            .output(dw)
            .int(hidden)?
            .int(vocabulary)?
            .launch((places.distinct_count, 1), ROW)
    }

    fn pick(
        &self,
        x: &CudaSlice<f32>,
        rows: &CudaSlice<u32>,
        width: usize,
    ) -> Result<CudaSlice<f32>> {
        let mut out = self.room(rows.len() * width)?;
        Kernel::new(&self.device, "gather_rows")
            .slice(x)
            .slice(rows)
            .output(&mut out)
            .int(width)?
            .launch((rows.len(), 1), ROW)?;
        Ok(out)
    }

    fn pick_backward(
        &self,
        d_picked: &CudaSlice<f32>,
        rows: &CudaSlice<u32>,
        width: usize,
        d: &mut CudaSlice<f32>,
    ) -> Result<()> {
        Kernel::new(&self.device, "scatter_rows")
            .slice(d_picked)
            .slice(rows)
            .output(d)
            .int(width)?
            .launch((rows.len(), 1), ROW)
    }

    fn rms_norm(
        &self,
        x: &CudaSlice<f32>,
        w: &'a CudaSlice<f32>,
        out: &mut CudaSlice<T>,
    ) -> Result<()> {
        let width = w.len();
        self.kernel("rms_norm")
            .slice(x)
            .slice(w)
            .output(out)
            .int(width)?
            .float(self.eps)
            .launch((x.len() / width, 1), ROW)
    }

    fn rms_norm_backward(
        &self,
        x: &CudaSlice<f32>,
        w: &'a CudaSlice<f32>,
        g: &CudaSlice<T>,
        dx: &mut CudaSlice<f32>,
        dw: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let width = w.len();
        let rows = x.len() / width;
        let shares = rows.min(SHARES);
        let mut parts = self.device.alloc_zeros::<f32>(shares * width)?;
        self.kernel("rms_norm_backward")
            .slice(x)
            .slice(w)
            .slice(g)
            .output(dx)
            .output(&mut parts)
            .int(rows)?
            .int(width)?
            .float(self.eps)
            .launch((shares, 1), ROW)?;
        self.column_sum(&parts, width, (1, 0, 1), dw)
    }

    fn linear(&self, x: &CudaSlice<T>, w: Matrix<'a, T>, out: &mut CudaSlice<T>) -> Result<()> {
        self.product(At::new(x, 0), out.len() / w.n, w, 0.0, out)
    }

    fn linear_add(
        &self,
        x: &CudaSlice<T>,
        w: Matrix<'a, T>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.product(At::new(x, 0), out.len() / w.n, w, 1.0, out)
    }

    fn linear_add_rows(
        &self,
        x: &CudaSlice<T>,
        w: Matrix<'a, T>,
        out: &mut CudaSlice<T>,
    ) -> Result<()> {
        self.product(At::new(x, 0), out.len() / w.n, w, 1.0, out)
    }

    fn input_gradient(
        &self,
        g: &CudaSlice<T>,
        w: Matrix<'a, T>,
        dx: &mut CudaSlice<T>,
    ) -> Result<()> {
        self.transposed_product(g, w, 0.0, dx)
    }

    fn input_gradient_add(
        &self,
        g: &CudaSlice<T>,
        w: Matrix<'a, T>,
        dx: &mut CudaSlice<T>,
    ) -> Result<()> {
        self.transposed_product(g, w, 1.0, dx)
    }

    fn weight_gradient(
        &self,
        x: &CudaSlice<T>,
        g: &CudaSlice<T>,
        w: Matrix<'a, T>,
    ) -> Result<CudaSlice<f32>> {
        let dw = self.room(w.k * w.n)?;
        Product::new(w.k, w.n, g.len() / w.n).run(
            &self.device,
            Factor::new(At::new(x, 0), w.k).transposed(),
            Factor::new(At::new(g, 0), w.n),
            Factor::new(At::new(&dw, 0), w.n),
        )?;
        Ok(dw)
    }

    fn attention(
        &self,
        places: &Places,
        packed: &CudaSlice<T>,
        norms: [&'a CudaSlice<f32>; 2],
        out: &mut CudaSlice<T>,
    ) -> Result<()> {
        let [q, k, v] = self.split(places, packed, norms)?;
        let mixed = self.room::<T>(q.len())?;
        for (first, rows) in self.blocks(places) {
            let block = self.block(places, first, rows);
            let scores = self.room::<f32>(block.count())?;
            self.scores(&block, &q, &k, &scores)?;
            let mut p = self.room::<T>(block.count())?;
            self.kernel("softmax")
                .slice(&scores)
                .output(&mut p)
                .int(rows)?
                .int(block.keys)?
                .int(first)?
                .launch((block.batch, rows), (128, 1))?;
            block.product(rows, block.dim, block.keys).run(
                &self.device,
                block.square(&p),
                block.all_rows(&v),
                block.query_rows(&mixed),
            )?;
        }
        self.kernel("join_heads")
            .slice(&mixed)
            .slice(&places.place_of)
            .output(out)
            .int(self.heads.query)?
            .int(self.heads.dim)?
            .int(places.longest)?
            .launch((places.tokens, 1), ROW)
    }

    fn attention_backward(
        &self,
        places: &Places,
        packed: &CudaSlice<T>,
        norms: [&'a CudaSlice<f32>; 2],
        g: &CudaSlice<T>,
        d_packed: &mut CudaSlice<T>,
        [d_q_norm, d_k_norm]: [&mut CudaSlice<f32>; 2],
    ) -> Result<()> {
        let heads = &self.heads;
        let [q, k, v] = self.split(places, packed, norms)?;
        let mut d = self.room::<T>(q.len())?;
        self.kernel("join_heads_backward")
            .slice(g)
            .slice(&places.row_of)
            .output(&mut d)
            .int(heads.query)?
            .int(heads.dim)?
            .int(places.longest)?
            .launch((places.sequences * places.longest, 1), ROW)?;
        let dq = self.room::<f32>(q.len())?;
        let dk = self.device.alloc_zeros::<f32>(q.len())?;
        let dv = self.device.alloc_zeros::<f32>(q.len())?;
        for (first, rows) in self.blocks(places) {
            let block = self.block(places, first, rows);
            let (keys, dim) = (block.keys, block.dim);
            let scores = self.room::<f32>(block.count())?;
            self.scores(&block, &q, &k, &scores)?;
            let dp = self.room::<f32>(block.count())?;
            block.product(rows, keys, dim).run(
                &self.device,
                block.query_rows(&d),
                block.all_rows(&v).transposed(),
                block.square(&dp),
            )?;
            let (mut p, mut ds) = (
                self.room::<T>(block.count())?,
                self.room::<T>(block.count())?,
            );
            self.kernel("softmax_backward")
                .slice(&scores)
                .slice(&dp)
                .output(&mut p)
                .output(&mut ds)
                .int(rows)?
                .int(keys)?
                .int(first)?
                .launch((block.batch, rows), (128, 1))?;
            let scale = heads.scale();
            let add = Product {
                keep: 1.0,
                ..block.product(keys, dim, rows)
            };
            add.run(
                &self.device,
                block.square(&p).transposed(),
                block.query_rows(&d),
                block.all_rows(&dv),
            )?;
            Product { scale, ..add }.run(
                &self.device,
                block.square(&ds).transposed(),
                block.query_rows(&q),
                block.all_rows(&dk),
            )?;
            Product {
                scale,
                ..block.product(rows, dim, keys)
            }
            .run(
                &self.device,
                block.square(&ds),
                block.all_rows(&k),
                block.query_rows(&dq),
            )?;
        }
        let shares = places.tokens.div_ceil(HEADS).min(64);
        let normed = heads.query + heads.key_value;
        let mut parts = self.room::<f32>(shares * HEADS * normed * heads.dim)?;
        self.kernel("split_heads_backward")
            .slice(packed)
            .slice(&places.place_of)
            .slice(norms[0])
            .slice(norms[1])
            .slice(&self.table.cos)
            .slice(&self.table.sin)
            .slice(&dq)
            .slice(&dk)
            .slice(&dv)
            .output(d_packed)
            .output(&mut parts)
            .int(places.tokens)?
            .int(heads.query)?
            .int(heads.key_value)?
            .int(heads.dim / 2)?
            .int(places.longest)?
            .float(self.eps)
            .launch((shares, normed + heads.key_value), (HEADS * WARP, 1))?;
        self.column_sum(&parts, heads.dim, (normed, 0, heads.query), d_q_norm)?;
        let of_keys = (normed, heads.query, heads.key_value);
        self.column_sum(&parts, heads.dim, of_keys, d_k_norm)
    }

    fn swiglu(&self, x: &CudaSlice<T>, width: usize, out: &mut CudaSlice<T>) -> Result<()> {
        let rows = out.len() / width;
        self.kernel("swiglu")
            .slice(x)
            .output(out)
            .int(width)?
            .launch((rows, width.div_ceil(ROW.0 * PACK)), ROW)
    }

    fn swiglu_backward(
        &self,
        x: &CudaSlice<T>,
        width: usize,
        g: &CudaSlice<T>,
        dx: &mut CudaSlice<T>,
        out: &mut CudaSlice<T>,
    ) -> Result<()> {
        let rows = out.len() / width;
        self.kernel("swiglu_backward")
            .slice(x)
            .slice(g)
            .output(dx)
            .output(out)
            .int(width)?
            .launch((rows, width.div_ceil(ROW.0 * PACK)), ROW)
    }

    fn logits(&self, x: &CudaSlice<T>, head: Matrix<'a, T>) -> Result<CudaSlice<f32>> {
        let rows = x.len() / head.k;
        let mut logits = self.room(rows * head.n)?;
        self.product(At::new(x, 0), rows, head, 0.0, &mut logits)?;
        Ok(logits)
    }

    fn log_probs(
        &self,
        x: &CudaSlice<T>,
        head: Matrix<'a, T>,
        places: &Places,
        temperature: f32,
    ) -> Result<(Tensor, Tensor)> {
        let count = places.target_count;
        let log_prob = self.room::<f32>(count)?;
        let entropy = self.room::<f32>(count)?;
        for (first, rows) in chunks(count, logit_rows(head.n)) {
            let mut logits = self.room::<f32>(rows * head.n)?;
            self.product(At::new(x, first * head.k), rows, head, 0.0, &mut logits)?;
            Kernel::new(&self.device, "log_probs")
                .slice(&logits)
                .at(At::new(&places.targets, first))
                .at(At::new(&log_prob, first))
                .at(At::new(&entropy, first))
                .int(head.n)?
                .float(1.0 / temperature)
                .launch((rows, 1), LONG_ROW)?;
        }
        let shape = [count];
        Ok((
            tensor(log_prob, &shape, &self.device),
            tensor(entropy, &shape, &self.device),
        ))
    }

    fn log_probs_backward(
        &self,
        x: &CudaSlice<T>,
        head: Matrix<'a, T>,
        frozen: bool,
        places: &Places,
        temperature: f32,
        d_log_probs: &Tensor,
        d_entropy: Option<&Tensor>,
    ) -> Result<(CudaSlice<T>, Option<CudaSlice<f32>>)> {
        let count = places.target_count;
        let d_log_probs = d_log_probs.contiguous()?;
        let d_entropy = match d_entropy {
            Some(d) => d.contiguous()?,
            None => d_log_probs.zeros_like()?,
        };
        let (of_log_probs, of_entropy) =
            (address::<f32>(&d_log_probs)?, address::<f32>(&d_entropy)?);
        let dx = self.room::<T>(x.len())?;
        let dw = if frozen {
            None
        } else {
            Some(self.device.alloc_zeros::<f32>(head.k * head.stride)?)
        };
        for (first, rows) in chunks(count, logit_rows(head.n)) {
            let mut logits = self.room::<f32>(rows * head.n)?;
            self.product(At::new(x, first * head.k), rows, head, 0.0, &mut logits)?;
            let mut d = self.room::<T>(rows * head.n)?;
            self.kernel("log_probs_backward")
                .slice(&logits)
                .at(At::new(&places.targets, first))
                .at(of_log_probs.after(first))
                .at(of_entropy.after(first))
                .output(&mut d)
                .int(head.n)?
                .float(1.0 / temperature)
                .launch((rows, 1), LONG_ROW)?;
            let of_logits = Factor::new(At::new(&d, 0), head.n);
            Product::new(rows, head.k, head.n).run(
                &self.device,
                of_logits,
                head.factor().transposed(),
                Factor::new(At::new(&dx, first * head.k), head.k),
            )?;
            let Some(dw) = &dw else { continue };
            Product {
                keep: 1.0,
                ..Product::new(head.k, head.n, rows)
            }
            .run(
                &self.device,
                Factor::new(At::new(x, first * head.k), head.k).transposed(),
                of_logits,
                Factor::new(At::new(dw, 0), head.stride),
            )?;
        }
        Ok((dx, dw))
    }
}

impl<T: Number> Cuda<'_, T> {
    fn block(&self, places: &Places, first: usize, rows: usize) -> Block {
        Block {
            batch: places.sequences * self.heads.query,
            longest: places.longest,
            dim: self.heads.dim,
            first,
            rows,
            keys: first + rows,
        }
    }
}

/// Logits of a row, at most, from which the device draws: the square of `PARTS` in `kernels.cu`.
const MOST_LOGITS: usize = 1 << 20;

/// True if the device can make all of these draws.
pub(crate) fn can_sample<'a>(vocabulary: usize, mut draws: impl Iterator<Item = &'a Draw>) -> bool {
    vocabulary <= MOST_LOGITS && draws.all(|draw| !draw.sampler.params().truncates())
}

/// Draws on the device: what they are made from, and what was drawn.
pub(crate) struct DeviceDraws {
    scales: CudaSlice<f32>,
    uniforms: CudaSlice<f64>,
    ids: CudaSlice<u32>,
    log_probs: CudaSlice<f32>,
}

impl DeviceDraws {
    /// Sets the draws of all rows.
    pub(crate) fn set(&mut self, device: &CudaDevice, draws: &[Option<Draw>]) -> Result<()> {
        let (scales, uniforms): (Vec<f32>, Vec<f64>) = draws
            .iter()
            .map(|draw| Draw::scale_and_uniform(draw.as_ref()))
            .unzip();
        device.memcpy_htod(&scales, &mut self.scales)?;
        device.memcpy_htod(&uniforms, &mut self.uniforms)
    }

    /// The token drawn in each row: `None` where a logit is not a number.
    pub(crate) fn drawn(&self, device: &CudaDevice) -> Result<Vec<Option<Sampled>>> {
        let drawn = device.clone_dtoh(&self.ids)?.into_iter();
        let drawn = drawn.zip(device.clone_dtoh(&self.log_probs)?);
        Ok(drawn
            .map(|(id, log_prob)| (id != u32::MAX).then_some(Sampled { id, log_prob }))
            .collect())
    }
}

/// Decoding.
impl<T: Number> Cuda<'_, T> {
    /// Draws a token of each row of logits `[rows, vocabulary]`: `None` where a logit is not a number. Rows without a draw
    /// get any token.
    pub(crate) fn sample(
        &self,
        logits: &CudaSlice<f32>,
        draws: &[Option<Draw>],
    ) -> Result<Vec<Option<Sampled>>> {
        let mut on_device = self.room_for_draws(draws.len())?;
        on_device.set(&self.device, draws)?;
        self.draw(logits, &mut on_device)?;
        on_device.drawn(&self.device)
    }

    /// Room for the draws of some rows.
    pub(crate) fn room_for_draws(&self, rows: usize) -> Result<DeviceDraws> {
        Ok(DeviceDraws {
            scales: self.room(rows)?,
            uniforms: self.room(rows)?,
            ids: self.room(rows)?,
            log_probs: self.room(rows)?,
        })
    }

    /// Makes draws from logits `[rows, vocabulary]`.
    pub(crate) fn draw(&self, logits: &CudaSlice<f32>, draws: &mut DeviceDraws) -> Result<()> {
        let rows = draws.ids.len();
        Kernel::new(&self.device, "sample")
            .slice(logits)
            .slice(&draws.scales)
            .slice(&draws.uniforms)
            .output(&mut draws.ids)
            .output(&mut draws.log_probs)
            .int(logits.len() / rows)?
            .launch((rows, 1), LONG_ROW)
    }

    /// Writes the keys and values of packed rows into the cache, and returns the queries, `[rows, query heads, dim]`.
    pub(crate) fn cache_heads(
        &self,
        packed: &CudaSlice<T>,
        [cells, positions]: [&CudaSlice<u32>; 2],
        [q_norm, k_norm]: [&CudaSlice<f32>; 2],
        keys: &mut CudaSlice<T>,
        values: &mut CudaSlice<T>,
    ) -> Result<CudaSlice<T>> {
        let (heads, rows) = (&self.heads, cells.len());
        let all = heads.query + 2 * heads.key_value;
        let mut q = self.room(rows * heads.out_width())?;
        self.kernel("cache_heads")
            .slice(packed)
            .slice(cells)
            .slice(positions)
            .slice(q_norm)
            .slice(k_norm)
            .slice(&self.table.cos)
            .slice(&self.table.sin)
            .output(&mut q)
            .output(keys)
            .output(values)
            .int(heads.query)?
            .int(heads.key_value)?
            .int(heads.dim / 2)?
            .float(self.eps)
            .launch((rows, all.div_ceil(HEADS)), (HEADS * WARP, 1))?;
        Ok(q)
    }

    /// Attention of rows over the cache. The pages of a row's sequence start at `starts` of the row in `tables`.
    pub(crate) fn attend(
        &self,
        q: &CudaSlice<T>,
        positions: &CudaSlice<u32>,
        [starts, tables]: [&CudaSlice<u32>; 2],
        keys: &CudaSlice<T>,
        values: &CudaSlice<T>,
        out: &mut CudaSlice<T>,
    ) -> Result<()> {
        let heads = &self.heads;
        let per_lane = heads.dim.div_ceil(WARP).next_power_of_two();
        self.kernel(&format!("attend_{per_lane}"))
            .slice(q)
            .slice(positions)
            .slice(starts)
            .slice(tables)
            .slice(keys)
            .slice(values)
            .output(out)
            .int(heads.query)?
            .int(heads.key_value)?
            .int(heads.dim)?
            .float(heads.scale())
            .launch((positions.len(), heads.query), (ATTENDING * WARP, 1))
    }
}

/// Copies `count` numbers of a slice from one place of it to another. The two do not overlap.
pub(crate) fn copy_within<T>(
    slice: &CudaSlice<T>,
    from: usize,
    to: usize,
    count: usize,
) -> Result<()> {
    let (source, target) = (At::new(slice, from).address(), At::new(slice, to).address());
    let stream = slice.stream().cu_stream();
    // SAFETY: both ranges are in the slice, and do not overlap.
    unsafe { memcpy_dtod_async(target, source, count * size_of::<T>(), stream) }.w()
}

/// The numbers of a contiguous tensor. It must outlive their use.
fn address<T: Number>(tensor: &Tensor) -> Result<At<T>> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cuda(storage) => Ok(At::new(
            storage.as_cuda_slice::<T>()?,
            layout.start_offset(),
        )),
        _ => Err(Error::msg("a CUDA operator needs a tensor on the device")),
    }
}
