use super::*;
use crate::simd::Level;
use rlf_random::{Key, Purpose};

fn random(name: &str, n: usize) -> Vec<f32> {
    let key = Key::new(7, Purpose::Test).named(name);
    let number = |i| (key.uniform(i) * 4.0 - 2.0) as f32;
    (0..n as u64).map(number).collect()
}

#[test]
fn both_kernels_give_the_same_bits_on_every_level() {
    // Strips that are whole, and ends of each length modulo 16; `k` that is cut, and ends of each length modulo 4.
    for (k, n) in [
        (1, 1),
        (7, 15),
        (96, 421),
        (514, 17),
        (1027, 40),
        (64, 2500),
    ] {
        for rows in 1..=streamed::MAX_ROWS {
            let (x, w) = (random("x", rows * k), random("w", k * n));
            let start = random("start", rows * n);
            for accumulate in [false, true] {
                let mut expected: Option<Vec<f32>> = None;
                for level in Level::available() {
                    for is_copied in [false, true] {
                        let mut out = start.clone();
                        let product = Product {
                            x: &x,
                            w: Factor::rows(&w, n),
                            size: (k, n),
                            out: out.as_mut_ptr(),
                            columns: 0..n,
                            accumulate,
                        };
                        let (mut buffers, mut sums) = (copied::Buffers::new(), Vec::new());
                        // SAFETY: the processor has this level, and the lengths are those of the product.
                        unsafe {
                            if is_copied {
                                let buffers = &mut buffers;
                                simd::run_on(level, Copied { product, buffers });
                            } else {
                                let sums = &mut sums;
                                simd::run_on(level, Streamed { product, sums });
                            }
                        }
                        let expected = expected.get_or_insert_with(|| out.clone());
                        let mut pairs = out.iter().zip(expected);
                        assert!(
                            pairs.all(|(a, b)| a.to_bits() == b.to_bits()),
                            "{rows}x{k}x{n} on {level:?}, copied: {is_copied}"
                        );
                    }
                }
            }
        }
    }
}
