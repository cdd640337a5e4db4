//! Randomness without state: a draw is a function of its key.
//!
//! A [`Key`] is a 64-bit hash of (seed, purpose, step, task, sample, position). There is no "next" draw. So the order in
//! which trajectories are decoded, and the number of threads, change no sample, and a resumed run draws the same as an
//! uninterrupted one.
//!
//! Words are folded into a key with the finaliser of `SplitMix64` (variant 13 of David Stafford's mixers; Steele, Lea
//! and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), and a key's own sequence is `SplitMix64`
//! started at that key.
//!
//! ```
//! use rlf_random::{Key, Purpose};
//!
//! let key = Key::new(7, Purpose::Rollout).at(3);
//! assert_eq!(key.uniform(0), Key::new(7, Purpose::Rollout).at(3).uniform(0));
//! ```

/// The increment of `SplitMix64`: 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The purpose of a draw. Two purposes never share randomness under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights.
    Weights = 1,
    /// Tokens of training rollouts.
    Rollout = 2,
    /// Tokens of evaluation rollouts.
    Evaluation = 3,
    /// The order of tasks, demonstrations and mini-batches.
    Order = 4,
    /// Anything in tests and benchmarks.
    Test = 7,
}

/// A point in the space of all draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// The root key of all draws for `purpose` under `seed`.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self(mix(seed.wrapping_add(GOLDEN))).at(purpose as u64)
    }

    /// The key with this hash, for its own sequence of words ([`Key::word`]).
    pub fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// The key of one member below this one: a step, a task, a sample, a position.
    #[must_use]
    pub fn at(self, word: u64) -> Self {
        // Not a plain xor: (a, b) and (b, a) must differ.
        Self(mix(self
            .0
            .rotate_left(23)
            .wrapping_mul(GOLDEN | 1)
            .wrapping_add(mix(word.wrapping_add(GOLDEN)))))
    }

    /// The key of a named member: a parameter, a task id.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        name.as_bytes()
            .chunks(8)
            .fold(self.at(name.len() as u64), |key, chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                key.at(u64::from_le_bytes(word))
            })
    }

    /// The `index`-th word of this key's own sequence.
    pub fn word(self, index: u64) -> u64 {
        mix(self
            .0
            .wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// The `index`-th uniform number of this key, in [0, 1), with 53 random bits.
    pub fn uniform(self, index: u64) -> f64 {
        (self.word(index) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The `index`-th standard normal number of this key (Box and Muller, the cosine of each pair).
    pub fn normal(self, index: u64) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform(2 * index)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform(2 * index + 1)).cos()
    }

    /// The `index`-th number of this key below `bound`, which must not be 0. Its bias is too small to notice (multiply and
    /// shift).
    pub fn below(self, index: u64, bound: u64) -> u64 {
        ((u128::from(self.word(index)) * u128::from(bound)) >> 64) as u64
    }

    /// Shuffles `items` by this key (Fisher and Yates).
    pub fn shuffle<T>(self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64, last as u64 + 1) as usize);
        }
    }

    /// The hash itself, for use as a seed.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_on_every_run_and_machine() {
        // Written down from the first version; a change here changes every run made with a seed.
        let key = Key::new(0, Purpose::Rollout).at(3).at(5).at(7).at(11);
        assert_eq!(key.value(), 0xea6f_9306_e8ab_4d43);
        // The published test vector of SplitMix64 seeded with 1234567 (Vigna's splitmix64.c).
        assert_eq!(Key(1_234_567).word(0), 6_457_827_717_110_365_317);
        assert_eq!(Key(1_234_567).word(1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn order_name_and_purpose_all_count() {
        let root = Key::new(1, Purpose::Test);
        assert_ne!(root.at(1).at(2), root.at(2).at(1));
        assert_ne!(root.at(0), root);
        assert_ne!(root.named("a"), root.named("a\0"));
        assert_ne!(root.named("abcdefgh1"), root.named("1abcdefgh"));
        assert_ne!(
            Key::new(1, Purpose::Rollout),
            Key::new(1, Purpose::Evaluation)
        );
        assert_ne!(Key::new(1, Purpose::Rollout), Key::new(2, Purpose::Rollout));
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let key = Key::new(9, Purpose::Test);
        let n = 200_000u64;
        let (mut u1, mut u2, mut z1, mut z2) = (0.0, 0.0, 0.0, 0.0);
        for i in 0..n {
            let (u, z) = (key.at(i).uniform(0), key.normal(i));
            assert!((0.0..1.0).contains(&u));
            u1 += u;
            u2 += u * u;
            z1 += z;
            z2 += z * z;
        }
        let n = n as f64;
        // Four standard errors.
        assert!((u1 / n - 0.5).abs() < 4.0 * (1.0f64 / 12.0 / n).sqrt());
        assert!((u2 / n - 1.0 / 3.0).abs() < 4.0 * (4.0f64 / 45.0 / n).sqrt());
        assert!((z1 / n).abs() < 4.0 / n.sqrt());
        assert!((z2 / n - 1.0).abs() < 4.0 * (2.0 / n).sqrt());
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Key::new(3, Purpose::Order).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
