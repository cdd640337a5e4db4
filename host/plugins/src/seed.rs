//! Seeds of single calls. No two calls share a seed, and no seed depends on what ran at the same time.

/// Derives a seed for `name` from `seed`. `purpose` separates uses that might share names, such as tool calls and
/// gradings.
pub fn derive(seed: u64, purpose: &'static str, name: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("rlf-host 2026 seed of one call");
    hasher.update(&seed.to_le_bytes());
    for part in std::iter::once(&purpose).chain(name) {
        // Lengths first, so that ("a", "bc") differs from ("ab", "c").
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::derive;

    #[test]
    fn a_seed_depends_on_every_part_and_on_nothing_else() {
        let seed = derive(7, "call", &["run/0/1", "2"]);
        assert_eq!(seed, derive(7, "call", &["run/0/1", "2"]));
        for other in [
            derive(8, "call", &["run/0/1", "2"]),
            derive(7, "grade", &["run/0/1", "2"]),
            derive(7, "call", &["run/0/12", ""]),
            derive(7, "call", &["run/0/1", "3"]),
        ] {
            assert_ne!(seed, other);
        }
    }
}
