//! The hash of the running program: results are exact for one binary on one kind of processor.

/// BLAKE3 of the running executable; empty where it cannot be read.
pub(crate) fn binary_hash() -> String {
    let hash = || -> std::io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(std::env::current_exe()?)?)?;
        Ok(hasher.finalize().to_hex().to_string())
    };
    hash().unwrap_or_default()
}
