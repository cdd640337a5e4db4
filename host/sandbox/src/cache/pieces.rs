//! The hash of compiled code. Files are hashed piece by piece on several threads, because a program waits for it.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::thread;

use blake3::Hash;

/// Bytes that are read, hashed and written at a time: few enough to stay in a processor's cache.
const PIECE_BYTES: usize = 256 << 10;
/// Number of pieces that are worth another thread.
const PIECES_PER_THREAD: usize = 16;
/// Maximum number of threads that hash one file.
const MAX_THREADS: usize = 4;

/// The hash of compiled code: BLAKE3 of its length and of the hashes of its pieces.
pub(super) fn hash(code: &[u8]) -> Hash {
    let pieces: Vec<Hash> = code.chunks(PIECE_BYTES).map(blake3::hash).collect();
    joined(code.len() as u64, &pieces)
}

/// The [`hash`] of the first `length` bytes of a file. Each piece is passed to `copy` first, with its place in the file.
// Only Linux keeps compiled code in files.
#[cfg_attr(not(target_os = "linux"), expect(dead_code))]
pub(super) fn hash_file(
    file: &File,
    length: u64,
    copy: impl Fn(&[u8], u64) -> io::Result<()> + Sync,
) -> io::Result<Hash> {
    let number = length.div_ceil(PIECE_BYTES as u64) as usize;
    let mut pieces = vec![Hash::from_bytes([0; blake3::OUT_LEN]); number];
    let left = Mutex::new(pieces.iter_mut().enumerate());
    let hash_pieces = || -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, hash)) = next else {
                return Ok(());
            };
            let start = index as u64 * PIECE_BYTES as u64;
            let piece = &mut buffer[..(length - start).min(PIECE_BYTES as u64) as usize];
            file.read_exact_at(piece, start)?;
            copy(piece, start)?;
            *hash = blake3::hash(piece);
        }
    };
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(number / PIECES_PER_THREAD)
        .min(MAX_THREADS);
    thread::scope(|scope| {
        // A thread that cannot be started leaves its work to the others.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| {
                let builder = thread::Builder::new();
                builder.spawn_scoped(scope, hash_pieces).ok()
            })
            .collect();
        let hashed = hash_pieces();
        others.into_iter().fold(hashed, |hashed, other| {
            let other = other
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread broke")));
            hashed.and(other)
        })
    })?;
    Ok(joined(length, &pieces))
}

fn joined(length: u64, pieces: &[Hash]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&length.to_le_bytes());
    for piece in pieces {
        hasher.update(piece.as_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_has_the_hash_of_its_bytes_and_is_copied_whole() {
        let longest = 5 * PIECES_PER_THREAD * PIECE_BYTES + 77;
        let bytes: Vec<u8> = (0..longest)
            .map(|index| ((index * index) >> 7) as u8)
            .collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, longest] {
            let copied = Mutex::new(vec![0; length]);
            let copy = |piece: &[u8], start: u64| {
                let start = start as usize;
                copied.lock().unwrap()[start..start + piece.len()].copy_from_slice(piece);
                Ok(())
            };
            let hashed = hash_file(&file, length as u64, copy).unwrap();
            assert_eq!(hashed, hash(&bytes[..length]), "{length}");
            assert_eq!(copied.into_inner().unwrap(), bytes[..length], "{length}");
        }
    }

    #[test]
    fn every_byte_and_the_length_change_the_hash() {
        let bytes = vec![0; 2 * PIECE_BYTES + 5];
        let whole = hash(&bytes);
        for at in [0, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES + 4] {
            let mut changed = bytes.clone();
            changed[at] = 1;
            assert_ne!(hash(&changed), whole, "{at}");
        }
        assert_ne!(hash(&bytes[1..]), whole);
    }

    #[test]
    fn a_file_that_is_too_short_or_cannot_be_copied_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(100).unwrap();
        assert!(hash_file(&file, 101, |_, _| Ok(())).is_err());
        let length = 100 * PIECE_BYTES as u64;
        file.set_len(length).unwrap();
        let fails = |_: &[u8], start: u64| match start {
            0 => Err(io::Error::other("full")),
            _ => Ok(()),
        };
        assert!(hash_file(&file, length, fails).is_err());
    }
}
