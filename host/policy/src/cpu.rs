//! The operators on the CPU, on slices of f32. Only the weights of products may be in bf16. Training and decoding share
//! all of it.

use std::ops::Deref;
use std::sync::Arc;

use candle_core::{CpuStorage, Device, Layout, Result, Storage, Tensor, bail};

use crate::batch::PackedBatch;
use crate::lora::Adapters;
use crate::model::Model;
use crate::ops::attention::{Attention, Heads, attention_into};
use crate::ops::attention_backward::attention_backward_into;
use crate::ops::embedding::{embed_backward_into, embed_into};
use crate::ops::head::Head;
use crate::ops::linear::{input_gradient_into, linear_by_threads, weight_gradient_into};
use crate::ops::norm::{rms_norm_backward_into, rms_norm_into};
use crate::ops::numbers;
use crate::ops::rotary::RotaryTable;
use crate::ops::swiglu::{swiglu_backward_into, swiglu_into};
use crate::ops::weight::{Numbers, Weight};
use crate::qwen3::{Backend, Network};

/// The CPU's operators, for weights that are locked for `'a`.
pub(crate) struct Cpu<'a> {
    pub(crate) heads: Heads,
    pub(crate) table: &'a Arc<RotaryTable>,
    pub(crate) eps: f32,
    /// Threads of the current pool that share a product of few rows.
    pub(crate) threads: usize,
}

/// A model's network on the CPU, from read locks on its weights.
pub(crate) fn network<'a, G: Deref<Target = Storage>>(
    model: &'a Model,
    locked: &'a [(G, &Layout)],
) -> Result<Network<Cpu<'a>>> {
    let on_cpu = |index: usize| -> Result<(&'a CpuStorage, &'a Layout)> {
        let (storage, layout) = &locked[index];
        match &**storage {
            Storage::Cpu(storage) => Ok((storage, *layout)),
            _ => bail!("weights are not on the CPU"),
        }
    };
    let gain = |index: usize| on_cpu(index).and_then(|(storage, layout)| numbers(storage, layout));
    let backend = Cpu {
        heads: model.heads(),
        table: model.table(),
        eps: model.eps(),
        threads: 1,
    };
    let matrix = |index: usize, [k, n]: [usize; 2], columns| -> Result<Weight<'a>> {
        let (storage, layout) = on_cpu(index)?;
        Ok(Weight::new(Numbers::of(storage, layout)?, k, n).first_columns(columns))
    };
    let adapters = model.adapters().map(Adapters::layout);
    let config = model.config();
    Network::new(config, model.vocabulary(), adapters, backend, gain, matrix)
}

/// A batch, and its sequences for attention.
pub(crate) struct Places {
    batch: PackedBatch,
    attention: Attention,
}

impl<'a> Backend for Cpu<'a> {
    type Stream = Vec<f32>;
    type Rows = Vec<f32>;
    type Matrix = Weight<'a>;
    type Gain = &'a [f32];
    type Gradient = Vec<f32>;
    type Indices = Vec<u32>;
    type Places = Places;
    type Operand<'s>
        = &'s Vec<f32>
    where
        Self: 's;

    fn places(&self, batch: &PackedBatch) -> Result<Places> {
        Ok(Places {
            batch: batch.clone(),
            attention: Attention {
                heads: self.heads,
                spans: batch.spans.clone(),
                table: self.table.clone(),
            },
        })
    }

    fn indices(&self, numbers: &[u32]) -> Result<Vec<u32>> {
        Ok(numbers.to_vec())
    }

    fn stream(&self, tokens: usize, width: usize) -> Result<Vec<f32>> {
        Ok(vec![0.0; tokens * width])
    }

    fn rows(&self, tokens: usize, width: usize) -> Result<Vec<f32>> {
        Ok(vec![0.0; tokens * width])
    }

    fn gradient(&self, len: usize) -> Result<Vec<f32>> {
        Ok(vec![0.0; len])
    }

    fn copy(&self, stream: &Vec<f32>) -> Result<Vec<f32>> {
        Ok(stream.clone())
    }

    fn operand<'s>(&'s self, stream: &'s Vec<f32>) -> Result<&'s Vec<f32>> {
        Ok(stream)
    }

    fn add(&self, sum: &mut Vec<f32>, part: &Vec<f32>) -> Result<()> {
        for (sum, part) in sum.iter_mut().zip(part) {
            *sum += part;
        }
        Ok(())
    }

    fn rows_tensor(&self, rows: &Vec<f32>, width: usize) -> Result<Tensor> {
        Tensor::from_vec(rows.clone(), (rows.len() / width, width), &Device::Cpu)
    }

    fn add_to_rows(&self, rows: &mut Vec<f32>, part: &Tensor) -> Result<()> {
        self.add(rows, &part.flatten_all()?.to_vec1()?)
    }

    fn tensor(&self, gradient: Vec<f32>, shape: &[usize]) -> Result<Tensor> {
        Tensor::from_vec(gradient, shape, &Device::Cpu)
    }

    fn embed(&self, w: Weight<'a>, ids: &Vec<u32>, out: &mut Vec<f32>) -> Result<()> {
        match w.numbers {
            Numbers::F32(data) => embed_into(data, w.stride, ids, out),
            Numbers::Bf16(data) => embed_into(data, w.stride, ids, out),
        }
        Ok(())
    }

    fn embed_backward(&self, d: &Vec<f32>, places: &Places, dw: &mut Vec<f32>) -> Result<()> {
        let ids = &places.batch.ids;
        let vocabulary = dw.len() * ids.len() / d.len();
        embed_backward_into(d, vocabulary, ids, dw);
        Ok(())
    }

    fn pick(&self, x: &Vec<f32>, rows: &Vec<u32>, width: usize) -> Result<Vec<f32>> {
        let rows = rows.iter();
        let picked: Vec<&[f32]> = rows
            .map(|row| &x[*row as usize * width..][..width])
            .collect();
        Ok(picked.concat())
    }

    fn pick_backward(
        &self,
        d_picked: &Vec<f32>,
        rows: &Vec<u32>,
        width: usize,
        d: &mut Vec<f32>,
    ) -> Result<()> {
        for (row, d_row) in rows.iter().zip(d_picked.chunks_exact(width)) {
            d[*row as usize * width..][..width].copy_from_slice(d_row);
        }
        Ok(())
    }

    fn rms_norm(&self, x: &Vec<f32>, w: &'a [f32], out: &mut Vec<f32>) -> Result<()> {
        rms_norm_into(x, w, self.eps, out);
        Ok(())
    }

    fn rms_norm_backward(
        &self,
        x: &Vec<f32>,
        w: &'a [f32],
        g: &Vec<f32>,
        dx: &mut Vec<f32>,
        dw: &mut Vec<f32>,
    ) -> Result<()> {
        rms_norm_backward_into(x, w, g, self.eps, dx, dw);
        Ok(())
    }

    fn linear(&self, x: &Vec<f32>, w: Weight<'a>, out: &mut Vec<f32>) -> Result<()> {
        linear_by_threads(x, w, out, false, self.threads);
        Ok(())
    }

    fn linear_add(&self, x: &Vec<f32>, w: Weight<'a>, out: &mut Vec<f32>) -> Result<()> {
        linear_by_threads(x, w, out, true, self.threads);
        Ok(())
    }

    fn linear_add_rows(&self, x: &Vec<f32>, w: Weight<'a>, out: &mut Vec<f32>) -> Result<()> {
        linear_by_threads(x, w, out, true, self.threads);
        Ok(())
    }

    fn input_gradient(&self, g: &Vec<f32>, w: Weight<'a>, dx: &mut Vec<f32>) -> Result<()> {
        input_gradient_into(g, w, dx, false);
        Ok(())
    }

    fn input_gradient_add(&self, g: &Vec<f32>, w: Weight<'a>, dx: &mut Vec<f32>) -> Result<()> {
        input_gradient_into(g, w, dx, true);
        Ok(())
    }

    fn weight_gradient(&self, x: &Vec<f32>, g: &Vec<f32>, w: Weight<'a>) -> Result<Vec<f32>> {
        let mut dw = vec![0.0; w.k * w.n];
        weight_gradient_into(x, g, w, &mut dw, false);
        Ok(dw)
    }

    fn attention(
        &self,
        places: &Places,
        packed: &Vec<f32>,
        [q_norm, k_norm]: [&'a [f32]; 2],
        out: &mut Vec<f32>,
    ) -> Result<()> {
        attention_into(&places.attention, packed, q_norm, k_norm, out);
        Ok(())
    }

    fn attention_backward(
        &self,
        places: &Places,
        packed: &Vec<f32>,
        [q_norm, k_norm]: [&'a [f32]; 2],
        g: &Vec<f32>,
        d_packed: &mut Vec<f32>,
        [d_q_norm, d_k_norm]: [&mut Vec<f32>; 2],
    ) -> Result<()> {
        d_packed.fill(0.0);
        attention_backward_into(
            &places.attention,
            packed,
            q_norm,
            k_norm,
            g,
            d_packed,
            d_q_norm,
            d_k_norm,
        );
        Ok(())
    }

    fn swiglu(&self, x: &Vec<f32>, width: usize, out: &mut Vec<f32>) -> Result<()> {
        swiglu_into(x, width, out);
        Ok(())
    }

    fn swiglu_backward(
        &self,
        x: &Vec<f32>,
        width: usize,
        g: &Vec<f32>,
        dx: &mut Vec<f32>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        swiglu_backward_into(x, width, g, dx, out);
        Ok(())
    }

    fn logits(&self, x: &Vec<f32>, head: Weight<'a>) -> Result<Vec<f32>> {
        let mut logits = vec![0.0; x.len() / head.k * head.n];
        linear_by_threads(x, head, &mut logits, false, self.threads);
        Ok(logits)
    }

    fn log_probs(
        &self,
        x: &Vec<f32>,
        w: Weight<'a>,
        places: &Places,
        temperature: f32,
    ) -> Result<(Tensor, Tensor)> {
        let targets = &places.batch.targets;
        let (log_probs, entropy) = Head { w, temperature }.forward(x, targets);
        let tensor = |numbers| Tensor::from_vec(numbers, targets.len(), &Device::Cpu);
        Ok((tensor(log_probs)?, tensor(entropy)?))
    }

    fn log_probs_backward(
        &self,
        x: &Vec<f32>,
        w: Weight<'a>,
        frozen: bool,
        places: &Places,
        temperature: f32,
        d_log_probs: &Tensor,
        d_entropy: Option<&Tensor>,
    ) -> Result<(Vec<f32>, Option<Vec<f32>>)> {
        let d_log_probs = d_log_probs.to_vec1::<f32>()?;
        let d_entropy = d_entropy.map(Tensor::to_vec1::<f32>).transpose()?;
        let targets = &places.batch.targets;
        let head = Head { w, temperature };
        Ok(head.backward(frozen, x, targets, &d_log_probs, d_entropy.as_deref()))
    }
}
