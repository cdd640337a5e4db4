//! A backend that computes nothing, and counts what the CPU or CUDA would allocate.

use std::cell::Cell;
use std::rc::Rc;

use candle_core::{DType, Device, Tensor};

use crate::batch::PackedBatch;
use crate::blocks::{attention_blocks, chunks, logit_rows, padded};
use crate::device::Processor;
use crate::model::Precision;
use crate::ops::attention::{self, Heads};
use crate::ops::{attention_backward, head};
use crate::qwen3::Backend;

/// Bytes of an f32.
pub(super) const F32: u64 = 4;
/// Bytes of a bf16.
pub(super) const BF16: u64 = 2;

/// Bytes of a number in the rows that products read, and in the cache. The CPU rounds what products read as they need it.
pub(super) fn row_bytes(processor: Processor, precision: Precision) -> u64 {
    match (processor, precision) {
        (Processor::Cuda, Precision::Bf16) => BF16,
        _ => F32,
    }
}

/// The bytes of training passes that exist at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassMemory {
    /// Gradients of parameters.
    pub gradients: u64,
    /// Everything else: activations, scratch of operators, logits.
    pub activations: u64,
}

impl PassMemory {
    /// The sum of both.
    pub fn bytes(self) -> u64 {
        self.gradients + self.activations
    }
}

/// The bytes that exist now, and those at the peak of their sum.
#[derive(Debug, Default)]
pub(super) struct Meter {
    live: Cell<PassMemory>,
    peak: Cell<PassMemory>,
}

impl Meter {
    pub(super) fn peak(&self) -> PassMemory {
        self.peak.get()
    }

    fn allocated(&self, bytes: u64, is_gradient: bool) {
        let mut live = self.live.get();
        *of(&mut live, is_gradient) += bytes;
        self.live.set(live);
        if live.bytes() > self.peak.get().bytes() {
            self.peak.set(live);
        }
    }

    fn freed(&self, bytes: u64, is_gradient: bool) {
        let mut live = self.live.get();
        *of(&mut live, is_gradient) -= bytes;
        self.live.set(live);
    }
}

fn of(memory: &mut PassMemory, is_gradient: bool) -> &mut u64 {
    if is_gradient {
        &mut memory.gradients
    } else {
        &mut memory.activations
    }
}

/// A buffer that is counted as long as it lives.
pub(super) struct Buffer {
    len: usize,
    bytes: u64,
    is_gradient: bool,
    meter: Rc<Meter>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.meter.freed(self.bytes, self.is_gradient);
    }
}

/// A weight `[k, n]`, with rows `stride` numbers apart.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) stride: usize,
}

/// The sizes of a batch.
pub(super) struct Places {
    sequences: usize,
    longest: usize,
    targets: usize,
}

/// A backend that computes nothing, and counts what another one would allocate.
pub(super) struct Counting {
    processor: Processor,
    precision: Precision,
    heads: Heads,
    meter: Rc<Meter>,
}

impl Counting {
    /// A backend that counts into `meter`.
    pub(super) fn new(
        processor: Processor,
        precision: Precision,
        heads: Heads,
        meter: Rc<Meter>,
    ) -> Self {
        Self {
            processor,
            precision,
            heads,
            meter,
        }
    }

    fn buffer(&self, len: usize, bytes_each: u64, is_gradient: bool) -> Buffer {
        let bytes = len as u64 * bytes_each;
        self.meter.allocated(bytes, is_gradient);
        Buffer {
            len,
            bytes,
            is_gradient,
            meter: self.meter.clone(),
        }
    }

    /// Numbers in f32.
    fn floats(&self, len: usize) -> Buffer {
        self.buffer(len, F32, false)
    }

    /// Numbers that products read.
    fn operands(&self, len: usize) -> Buffer {
        self.buffer(len, row_bytes(self.processor, self.precision), false)
    }

    /// The rounded copies that a product on the CPU makes of its operands in f32.
    fn rounded(&self, operands: &[usize]) {
        if self.processor == Processor::Cpu && self.precision == Precision::Bf16 {
            let len = operands.iter().sum();
            drop(self.buffer(len, BF16, false));
        }
    }

    /// Queries, keys, values and one more of the padded sequences, as `cuda` splits them.
    fn split(&self, places: &Places) -> [Buffer; 4] {
        let count = places.sequences * padded(places.longest) * self.heads.out_width();
        [(); 4].map(|()| self.operands(count))
    }

    /// Allocates, block by block, the scores of attention on CUDA: `floats` arrays in f32 and as many that products read.
    fn scores(&self, places: &Places, arrays: usize) {
        let batch = places.sequences * self.heads.query;
        for (first, rows) in attention_blocks(batch, padded(places.longest)) {
            let count = batch * rows * (first + rows);
            let _scores: Vec<Buffer> = (0..arrays)
                .flat_map(|_| [self.floats(count), self.operands(count)])
                .collect();
        }
    }

    /// Allocates, chunk by chunk, the logits of the targets. `backward` adds their gradients.
    fn head(&self, head: Matrix, targets: usize, backward: bool) {
        match self.processor {
            Processor::Cpu => {
                let lens = head::scratch_lens(head.n, targets);
                let _scratch = lens.map(|len| self.floats(len));
                let rows = lens[0] / head.n;
                self.rounded(&[rows * head.k, if backward { lens[0] } else { 0 }]);
            }
            Processor::Cuda => {
                for (_, rows) in chunks(targets, logit_rows(head.n)) {
                    let _logits = self.floats(rows * head.n);
                    let _gradients = backward.then(|| self.operands(rows * head.n));
                }
            }
        }
    }
}

type Candle<T> = candle_core::Result<T>;

impl Backend for Counting {
    type Stream = Buffer;
    type Rows = Buffer;
    type Matrix = Matrix;
    type Gain = ();
    type Gradient = Buffer;
    type Indices = usize;
    type Places = Places;
    type Operand<'s>
        = Box<Buffer>
    where
        Self: 's;

    fn places(&self, batch: &PackedBatch) -> Candle<Places> {
        Ok(Places {
            sequences: batch.sequences(),
            longest: batch.longest(),
            targets: batch.targets().len(),
        })
    }

    fn indices(&self, numbers: &[u32]) -> Candle<usize> {
        Ok(numbers.len())
    }

    fn stream(&self, tokens: usize, width: usize) -> Candle<Buffer> {
        Ok(self.floats(tokens * width))
    }

    fn rows(&self, tokens: usize, width: usize) -> Candle<Buffer> {
        Ok(self.operands(tokens * width))
    }

    fn gradient(&self, len: usize) -> Candle<Buffer> {
        Ok(self.buffer(len, F32, true))
    }

    fn copy(&self, stream: &Buffer) -> Candle<Buffer> {
        Ok(self.floats(stream.len))
    }

    fn operand<'s>(&'s self, stream: &'s Buffer) -> Candle<Box<Buffer>> {
        // The CPU's products read the stream itself.
        let len = match self.processor {
            Processor::Cpu => 0,
            Processor::Cuda => stream.len,
        };
        Ok(Box::new(self.operands(len)))
    }

    fn add(&self, _: &mut Buffer, _: &Buffer) -> Candle<()> {
        Ok(())
    }

    fn rows_tensor(&self, rows: &Buffer, _: usize) -> Candle<Tensor> {
        let _copy = self.floats(rows.len);
        Tensor::zeros((), DType::F32, &Device::Cpu)
    }

    fn add_to_rows(&self, _: &mut Buffer, _: &Tensor) -> Candle<()> {
        Ok(())
    }

    fn tensor(&self, _: Buffer, _: &[usize]) -> Candle<Tensor> {
        // At the end of a pass, after the peak.
        Tensor::zeros((), DType::F32, &Device::Cpu)
    }

    fn embed(&self, _: Matrix, _: &usize, _: &mut Buffer) -> Candle<()> {
        Ok(())
    }

    fn embed_backward(&self, _: &Buffer, _: &Places, _: &mut Buffer) -> Candle<()> {
        Ok(())
    }

    fn pick(&self, _: &Buffer, rows: &usize, width: usize) -> Candle<Buffer> {
        Ok(self.floats(rows * width))
    }

    fn pick_backward(&self, _: &Buffer, _: &usize, _: usize, _: &mut Buffer) -> Candle<()> {
        Ok(())
    }

    fn rms_norm(&self, _: &Buffer, (): (), _: &mut Buffer) -> Candle<()> {
        Ok(())
    }

    fn rms_norm_backward(
        &self,
        _: &Buffer,
        (): (),
        _: &Buffer,
        _: &mut Buffer,
        _: &mut Buffer,
    ) -> Candle<()> {
        Ok(())
    }

    fn linear(&self, x: &Buffer, _: Matrix, _: &mut Buffer) -> Candle<()> {
        self.rounded(&[x.len]);
        Ok(())
    }

    fn linear_add(&self, x: &Buffer, _: Matrix, _: &mut Buffer) -> Candle<()> {
        self.rounded(&[x.len]);
        Ok(())
    }

    fn linear_add_rows(&self, x: &Buffer, _: Matrix, _: &mut Buffer) -> Candle<()> {
        self.rounded(&[x.len]);
        Ok(())
    }

    fn input_gradient(&self, g: &Buffer, _: Matrix, _: &mut Buffer) -> Candle<()> {
        self.rounded(&[g.len]);
        Ok(())
    }

    fn input_gradient_add(&self, g: &Buffer, _: Matrix, _: &mut Buffer) -> Candle<()> {
        self.rounded(&[g.len]);
        Ok(())
    }

    fn weight_gradient(&self, x: &Buffer, g: &Buffer, w: Matrix) -> Candle<Buffer> {
        let gradient = self.gradient(w.k * w.n);
        self.rounded(&[x.len, g.len]);
        gradient
    }

    fn attention(&self, places: &Places, _: &Buffer, _: [(); 2], _: &mut Buffer) -> Candle<()> {
        match self.processor {
            Processor::Cpu => {
                let _scratch = self.floats(attention::scratch_len(&self.heads, places.longest));
            }
            Processor::Cuda => {
                let _split = self.split(places);
                self.scores(places, 1);
            }
        }
        Ok(())
    }

    fn attention_backward(
        &self,
        places: &Places,
        _: &Buffer,
        _: [(); 2],
        _: &Buffer,
        _: &mut Buffer,
        _: [&mut Buffer; 2],
    ) -> Candle<()> {
        match self.processor {
            Processor::Cpu => {
                let len = attention_backward::scratch_len(&self.heads, places.longest);
                let _scratch = self.floats(len);
            }
            Processor::Cuda => {
                let split = self.split(places);
                // Gradients of queries, keys and values.
                let _gradients = [(); 3].map(|()| self.floats(split[0].len));
                self.scores(places, 2);
            }
        }
        Ok(())
    }

    fn swiglu(&self, _: &Buffer, _: usize, _: &mut Buffer) -> Candle<()> {
        Ok(())
    }

    fn swiglu_backward(
        &self,
        _: &Buffer,
        _: usize,
        _: &Buffer,
        _: &mut Buffer,
        _: &mut Buffer,
    ) -> Candle<()> {
        Ok(())
    }

    fn logits(&self, x: &Buffer, head: Matrix) -> Candle<Buffer> {
        Ok(self.floats(x.len / head.k * head.n))
    }

    fn log_probs(
        &self,
        _: &Buffer,
        head: Matrix,
        places: &Places,
        _: f32,
    ) -> Candle<(Tensor, Tensor)> {
        self.head(head, places.targets, false);
        let zeros = || Tensor::zeros(places.targets, DType::F32, &Device::Cpu);
        Ok((zeros()?, zeros()?))
    }

    fn log_probs_backward(
        &self,
        x: &Buffer,
        head: Matrix,
        frozen: bool,
        places: &Places,
        _: f32,
        _: &Tensor,
        _: Option<&Tensor>,
    ) -> Candle<(Buffer, Option<Buffer>)> {
        let dx = self.operands(x.len);
        let dw = (!frozen).then(|| self.gradient(head.k * head.stride));
        let dw = dw.transpose()?;
        self.head(head, places.targets, true);
        Ok((dx, dw))
    }
}
