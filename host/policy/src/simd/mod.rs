//! Sixteen lanes of f32, on the best instruction set of the processor.
//!
//! A kernel is written once over [`Lanes`] and compiled for AVX-512, for AVX2 with FMA, and for the baseline. Every
//! operation is exactly rounded (IEEE 754), multiply-add is always fused, and there are sixteen lanes on every level,
//! so a kernel gives the same bits on all of them; only the speed differs. The one exception is [`Lanes::dot_pairs`] below
//! 2^-126. [`run`] picks the best level once.
//!
//! The intrinsics are sound because a level's type can only be made after the processor was seen to have it.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A kernel must be inlined into the function that turns its instruction set on.

mod levels;

use std::sync::OnceLock;

/// Lanes in a vector.
pub(crate) const LANES: usize = 16;

/// Sixteen lanes of f32 on one level of instruction set. Making a value of an implementing type proves that the
/// processor has that level.
///
/// `load*` and `store*` need valid memory for as many numbers as they touch; everything else is safe given a value.
pub(crate) trait Lanes: Copy {
    type V: Copy;
    /// True if there are 32 registers that hold all lanes each, not 16 that hold half of them.
    const WIDE: bool;
    fn splat(self, x: f32) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// a * b + c, rounded once.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// a > b ? a : b in every lane, so b where either is not a number.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// a < b ? a : b in every lane, so b where either is not a number.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// 2^n where `a` is n + 1.5 * 2^23 for a whole n in -126..=127.
    fn exp2_of_shifted(self, a: Self::V) -> Self::V;
    /// The lower halves of lanes that hold two bf16 each, as f32.
    fn lower_halves(self, pairs: Self::V) -> Self::V;
    /// The upper halves, as f32.
    fn upper_halves(self, pairs: Self::V) -> Self::V;
    /// Sixteen lanes of two halves: the numbers at `lower`, and those at `upper`.
    /// # Safety
    /// 16 numbers can be read at each.
    unsafe fn load_halves(self, lower: *const u16, upper: *const u16) -> Self::V;
    /// Asks for the cache line at `p`, which may be any address.
    fn prefetch(self, p: *const f32);
    /// # Safety
    /// 16 numbers can be read.
    unsafe fn load(self, p: *const f32) -> Self::V;
    /// # Safety
    /// 16 numbers can be written.
    unsafe fn store(self, p: *mut f32, v: Self::V);
    /// The first `n <= 16` numbers, then zeros.
    /// # Safety
    /// `n` numbers can be read.
    unsafe fn load_first(self, p: *const f32, n: usize) -> Self::V;
    /// # Safety
    /// `n <= 16` numbers can be written.
    unsafe fn store_first(self, p: *mut f32, n: usize, v: Self::V);

    /// [`Self::load`] or [`Self::load_first`].
    /// # Safety
    /// `n <= 16` numbers can be read.
    #[inline(always)]
    unsafe fn load_up_to(self, p: *const f32, n: usize) -> Self::V {
        // SAFETY: as required of the caller.
        unsafe {
            if n == LANES {
                self.load(p)
            } else {
                self.load_first(p, n)
            }
        }
    }

    /// [`Self::store`] or [`Self::store_first`].
    /// # Safety
    /// `n <= 16` numbers can be written.
    #[inline(always)]
    unsafe fn store_up_to(self, p: *mut f32, n: usize, v: Self::V) {
        // SAFETY: as required of the caller.
        unsafe {
            if n == LANES {
                self.store(p, v);
            } else {
                self.store_first(p, n, v);
            }
        }
    }

    /// `c + a1 b1 + a0 b0`, where a lane of `a` holds the bf16 numbers `a0` and `a1`, its lower and its upper half. It is
    /// rounded after each of the two sums. The instruction of AVX512-BF16 does the same, but takes numbers and sums below
    /// 2^-126 for 0.
    #[inline(always)]
    fn dot_pairs(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        dot_halves(self, a, b, c)
    }

    /// Swaps the rows and the columns of a square of lanes.
    #[inline(always)]
    fn transpose(self, square: &mut [[u32; LANES]; LANES]) {
        let from = *square;
        for (row, to) in square.iter_mut().enumerate() {
            *to = from.map(|from| from[row]);
        }
    }

    #[inline(always)]
    fn to_array(self, v: Self::V) -> [f32; LANES] {
        let mut a = [0.0; LANES];
        // SAFETY: the array has 16 numbers.
        unsafe { self.store(a.as_mut_ptr(), v) };
        a
    }

    /// The sum of all lanes, as a fixed binary tree.
    #[inline(always)]
    fn sum(self, v: Self::V) -> f32 {
        let mut a = self.to_array(v);
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                a[i] += a[i + width];
            }
            width /= 2;
        }
        a[0]
    }

    /// The largest lane.
    #[inline(always)]
    fn largest(self, v: Self::V) -> f32 {
        self.to_array(v)
            .into_iter()
            .fold(f32::NEG_INFINITY, |m, x| if m > x { m } else { x })
    }

    /// e^x. Relative error below 2e-7 on [-87.3, 88.3], clamped outside, so the result is never 0 and never infinite;
    /// exactly 1 at 0; not a number where x is not. (Cephes, `expf`.)
    #[inline(always)]
    fn exp(self, x: Self::V) -> Self::V {
        // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
        const SHIFT: f32 = 12_582_912.0;
        let s = |x| self.splat(x);
        let x = self.max(s(-87.3), x);
        let x = self.min(s(88.3), x);
        let shifted = self.fma(x, s(std::f32::consts::LOG2_E), s(SHIFT));
        let n = self.sub(shifted, s(SHIFT));
        let r = self.fma(n, s(-0.693_359_4), x);
        let r = self.fma(n, s(2.121_944_4e-4), r);
        let mut p = s(1.987_569_1e-4);
        for c in [
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            5e-1,
        ] {
            p = self.fma(p, r, s(c));
        }
        let p = self.fma(p, self.mul(r, r), r);
        let y = self.add(p, s(1.0));
        self.mul(y, self.exp2_of_shifted(shifted))
    }
}

/// [`Lanes::dot_pairs`] in f32.
#[inline(always)]
fn dot_halves<L: Lanes>(l: L, a: L::V, b: L::V, c: L::V) -> L::V {
    let upper = l.fma(l.upper_halves(a), l.upper_halves(b), c);
    l.fma(l.lower_halves(a), l.lower_halves(b), upper)
}

/// Something to compute, once the instruction set is known.
pub(crate) trait Kernel {
    type Output;
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best that this processor has.
    pub(crate) fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            Self::available()
                .into_iter()
                .next_back()
                .unwrap_or(Self::Baseline)
        })
    }

    /// All that this processor has, slowest first.
    pub(crate) fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut levels = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 {
                levels.push(Self::Avx2);
            }
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                levels.push(Self::Avx512);
            }
        }
        levels
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }
}

/// Computes `kernel` on the best level.
#[inline]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: `best` is one of the levels that were detected.
    unsafe { run_on(Level::best(), kernel) }
}

/// Computes `kernel`, which multiplies bf16 numbers, on the best level, and with AVX512-BF16 if the processor has it.
#[inline]
pub(crate) fn run_in_bf16<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if multiplies_bf16() {
        // SAFETY: the processor has what is needed.
        return unsafe { levels::run_avx512_bf16(kernel) };
    }
    run(kernel)
}

/// True if the processor has an instruction for products of bf16 numbers that is used here.
pub(crate) fn multiplies_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return Level::best() == Level::Avx512 && is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Computes `kernel` on a given level.
///
/// # Safety
/// The level is one of [`Level::available`].
#[inline]
pub(crate) unsafe fn run_on<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level {
        Level::Baseline => kernel.run(levels::Baseline),
        // SAFETY: as required of the caller.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { levels::run_avx2(kernel) },
        // SAFETY: as required of the caller.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { levels::run_avx512(kernel) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Everything<'a>(&'a [f32]);

    impl Kernel for Everything<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run<L: Lanes>(self, l: L) -> Vec<u32> {
            let mut bits = Vec::new();
            for chunk in self.0.windows(LANES + 5) {
                // SAFETY: a window is longer than 16.
                let (a, b) = unsafe { (l.load(chunk.as_ptr()), l.load(chunk.as_ptr().add(5))) };
                for v in [
                    l.add(a, b),
                    l.sub(a, b),
                    l.mul(a, b),
                    l.div(a, b),
                    l.fma(a, b, l.splat(0.3)),
                    l.max(a, b),
                    l.min(a, b),
                    l.exp(a),
                ] {
                    bits.extend(l.to_array(v).map(f32::to_bits));
                    bits.push(l.sum(v).to_bits());
                    bits.push(l.largest(v).to_bits());
                }
                for n in 0..=LANES {
                    let mut out = [7.0f32; LANES];
                    let some = unsafe { l.load_first(chunk.as_ptr(), n) };
                    unsafe { l.store_first(out.as_mut_ptr(), n, a) };
                    bits.extend(l.to_array(some).map(f32::to_bits));
                    bits.extend(out.map(f32::to_bits));
                }
            }
            bits
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let key = crate::Key::new(1, crate::Purpose::Test);
        let mut values: Vec<f32> = (0..500).map(|i| (key.normal(i) * 20.0) as f32).collect();
        values.extend([
            0.0,
            -0.0,
            1e-40,
            200.0,
            -200.0,
            f32::MAX,
            f32::MIN_POSITIVE,
            88.3,
            -87.3,
        ]);
        let levels = Level::available();
        println!("levels: {levels:?}");
        // SAFETY: the levels are available.
        let expected = unsafe { run_on(levels[0], Everything(&values)) };
        for &level in &levels[1..] {
            let got = unsafe { run_on(level, Everything(&values)) };
            assert_eq!(got, expected, "{level:?}");
        }
    }

    struct Exp<'a>(&'a [f32]);

    impl Kernel for Exp<'_> {
        type Output = Vec<f32>;

        #[inline(always)]
        fn run<L: Lanes>(self, l: L) -> Vec<f32> {
            self.0
                .iter()
                .map(|&x| l.to_array(l.exp(l.splat(x)))[0])
                .collect()
        }
    }

    #[test]
    fn exp_is_within_two_ten_millionths_and_exact_at_zero() {
        let xs: Vec<f32> = (-87_000..88_000).map(|i| i as f32 * 1e-3).collect();
        for (x, y) in xs.iter().zip(run(Exp(&xs))) {
            let exact = f64::from(*x).exp();
            assert!(
                ((f64::from(y) - exact) / exact).abs() < 2e-7,
                "{x}: {y} {exact}"
            );
        }
        assert_eq!(run(Exp(&[0.0, -0.0])), [1.0, 1.0]);
        assert!(run(Exp(&[f32::NAN]))[0].is_nan());
        let ends = run(Exp(&[f32::NEG_INFINITY, -1e9, 1e9]));
        assert!(ends[0] > 0.0 && ends[0] == ends[1] && ends[0] < 1.3e-38 && ends[2].is_finite());
    }
}
