//! `wasi:random` from a seed: the same call gets the same bytes, on every machine and version. If the operator grants the
//! machine's entropy, bytes come from there after `init`.

use blake3::OutputReader;
use wasmtime::Result;
use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use crate::report::{Ending, LimitReached, Stopped};

/// One stream of bytes, made on first use, because most calls never need it.
struct Source {
    seed: u64,
    purpose: &'static str,
    reader: Option<OutputReader>,
    is_real: bool,
}

impl Source {
    fn new(seed: u64, purpose: &'static str) -> Self {
        Self {
            seed,
            purpose,
            reader: None,
            is_real: false,
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        if self.is_real {
            return getrandom::fill(bytes).map_err(|error| {
                Stopped::unavailable(format!("the machine gives no entropy: {error}")).into()
            });
        }
        let reader = self.reader.get_or_insert_with(|| {
            blake3::Hasher::new_derive_key("rlf-host 2026-11 guest randomness")
                .update(&self.seed.to_le_bytes())
                .update(self.purpose.as_bytes())
                .finalize_xof()
        });
        reader.fill(bytes);
        Ok(())
    }

    fn next(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The three random sources of WASI, independent of each other, seeded per call unless they are made real.
pub(crate) struct Randomness {
    secure: Source,
    insecure: Source,
    seed: Source,
    most_bytes: u64,
}

impl Randomness {
    pub(crate) fn new(seed: u64, most_bytes: u64) -> Self {
        Self {
            secure: Source::new(seed, "secure"),
            insecure: Source::new(seed, "insecure"),
            seed: Source::new(seed, "seed"),
            most_bytes,
        }
    }

    pub(crate) fn next(&mut self) -> Result<u64> {
        self.secure.next()
    }

    /// Uses the machine's entropy from now on.
    pub(crate) fn make_real(&mut self) {
        for source in [&mut self.secure, &mut self.insecure, &mut self.seed] {
            source.is_real = true;
        }
    }

    fn size(&self, length: u64) -> Result<usize> {
        if length > self.most_bytes {
            let limit = LimitReached::new("random_bytes", self.most_bytes, length);
            let reason = format!("the plugin asked for too many random bytes at once ({limit})");
            return Err(Stopped::by_limit(Ending::MemoryLimit, reason, limit).into());
        }
        Ok(usize::try_from(length)?)
    }
}

/// Gives the linker access to [`Randomness`].
pub(crate) struct HasRandomness;

impl HasData for HasRandomness {
    type Data<'a> = &'a mut Randomness;
}

impl random::Host for Randomness {
    fn get_random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.size(length)?];
        self.secure.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        self.secure.next()
    }
}

impl insecure::Host for Randomness {
    fn get_insecure_random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.size(length)?];
        self.insecure.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn get_insecure_random_u64(&mut self) -> Result<u64> {
        self.insecure.next()
    }
}

impl insecure_seed::Host for Randomness {
    fn insecure_seed(&mut self) -> Result<(u64, u64)> {
        Ok((self.seed.next()?, self.seed.next()?))
    }
}
