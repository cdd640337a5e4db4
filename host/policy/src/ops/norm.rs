//! Root-mean-square norm: `y = x / sqrt(mean(x^2) + eps) * w`, over rows as wide as `w`.

#![allow(unsafe_code)] // Vector loads; lengths are asserted once per call.

use candle_core::{D, Result, Tensor};

use super::by_hand::with_weight;
use crate::simd::{self, Kernel, LANES, Lanes};

/// The sum of squares of a row: sixteen chains of multiply-adds, then a fixed tree.
///
/// # Safety
/// `width` numbers can be read.
#[inline(always)]
pub(super) unsafe fn sum_of_squares<L: Lanes>(l: L, x: *const f32, width: usize) -> f32 {
    let mut sum = l.splat(0.0);
    let whole = width / LANES * LANES;
    // SAFETY: stays below `width`.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            let v = l.load(x.add(i));
            sum = l.fma(v, v, sum);
        }
        if whole < width {
            let v = l.load_first(x.add(whole), width - whole);
            sum = l.fma(v, v, sum);
        }
    }
    l.sum(sum)
}

/// 1 / sqrt(mean + eps).
#[inline(always)]
pub(super) fn inverse_rms(sum_of_squares: f32, width: usize, eps: f32) -> f32 {
    1.0 / (sum_of_squares / width as f32 + eps).sqrt()
}

struct Forward<'a> {
    x: &'a [f32],
    w: &'a [f32],
    out: &'a mut [f32],
    eps: f32,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let width = self.w.len();
        for (x, y) in self
            .x
            .chunks_exact(width)
            .zip(self.out.chunks_exact_mut(width))
        {
            // SAFETY: a row has `width` numbers.
            let inverse = inverse_rms(
                unsafe { sum_of_squares(l, x.as_ptr(), width) },
                width,
                self.eps,
            );
            for ((y, x), w) in y.iter_mut().zip(x).zip(self.w) {
                *y = x * inverse * w;
            }
        }
    }
}

/// Norms every row of `x` into `out`.
pub(crate) fn rms_norm_into(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]) {
    assert!(!w.is_empty() && x.len() == out.len() && x.len().is_multiple_of(w.len()));
    simd::run(Forward { x, w, out, eps });
}

/// Does the backward pass of one row, and adds the gradients to `dx` and `dw`.
#[inline(always)]
pub(super) fn backward_row<L: Lanes>(
    l: L,
    x: &[f32],
    w: &[f32],
    g: &[f32],
    eps: f32,
    dx: &mut [f32],
    dw: &mut [f32],
) {
    let width = w.len();
    assert!(x.len() == width && g.len() == width && dx.len() == width && dw.len() == width);
    let (mut squares, mut products) = (l.splat(0.0), l.splat(0.0));
    for i in (0..width).step_by(LANES) {
        let n = LANES.min(width - i);
        // SAFETY: `i + n <= width`.
        let (vx, vw, vg) = unsafe {
            (
                l.load_up_to(x.as_ptr().add(i), n),
                l.load_up_to(w.as_ptr().add(i), n),
                l.load_up_to(g.as_ptr().add(i), n),
            )
        };
        squares = l.fma(vx, vx, squares);
        products = l.fma(l.mul(vx, vg), vw, products);
    }
    let inverse = inverse_rms(l.sum(squares), width, eps);
    let pull = inverse * inverse * inverse * l.sum(products) / width as f32;
    for i in 0..width {
        dx[i] += inverse * g[i] * w[i] - pull * x[i];
        dw[i] += g[i] * x[i] * inverse;
    }
}

struct Backward<'a> {
    x: &'a [f32],
    w: &'a [f32],
    g: &'a [f32],
    dx: &'a mut [f32],
    dw: &'a mut [f32],
    eps: f32,
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let width = self.w.len();
        let rows = self.x.chunks_exact(width).zip(self.g.chunks_exact(width));
        for ((x, g), dx) in rows.zip(self.dx.chunks_exact_mut(width)) {
            backward_row(l, x, self.w, g, self.eps, dx, self.dw);
        }
    }
}

/// Adds the gradients of every row of `x` and of `w` to `dx` and `dw`.
pub(crate) fn rms_norm_backward_into(
    x: &[f32],
    w: &[f32],
    g: &[f32],
    eps: f32,
    dx: &mut [f32],
    dw: &mut [f32],
) {
    assert!(!w.is_empty() && x.len().is_multiple_of(w.len()) && w.len() == dw.len());
    assert!(x.len() == g.len() && x.len() == dx.len());
    simd::run(Backward {
        x,
        w,
        g,
        dx,
        dw,
        eps,
    });
}

/// The twin of [`rms_norm_into`] in candle's operators, for x `[.., width]` and w `[width]`.
///
/// With n = x / rms(x) and g = dy w, its gradients are dx = (g - n mean(g n)) / rms(x) and dw = sum of dy n over rows.
pub(crate) fn plain_rms_norm(x: &Tensor, w: &Tensor, eps: f32) -> Result<Tensor> {
    let width = w.dim(0)?;
    let shape = x.shape().clone();
    let rows = x.elem_count() / width;
    let x = x.reshape((rows, width))?;
    let (values, weight) = (x.detach(), w.detach());
    let mean = values.sqr()?.mean_keepdim(D::Minus1)?;
    let rms = (mean + f64::from(eps))?.sqrt()?;
    let normed = values.broadcast_div(&rms)?;
    let y = normed.broadcast_mul(&weight)?;
    let y = with_weight(&x, w, y, move |_, dy| {
        let g = dy.broadcast_mul(&weight)?;
        let pull = (&g * &normed)?.mean_keepdim(D::Minus1)?;
        let dx = (g - normed.broadcast_mul(&pull)?)?.broadcast_div(&rms)?;
        // A product with ones adds up rows much faster than candle's sum does.
        let ones = Tensor::ones((1, rows), dy.dtype(), dy.device())?;
        let dw = ones.matmul(&(dy * &normed)?)?.squeeze(0)?;
        Ok((dx, Some(dw)))
    })?;
    y.reshape(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::twin;

    #[test]
    fn it_and_its_gradient_are_those_of_its_twin() {
        for width in [8, 24, 96, 128] {
            let (x, w, g) = (
                twin::random(1, 5 * width),
                twin::random(2, width),
                twin::random(3, 5 * width),
            );
            let mut out = vec![0.0; x.len()];
            rms_norm_into(&x, &w, 1e-6, &mut out);
            let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; width]);
            rms_norm_backward_into(&x, &w, &g, 1e-6, &mut dx, &mut dw);
            twin::check(
                &[(&x, &[5, width]), (&w, &[width])],
                (&g, &out, &[&dx, &dw]),
                |of| plain_rms_norm(&of[0], &of[1], 1e-6),
            );
        }
    }
}
