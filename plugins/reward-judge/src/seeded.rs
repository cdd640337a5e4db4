//! Everything random, from the grading seed: a hash, and a generator that it seeds.

/// A hash of 64 bits: FNV-1a (Fowler, Noll and Vo 1991), finished by the mixer of SplitMix64, so that every bit of the
/// result depends on every byte.
///
/// It is no cryptographic hash. A nonce is safe because no text contains it, which [`nonce`](crate::nonce) checks.
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new(seed: u64) -> Self {
        let mut hash = Self(0xCBF2_9CE4_8422_2325);
        hash.bytes(&seed.to_le_bytes());
        hash
    }

    /// Adds one text. Its length comes first, so texts cannot be divided in another way.
    #[must_use]
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
        self
    }

    pub(crate) fn finish(self) -> u64 {
        mix(self.0)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// The numbers below `length` in a random order (Fisher and Yates).
    pub(crate) fn order(&mut self, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        for last in (1..length).rev() {
            let choices = last as u128 + 1;
            let chosen = (u128::from(self.next()) * choices) >> 64;
            order.swap(last, chosen as usize);
        }
        order
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs for the seed 1234567, from the reference implementation
        // (https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64).
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn texts_divided_in_another_way_have_another_hash() {
        let hash = |seed, texts: &[&str]| {
            let add = |hash: Hash, text: &&str| hash.text(text);
            texts.iter().fold(Hash::new(seed), add).finish()
        };
        assert_eq!(hash(1, &["ab", "c"]), hash(1, &["ab", "c"]));
        assert_ne!(hash(1, &["ab", "c"]), hash(1, &["a", "bc"]));
        assert_ne!(hash(1, &["ab", "c"]), hash(2, &["ab", "c"]));
    }

    #[test]
    fn an_order_has_every_number_once() {
        let mut order = Random::new(7).order(20);
        assert_ne!(order, (0..20).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
        assert!(Random::new(7).order(0).is_empty());
    }
}
