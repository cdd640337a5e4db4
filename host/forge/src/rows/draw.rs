//! Draws from keys that the stages share.

use rlf_random::{Key, Purpose};

/// The key of everything that a seed decides.
pub(crate) fn root(seed: u64) -> Key {
    Key::new(seed, Purpose::Order).named("rows")
}

/// One of the items, each as likely. None if there is no item.
pub(crate) fn pick<T>(key: Key, items: &[T]) -> Option<&T> {
    if items.is_empty() {
        return None;
    }
    items.get(key.below(0, items.len() as u64) as usize)
}

/// A number from `least` to `most`.
pub(crate) fn between(key: Key, least: usize, most: usize) -> usize {
    least + key.below(0, (most - least.min(most) + 1) as u64) as usize
}

/// True with this probability.
pub(crate) fn chance(key: Key, probability: f64) -> bool {
    key.uniform(0) < probability
}

/// An index, as likely as its weight says.
pub(crate) fn weighted(key: Key, weights: &[u32]) -> usize {
    let total: u32 = weights.iter().sum();
    let mut rest = key.below(0, u64::from(total.max(1)));
    for (index, weight) in weights.iter().enumerate() {
        match rest.checked_sub(u64::from(*weight)) {
            Some(left) => rest = left,
            None => return index,
        }
    }
    0
}
