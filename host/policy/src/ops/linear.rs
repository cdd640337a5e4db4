//! The matrix product: `y = x w`, with the weight stored as `[in, out]`.
//!
//! Training and decoding call one function, [`linear_into`], and it gives a row the same bits whatever rows are beside
//! it. Every element of `y` is one chain of fused multiply-adds over `k` in order, cut every 512. Products of few rows are
//! computed in [`few_rows`](super::few_rows), and those with a weight in bf16 in [`bf16`](super::bf16). For the others, the
//! `gemm` crate computes the same chains, if it takes its general kernel and does not cut `k` differently. It takes another
//! kernel for one row, for few columns, for a `k` of 1 or 2, and for a small result of two operands that are contiguous
//! along `k`. It cuts `k` by the processor's cache sizes, never below 512. So `gemm` gets no such product, and `k` is cut
//! here.

#![allow(unsafe_code)] // gemm takes pointers and strides; each call stands behind an assertion on lengths.

use candle_core::{Result, Tensor};

use super::bf16::{product_in_bf16, rounded};
use super::few_rows::few_rows_into;
use super::weight::{Factor, K_BLOCK, Numbers, Weight};

/// Rows of a product that are too few for `gemm` to be fast.
const FEW_ROWS: usize = 64;
/// Columns from which on `gemm` computes each element as here.
const LEAST_COLUMNS: usize = 8;
/// Length of a piece of `k` from which on `gemm` computes each element as here.
const LEAST_DEPTH: usize = 3;

/// Computes `out[m, n]` (rows `out_stride` apart) `= a[m, k] b[k, n]`, or `+=`. One thread, in an order that depends on
/// the shapes and strides only.
pub(super) fn product(
    (m, n, k): (usize, usize, usize),
    a: Factor<'_>,
    b: Factor<'_>,
    out: &mut [f32],
    out_stride: usize,
    accumulate: bool,
) {
    assert!(
        a.covers(m, k) && b.covers(k, n),
        "operand too short for {m}x{n}x{k}"
    );
    assert!(m == 0 || (m - 1) * out_stride + n <= out.len() && n <= out_stride);
    // SAFETY: the assertions above keep every element inside its slice, and `out` is borrowed exclusively.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Computes `out[rows, n] = x[rows, k] w[k, n]`, or `+=` if `accumulate` is true. Every row's bits depend on that row
/// and `w` alone.
pub(crate) fn linear_into(x: &[f32], w: Weight<'_>, out: &mut [f32], accumulate: bool) {
    linear_by_threads(x, w, out, accumulate, 1);
}

/// [`linear_into`], with up to `threads` threads of the current pool if there are few rows, or if `w` is in bf16.
pub(crate) fn linear_by_threads(
    x: &[f32],
    w: Weight<'_>,
    out: &mut [f32],
    accumulate: bool,
    threads: usize,
) {
    let (k, n) = (w.k, w.n);
    assert!(k > 0 && n > 0 && w.stride >= n && x.len().is_multiple_of(k));
    let rows = x.len() / k;
    assert_eq!(out.len(), rows * n);
    let w = match w.numbers {
        Numbers::F32(data) => Factor::rows(data, w.stride),
        Numbers::Bf16(data) => {
            let (x, w) = (&rounded(x), Factor::rows(data, w.stride));
            let x = Factor::rows(x, k);
            return product_in_bf16((rows, n, k), x, w, out, n, accumulate, threads);
        }
    };
    let last_piece = (k - 1) % K_BLOCK + 1;
    if rows <= FEW_ROWS || n < LEAST_COLUMNS || last_piece < LEAST_DEPTH {
        let x = x.chunks(FEW_ROWS * k);
        for (x, out) in x.zip(out.chunks_mut(FEW_ROWS * n)) {
            few_rows_into(x, w, (k, n), out, accumulate, threads);
        }
        return;
    }
    for from in (0..k).step_by(K_BLOCK) {
        product(
            (rows, n, K_BLOCK.min(k - from)),
            Factor::rows(&x[from..], k),
            Factor::rows(&w.data[from * w.row_stride..], w.row_stride),
            out,
            n,
            accumulate || from > 0,
        );
    }
}

/// Computes `dx[rows, k] = g[rows, n] wᵀ`, or `+=`.
pub(crate) fn input_gradient_into(g: &[f32], w: Weight<'_>, dx: &mut [f32], accumulate: bool) {
    assert_eq!(g.len() / w.n, dx.len() / w.k);
    let size = (g.len() / w.n, w.k, w.n);
    match w.numbers {
        Numbers::F32(data) => {
            let (g, w) = (Factor::rows(g, w.n), Factor::transposed(data, w.stride));
            product(size, g, w, dx, size.1, accumulate);
        }
        Numbers::Bf16(data) => {
            let g = &rounded(g);
            let (g, w) = (Factor::rows(g, w.n), Factor::transposed(data, w.stride));
            product_in_bf16(size, g, w, dx, size.1, accumulate, 1);
        }
    }
}

/// Computes `dw[k, n] = x[rows, k]ᵀ g[rows, n]`, or `+=`. Rows of `dw` are as far apart as those of `w`.
pub(crate) fn weight_gradient_into(
    x: &[f32],
    g: &[f32],
    w: Weight<'_>,
    dw: &mut [f32],
    accumulate: bool,
) {
    assert_eq!(g.len() / w.n, x.len() / w.k);
    let size = (w.k, w.n, x.len() / w.k);
    match w.numbers {
        Numbers::F32(_) => {
            let (x, g) = (Factor::transposed(x, w.k), Factor::rows(g, w.n));
            product(size, x, g, dw, w.stride, accumulate);
        }
        Numbers::Bf16(_) => {
            let (x, g) = (&rounded(x), &rounded(g));
            let (x, g) = (Factor::transposed(x, w.k), Factor::rows(g, w.n));
            product_in_bf16(size, x, g, dw, w.stride, accumulate, 1);
        }
    }
}

/// The twin of [`linear_into`] in candle's operators, for x `[rows, in]` and w `[in, out]`.
pub(crate) fn plain_linear(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    x.matmul(w)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlf_random::{Key, Purpose};

    fn random(name: &str, n: usize) -> Vec<f32> {
        let key = Key::new(7, Purpose::Test).named(name);
        (0..n as u64)
            .map(|i| (key.uniform(i) * 4.0 - 2.0) as f32)
            .collect()
    }

    /// (k, n) of every product in a model, its head with the given vocabulary included.
    fn shapes(
        hidden: usize,
        heads: usize,
        kv: usize,
        dim: usize,
        inner: usize,
        vocabulary: usize,
    ) -> Vec<(usize, usize)> {
        vec![
            (hidden, (heads + 2 * kv) * dim),
            (heads * dim, hidden),
            (hidden, 2 * inner),
            (inner, hidden),
            (hidden, vocabulary),
        ]
    }

    fn check(k: usize, n: usize, most: usize, counts: &[usize]) {
        let w = random("w", k * n);
        check_weight(Weight::f32(&w, k, n), most, counts);
        let w = rounded(&w);
        check_weight(Weight::new(Numbers::Bf16(&w), k, n), most, counts);
    }

    fn check_weight(w: Weight<'_>, most: usize, counts: &[usize]) {
        let (k, n) = (w.k, w.n);
        let x = random("x", most * k);
        let start = random("start", most * n);
        for accumulate in [false, true] {
            let mut all = start.clone();
            linear_into(&x, w, &mut all, accumulate);
            for &rows in counts {
                // From the top and from the bottom, so that rows are seen at other places too.
                for first in [0, most - rows] {
                    let mut some = start[first * n..(first + rows) * n].to_vec();
                    linear_into(&x[first * k..(first + rows) * k], w, &mut some, accumulate);
                    let expected = &all[first * n..(first + rows) * n];
                    let same = some
                        .iter()
                        .zip(expected)
                        .all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(
                        same,
                        "k={k} n={n}: rows {first}..{} alone differ from {most} together",
                        first + rows
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_among_any_number_of_rows_in_small_models() {
        let all: Vec<usize> = (1..=300).collect();
        // The quickstart's shape with vocabularies around it, the next size, and heads of a few columns.
        let mut small = shapes(96, 4, 2, 24, 256, 421);
        small.extend([
            (96, 400),
            (96, 461),
            (96, 509),
            (96, 1),
            (96, 7),
            (128, 8),
            (128, 9),
        ]);
        small.extend(shapes(128, 4, 2, 32, 384, 512));
        // Adapters of the quickstart's queries, keys and values, from rank 1 to one that is cut.
        for rank in [1, 2, 3, 8, 16, 48, 513, 514] {
            small.extend([(96, rank), (rank, 192)]);
        }
        for (k, n) in small {
            check(k, n, 300, &all);
        }
    }

    #[test]
    fn a_row_has_the_same_bits_among_any_number_of_rows_in_qwen3_0_6b() {
        let numbers: Vec<usize> = (1..=48).chain((49..=300).step_by(9)).collect();
        let mut products = shapes(1024, 16, 8, 128, 3072, 2048);
        products.push((1024, 1));
        for (k, n) in products {
            check(k, n, 300, &numbers);
        }
        // The head itself: 151,936 columns, a few rows.
        check(1024, 151_936, 5, &[1, 2, 3, 4]);
    }

    #[test]
    fn fewer_columns_of_a_weight_are_the_same_numbers() {
        let (k, n) = (96, 461);
        let (x, w) = (random("x", 20 * k), random("w", k * n));
        let half = rounded(&w);
        for w in [Numbers::F32(&w), Numbers::Bf16(&half)] {
            let w = Weight::new(w, k, n);
            let mut whole = vec![0.0; 20 * n];
            linear_into(&x, w, &mut whole, false);
            for columns in [3, 8, 100, 455] {
                let mut some = vec![0.0; 20 * columns];
                linear_into(&x, w.first_columns(columns), &mut some, false);
                for (some, whole) in some.chunks_exact(columns).zip(whole.chunks_exact(n)) {
                    let mut pairs = some.iter().zip(whole);
                    assert!(pairs.all(|(a, b)| a.to_bits() == b.to_bits()), "{columns}");
                }
            }
        }
    }

    #[test]
    fn gradients_of_a_weight_in_bf16_with_fewer_columns_are_those_of_rounded_numbers() {
        let (rows, k, n, columns) = (7, 40, 61, 33);
        let (x, g) = (random("x", rows * k), random("g", rows * columns));
        let numbers = rounded(&random("w", k * n));
        let w = Weight::new(Numbers::Bf16(&numbers), k, n).first_columns(columns);
        let exact =
            |numbers: &[f32]| -> Vec<f64> { rounded(numbers).into_iter().map(f64::from).collect() };
        let (x64, g64) = (exact(&x), exact(&g));
        let (mut dx, mut dw) = (vec![0.0; rows * k], vec![0.0; k * n]);
        input_gradient_into(&g, w, &mut dx, false);
        weight_gradient_into(&x, &g, w, &mut dw, false);
        for row in 0..rows {
            for i in 0..k {
                let term = |c: usize| g64[row * columns + c] * f64::from(numbers[i * n + c]);
                let sum: f64 = (0..columns).map(term).sum();
                assert!((f64::from(dx[row * k + i]) - sum).abs() < 1e-4, "{row} {i}");
            }
        }
        for i in 0..k {
            for c in 0..n {
                let term = |row: usize| x64[row * k + i] * g64[row * columns + c];
                let wanted: f64 = if c < columns {
                    (0..rows).map(term).sum()
                } else {
                    0.0
                };
                assert!((f64::from(dw[i * n + c]) - wanted).abs() < 1e-4, "{i} {c}");
            }
        }
    }

    #[test]
    fn threads_that_share_a_product_compute_the_same_bits() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        let pool = pool.expect("three threads");
        let (rows, k) = (FEW_ROWS, 700);
        for n in [1, 40, 200, 1000] {
            let (x, w) = (random("x", rows * k), random("w", k * n));
            let start = random("start", rows * n);
            let half = rounded(&w);
            for w in [Numbers::F32(&w), Numbers::Bf16(&half)] {
                let w = Weight::new(w, k, n);
                let (mut alone, mut shared) = (start.clone(), start.clone());
                linear_into(&x, w, &mut alone, true);
                pool.install(|| linear_by_threads(&x, w, &mut shared, true, 3));
                assert!(
                    (alone.iter().zip(&shared)).all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{n}"
                );
            }
        }
    }

    #[test]
    fn it_is_the_matrix_product() {
        let (rows, k, n) = (5, 1100, 12);
        let (x, w) = (random("x", rows * k), random("w", k * n));
        let mut out = vec![0.0; rows * n];
        linear_into(&x, Weight::f32(&w, k, n), &mut out, false);
        for r in 0..rows {
            for c in 0..n {
                let exact: f64 = (0..k)
                    .map(|i| f64::from(x[r * k + i]) * f64::from(w[i * n + c]))
                    .sum();
                assert!((f64::from(out[r * n + c]) - exact).abs() < 1e-3, "{r} {c}");
            }
        }
    }
}
