//! The cut of a step's trajectories into mini-batches, one per update.
//!
//! Each mini-batch is cut further into micro-batches that fit in memory ([`rlf_policy::micro_batches`]).
//! Both cuts depend on the configuration and the seed alone, never on the number of cores. Gradients are
//! summed in index order, so the cut decides the last bits of a result.

use std::ops::Range;

use rlf_policy::{Key, Purpose};

/// A seeded order of `0..n`, different for every step and epoch.
pub fn shuffled(seed: u64, step: u64, epoch: u64, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Key::new(seed, Purpose::Order)
        .at(step)
        .at(epoch)
        .shuffle(&mut order);
    order
}

/// Cuts `n` items into `count` runs of nearly equal length; into fewer if there are fewer items.
pub fn mini_batches(n: usize, count: usize) -> Vec<Range<usize>> {
    let count = count.clamp(1, n.max(1));
    (0..count)
        .map(|i| i * n / count..(i + 1) * n / count)
        .filter(|r| !r.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_shuffle_is_a_permutation_and_a_function_of_its_key(seed: u64, step in 0u64..99, n in 0usize..200) {
            let mut order = shuffled(seed, step, 0, n);
            prop_assert_eq!(&order, &shuffled(seed, step, 0, n));
            if n > 20 {
                prop_assert_ne!(&order, &shuffled(seed, step, 1, n));
                prop_assert_ne!(&order, &shuffled(seed, step + 1, 0, n));
            }
            order.sort_unstable();
            prop_assert_eq!(order, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn mini_batches_cover_everything_once(n in 0usize..100, count in 1usize..12) {
            let runs = mini_batches(n, count);
            prop_assert_eq!(runs.iter().cloned().flatten().collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
            prop_assert_eq!(runs.len(), count.min(n));
            let sizes = runs.iter().map(ExactSizeIterator::len);
            prop_assert!(sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1);
        }
    }

    #[test]
    fn the_order_is_the_same_on_every_machine() {
        // A change of these numbers would change every run that is resumed.
        assert_eq!(shuffled(7, 3, 1, 8), vec![0, 5, 6, 4, 1, 2, 7, 3]);
        assert_eq!(mini_batches(7, 3), vec![0..2, 2..4, 4..7]);
    }
}
