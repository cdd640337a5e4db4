//! Counter-based randomness: a draw depends on its key and on nothing drawn elsewhere.

/// A stream of random numbers named by (seed, purpose, index): the output of BLAKE3 keyed by the three.
///
/// Two streams of different keys are independent; the same key gives the same stream on every machine.
pub struct Draws {
    reader: blake3::OutputReader,
}

impl Draws {
    /// The stream of this key, from its start.
    pub fn new(seed: u64, purpose: &str, index: u64) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_le_bytes());
        hasher.update(&index.to_le_bytes());
        hasher.update(purpose.as_bytes());
        Self {
            reader: hasher.finalize_xof(),
        }
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.reader.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Uniform in `0..bound`, without bias; 0 where `bound` is 0 or 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound < 2 {
            return 0;
        }
        // Bits above the last whole multiple of `bound` would favour the small results.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let bits = self.bits();
            if bits < limit {
                return bits % bound;
            }
        }
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// An index uniform in `0..length`.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Uniform in `[0, 1)`, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of the choices, each equally likely.
    ///
    /// # Panics
    /// If there are no choices.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// Log-uniform in `low..=high`: numbers of two digits are as frequent as numbers of four.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1) as f64, high as f64 + 1.0);
        ((low * (high / low).powf(self.unit())) as u64).clamp(low as u64, high as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_each_part_of_its_key() {
        let first = |seed, purpose, index| Draws::new(seed, purpose, index).bits();
        assert_eq!(first(1, "a", 2), first(1, "a", 2));
        assert_ne!(first(1, "a", 2), first(2, "a", 2));
        assert_ne!(first(1, "a", 2), first(1, "b", 2));
        assert_ne!(first(1, "a", 2), first(1, "a", 3));
    }

    #[test]
    fn draws_are_spread_evenly_and_stay_in_bounds() {
        let mut draws = Draws::new(0, "even", 0);
        let mut counts = [0_u32; 7];
        for _ in 0..7_000 {
            counts[draws.index(7)] += 1;
            assert!((3..=9).contains(&draws.between(3, 9)));
            assert!((2..=17_000).contains(&draws.magnitude(2, 17_000)));
            assert!((0.0..1.0).contains(&draws.unit()));
        }
        // Five standard deviations of a binomial of 7,000 and 1/7.
        assert!(
            counts.iter().all(|&count| count.abs_diff(1_000) < 150),
            "{counts:?}"
        );
    }

    #[test]
    fn magnitudes_favour_no_number_of_digits() {
        let mut draws = Draws::new(0, "digits", 0);
        let digits: Vec<usize> = (0..4_000)
            .map(|_| draws.magnitude(1, 9_999).to_string().len())
            .collect();
        for length in 1..=4 {
            let count = digits.iter().filter(|&&digits| digits == length).count();
            assert!((850..1_150).contains(&count), "{length} digits: {count}");
        }
    }
}
