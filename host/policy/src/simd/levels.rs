//! The three instruction sets.

use super::{LANES, Lanes};

/// Plain Rust. `mul_add` calls the C library if the target has no fused instruction.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

#[inline(always)]
fn each(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Lanes for Baseline {
    type V = [f32; LANES];
    const WIDE: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [x; LANES]
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn exp2_of_shifted(self, a: Self::V) -> Self::V {
        a.map(|x| f32::from_bits(x.to_bits().wrapping_add(EXPONENT_BIAS) << 23))
    }
    #[inline(always)]
    fn lower_halves(self, pairs: Self::V) -> Self::V {
        pairs.map(|pair| f32::from_bits(pair.to_bits() << 16))
    }
    #[inline(always)]
    fn upper_halves(self, pairs: Self::V) -> Self::V {
        pairs.map(|pair| f32::from_bits(pair.to_bits() & UPPER_HALF))
    }
    #[inline(always)]
    unsafe fn load_halves(self, lower: *const u16, upper: *const u16) -> Self::V {
        std::array::from_fn(|i| {
            // SAFETY: as required of the caller.
            let (lower, upper) = unsafe { (*lower.add(i), *upper.add(i)) };
            f32::from_bits(u32::from(lower) | u32::from(upper) << 16)
        })
    }
    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::V {
        // SAFETY: as required of the caller; an array of f32 has the alignment of f32.
        unsafe { p.cast::<[f32; LANES]>().read() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::V) {
        // SAFETY: as required of the caller.
        unsafe { p.cast::<[f32; LANES]>().write(v) }
    }
    #[inline(always)]
    unsafe fn load_first(self, p: *const f32, n: usize) -> Self::V {
        let mut v = [0.0; LANES];
        // SAFETY: as required of the caller.
        unsafe { p.copy_to_nonoverlapping(v.as_mut_ptr(), n.min(LANES)) };
        v
    }
    #[inline(always)]
    unsafe fn store_first(self, p: *mut f32, n: usize, v: Self::V) {
        // SAFETY: as required of the caller.
        unsafe { p.copy_from_nonoverlapping(v.as_ptr(), n.min(LANES)) };
    }
}

/// Number that is added to the bits of `n + 1.5 * 2^23`. The result is `n + 127`, the biased exponent of `2^n`.
const EXPONENT_BIAS: u32 = 127u32.wrapping_sub(0x4B40_0000);
/// The bits of a lane that are its upper half.
const UPPER_HALF: u32 = 0xFFFF_0000;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m256i, __m512, __m512bh, __mmask16, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch,
        _mm256_add_epi32, _mm256_add_ps, _mm256_and_ps, _mm256_castps_si256, _mm256_castsi256_ps,
        _mm256_cvtepu16_epi32, _mm256_div_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
        _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps,
        _mm256_or_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_slli_epi32, _mm256_storeu_ps,
        _mm256_sub_ps, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_castps_si512,
        _mm512_castsi512_ps, _mm512_cvtepu16_epi32, _mm512_div_ps, _mm512_dpbf16_ps,
        _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mask_storeu_ps,
        _mm512_maskz_loadu_ps, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_or_si512,
        _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_shuffle_i32x4,
        _mm512_slli_epi32, _mm512_storeu_ps, _mm512_storeu_si512, _mm512_sub_ps,
        _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
    };

    use super::super::{Kernel, dot_halves};
    use super::{EXPONENT_BIAS, LANES, Lanes, UPPER_HALF};

    /// AVX2, with two halves of eight lanes. A value is made only in [`run_avx2`].
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    /// AVX-512, and AVX512-BF16 if `BF16` is true. A value is made only in [`run_avx512`] and [`run_avx512_bf16`].
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512<const BF16: bool>(());

    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(crate) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx2(()))
    }

    /// # Safety
    /// The processor has AVX2, FMA and AVX-512 F, VL, DQ and BW.
    #[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
    pub(crate) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx512::<false>(()))
    }

    /// # Safety
    /// The processor has AVX2, FMA and AVX-512 F, VL, DQ, BW and BF16.
    #[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")]
    pub(crate) unsafe fn run_avx512_bf16<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx512::<true>(()))
    }

    // SAFETY of all that follows: a value of the type shows that the instructions exist; memory is the caller's.

    macro_rules! pairwise {
        ($($name:ident = $instruction:ident),*) => {$(
            #[inline(always)]
            fn $name(self, a: Self::V, b: Self::V) -> Self::V {
                unsafe { ($instruction(a.0, b.0), $instruction(a.1, b.1)) }
            }
        )*};
    }

    impl Lanes for Avx2 {
        type V = (__m256, __m256);
        const WIDE: bool = false;

        #[inline(always)]
        fn splat(self, x: f32) -> Self::V {
            let v = unsafe { _mm256_set1_ps(x) };
            (v, v)
        }
        pairwise!(
            add = _mm256_add_ps,
            sub = _mm256_sub_ps,
            mul = _mm256_mul_ps,
            div = _mm256_div_ps,
            max = _mm256_max_ps,
            min = _mm256_min_ps
        );
        #[inline(always)]
        fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            unsafe {
                (
                    _mm256_fmadd_ps(a.0, b.0, c.0),
                    _mm256_fmadd_ps(a.1, b.1, c.1),
                )
            }
        }
        #[inline(always)]
        fn exp2_of_shifted(self, a: Self::V) -> Self::V {
            let half = |a| unsafe {
                let bias = _mm256_set1_epi32(EXPONENT_BIAS as i32);
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(
                    _mm256_castps_si256(a),
                    bias,
                )))
            };
            (half(a.0), half(a.1))
        }
        #[inline(always)]
        fn lower_halves(self, pairs: Self::V) -> Self::V {
            let half = |pairs| unsafe {
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(pairs)))
            };
            (half(pairs.0), half(pairs.1))
        }
        #[inline(always)]
        fn upper_halves(self, pairs: Self::V) -> Self::V {
            let half = |pairs| unsafe {
                let mask = _mm256_castsi256_ps(_mm256_set1_epi32(UPPER_HALF.cast_signed()));
                _mm256_and_ps(pairs, mask)
            };
            (half(pairs.0), half(pairs.1))
        }
        #[inline(always)]
        unsafe fn load_halves(self, lower: *const u16, upper: *const u16) -> Self::V {
            let wide = |p: *const u16, from| unsafe {
                _mm256_cvtepu16_epi32(_mm_loadu_si128(p.add(from).cast()))
            };
            let half = |from| unsafe {
                let upper = _mm256_slli_epi32::<16>(wide(upper, from));
                _mm256_castsi256_ps(_mm256_or_si256(wide(lower, from), upper))
            };
            (half(0), half(8))
        }
        #[inline(always)]
        fn prefetch(self, p: *const f32) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
        }
        #[inline(always)]
        unsafe fn load(self, p: *const f32) -> Self::V {
            unsafe { (_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32, v: Self::V) {
            unsafe {
                _mm256_storeu_ps(p, v.0);
                _mm256_storeu_ps(p.add(8), v.1);
            }
        }
        #[inline(always)]
        unsafe fn load_first(self, p: *const f32, n: usize) -> Self::V {
            unsafe {
                let (low, high) = first_halves(n);
                (
                    _mm256_maskload_ps(p, low),
                    _mm256_maskload_ps(p.wrapping_add(8), high),
                )
            }
        }
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, n: usize, v: Self::V) {
            unsafe {
                let (low, high) = first_halves(n);
                _mm256_maskstore_ps(p, low, v.0);
                _mm256_maskstore_ps(p.wrapping_add(8), high, v.1);
            }
        }
    }

    /// Masks of the first `n` lanes, for both halves.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[inline(always)]
    unsafe fn first_halves(n: usize) -> (__m256i, __m256i) {
        static ONES_THEN_ZEROS: [i32; 2 * LANES] = {
            let mut lanes = [0; 2 * LANES];
            let mut lane = 0;
            while lane < LANES {
                lanes[lane] = -1;
                lane += 1;
            }
            lanes
        };
        unsafe {
            // Sixteen numbers follow, of which the first `n` have all bits set.
            let from = ONES_THEN_ZEROS.as_ptr().add(LANES - n.min(LANES));
            (
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(8).cast()),
            )
        }
    }

    macro_rules! whole {
        ($($name:ident = $instruction:ident),*) => {$(
            #[inline(always)]
            fn $name(self, a: Self::V, b: Self::V) -> Self::V {
                unsafe { $instruction(a, b) }
            }
        )*};
    }

    /// Quarters 0 and 2 of two vectors.
    const EVEN: i32 = 0x88;
    /// Quarters 1 and 3 of two vectors.
    const ODD: i32 = 0xDD;

    #[inline(always)]
    fn first(n: usize) -> __mmask16 {
        ((1u32 << n.min(LANES)) - 1) as __mmask16
    }

    impl<const BF16: bool> Lanes for Avx512<BF16> {
        type V = __m512;
        const WIDE: bool = true;

        #[inline(always)]
        fn splat(self, x: f32) -> Self::V {
            unsafe { _mm512_set1_ps(x) }
        }
        whole!(
            add = _mm512_add_ps,
            sub = _mm512_sub_ps,
            mul = _mm512_mul_ps,
            div = _mm512_div_ps,
            max = _mm512_max_ps,
            min = _mm512_min_ps
        );
        #[inline(always)]
        fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn exp2_of_shifted(self, a: Self::V) -> Self::V {
            unsafe {
                let bias = _mm512_set1_epi32(EXPONENT_BIAS as i32);
                _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_add_epi32(
                    _mm512_castps_si512(a),
                    bias,
                )))
            }
        }
        #[inline(always)]
        fn lower_halves(self, pairs: Self::V) -> Self::V {
            unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_castps_si512(pairs))) }
        }
        #[inline(always)]
        fn upper_halves(self, pairs: Self::V) -> Self::V {
            unsafe {
                let mask = _mm512_set1_epi32(UPPER_HALF.cast_signed());
                _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs), mask))
            }
        }
        #[inline(always)]
        unsafe fn load_halves(self, lower: *const u16, upper: *const u16) -> Self::V {
            let wide =
                |p: *const u16| unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast())) };
            unsafe {
                let upper = _mm512_slli_epi32::<16>(wide(upper));
                _mm512_castsi512_ps(_mm512_or_si512(wide(lower), upper))
            }
        }
        #[inline(always)]
        fn dot_pairs(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            if BF16 {
                // A cast without a change: the types are sixteen lanes of 32 bits both.
                let pairs = |v| unsafe { std::mem::transmute::<__m512, __m512bh>(v) };
                return unsafe { _mm512_dpbf16_ps(c, pairs(a), pairs(b)) };
            }
            dot_halves(self, a, b, c)
        }
        #[inline(always)]
        fn transpose(self, square: &mut [[u32; LANES]; LANES]) {
            unsafe {
                let row = |r: usize| _mm512_loadu_si512(square[r].as_ptr().cast());
                // Squares of two, then of four: a vector has one column of four rows in each quarter.
                let mut fours = [_mm512_setzero_si512(); LANES];
                for (first, fours) in (0..LANES).step_by(4).zip(fours.chunks_exact_mut(4)) {
                    let [a, b, c, d] = [0, 1, 2, 3].map(|r| row(first + r));
                    let (low, high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
                    let (low2, high2) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
                    fours[0] = _mm512_unpacklo_epi64(low, low2);
                    fours[1] = _mm512_unpackhi_epi64(low, low2);
                    fours[2] = _mm512_unpacklo_epi64(high, high2);
                    fours[3] = _mm512_unpackhi_epi64(high, high2);
                }
                for column in 0..4 {
                    let [a, b, c, d] = [0, 4, 8, 12].map(|first| fours[first + column]);
                    let (top, bottom) = (
                        _mm512_shuffle_i32x4::<EVEN>(a, b),
                        _mm512_shuffle_i32x4::<EVEN>(c, d),
                    );
                    let (odd_top, odd_bottom) = (
                        _mm512_shuffle_i32x4::<ODD>(a, b),
                        _mm512_shuffle_i32x4::<ODD>(c, d),
                    );
                    for (row, v) in [
                        (column, _mm512_shuffle_i32x4::<EVEN>(top, bottom)),
                        (
                            column + 4,
                            _mm512_shuffle_i32x4::<EVEN>(odd_top, odd_bottom),
                        ),
                        (column + 8, _mm512_shuffle_i32x4::<ODD>(top, bottom)),
                        (
                            column + 12,
                            _mm512_shuffle_i32x4::<ODD>(odd_top, odd_bottom),
                        ),
                    ] {
                        _mm512_storeu_si512(square[row].as_mut_ptr().cast(), v);
                    }
                }
            }
        }
        #[inline(always)]
        fn prefetch(self, p: *const f32) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
        }
        #[inline(always)]
        unsafe fn load(self, p: *const f32) -> Self::V {
            unsafe { _mm512_loadu_ps(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32, v: Self::V) {
            unsafe { _mm512_storeu_ps(p, v) }
        }
        #[inline(always)]
        unsafe fn load_first(self, p: *const f32, n: usize) -> Self::V {
            unsafe { _mm512_maskz_loadu_ps(first(n), p) }
        }
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, n: usize, v: Self::V) {
            unsafe { _mm512_mask_storeu_ps(p, first(n), v) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{run_avx2, run_avx512, run_avx512_bf16};
