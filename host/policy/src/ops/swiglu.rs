//! The gated linear unit: `silu(gate) * up`, with gate and up side by side in one row.

#![allow(unsafe_code)] // Vector loads; lengths are asserted once per call.

use candle_core::{D, Result, Tensor};

use crate::simd::{self, Kernel, LANES, Lanes};

struct Forward<'a> {
    x: &'a [f32],
    out: &'a mut [f32],
    width: usize,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let width = self.width;
        let one = l.splat(1.0);
        for (x, y) in self
            .x
            .chunks_exact(2 * width)
            .zip(self.out.chunks_exact_mut(width))
        {
            let (gate, up) = x.split_at(width);
            for i in (0..width).step_by(LANES) {
                let n = LANES.min(width - i);
                // SAFETY: `i + n <= width`, the length of all three.
                unsafe {
                    let (g, u) = (
                        l.load_up_to(gate.as_ptr().add(i), n),
                        l.load_up_to(up.as_ptr().add(i), n),
                    );
                    let sigmoid = l.div(one, l.add(one, l.exp(l.sub(l.splat(0.0), g))));
                    l.store_up_to(y.as_mut_ptr().add(i), n, l.mul(l.mul(g, sigmoid), u));
                }
            }
        }
    }
}

/// Computes `out[rows, width]` from `x[rows, gate | up]`.
pub(crate) fn swiglu_into(x: &[f32], width: usize, out: &mut [f32]) {
    assert!(width > 0 && x.len() == 2 * out.len() && out.len().is_multiple_of(width));
    simd::run(Forward { x, out, width });
}

struct Backward<'a> {
    x: &'a [f32],
    g: &'a [f32],
    dx: &'a mut [f32],
    /// The result of the forward pass again: the next operator's weight gradient needs it.
    out: &'a mut [f32],
    width: usize,
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let width = self.width;
        let one = l.splat(1.0);
        let rows = self
            .x
            .chunks_exact(2 * width)
            .zip(self.g.chunks_exact(width));
        let outs = self
            .dx
            .chunks_exact_mut(2 * width)
            .zip(self.out.chunks_exact_mut(width));
        for ((x, dy), (dx, y)) in rows.zip(outs) {
            let (gate, up) = x.split_at(width);
            let (d_gate, d_up) = dx.split_at_mut(width);
            for i in (0..width).step_by(LANES) {
                let n = LANES.min(width - i);
                // SAFETY: `i + n <= width`, the length of all six.
                unsafe {
                    let (g, u) = (
                        l.load_up_to(gate.as_ptr().add(i), n),
                        l.load_up_to(up.as_ptr().add(i), n),
                    );
                    let dy = l.load_up_to(dy.as_ptr().add(i), n);
                    let sigmoid = l.div(one, l.add(one, l.exp(l.sub(l.splat(0.0), g))));
                    let silu = l.mul(g, sigmoid);
                    // d silu(g) / dg = sigmoid + silu (1 - sigmoid)
                    let slope = l.fma(silu, l.sub(one, sigmoid), sigmoid);
                    l.store_up_to(d_gate.as_mut_ptr().add(i), n, l.mul(l.mul(dy, u), slope));
                    l.store_up_to(d_up.as_mut_ptr().add(i), n, l.mul(dy, silu));
                    l.store_up_to(y.as_mut_ptr().add(i), n, l.mul(silu, u));
                }
            }
        }
    }
}

/// Computes the gradient of `x[rows, gate | up]`, and the result of the forward pass once more: computing it again is
/// cheaper than keeping it.
pub(crate) fn swiglu_backward_into(
    x: &[f32],
    width: usize,
    g: &[f32],
    dx: &mut [f32],
    out: &mut [f32],
) {
    assert!(width > 0 && g.len().is_multiple_of(width) && x.len() == 2 * g.len());
    assert!(dx.len() == x.len() && out.len() == g.len());
    simd::run(Backward {
        x,
        g,
        dx,
        out,
        width,
    });
}

/// The twin of [`swiglu_into`] in candle's operators.
pub(crate) fn plain_swiglu(x: &Tensor) -> Result<Tensor> {
    let width = x.dim(D::Minus1)? / 2;
    x.narrow(D::Minus1, 0, width)?.silu()? * x.narrow(D::Minus1, width, width)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::twin;

    #[test]
    fn it_and_its_gradient_are_those_of_its_twin() {
        for width in [8, 24, 256] {
            let (x, g) = (twin::random(1, 6 * width), twin::random(2, 3 * width));
            let (mut out, mut again, mut dx) =
                (vec![0.0; g.len()], vec![0.0; g.len()], vec![0.0; x.len()]);
            swiglu_into(&x, width, &mut out);
            swiglu_backward_into(&x, width, &g, &mut dx, &mut again);
            assert_eq!(out, again);
            twin::check(&[(&x, &[3, 2 * width])], (&g, &out, &[&dx]), |of| {
                plain_swiglu(&of[0])
            });
        }
    }
}
