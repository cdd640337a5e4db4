//! Reading of regular files, whole within a limit or in parts. A device or a pipe may never end, so neither is read.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Maximum size of a text file that people write by hand, such as a configuration: 16 MiB.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Opens a regular file of any size, to read parts of it.
///
/// The error of another kind of file says so. Such a file is not opened.
pub fn open(path: &Path) -> io::Result<File> {
    finite(path)?;
    File::open(path)
}

/// Reads a regular file of at most `most` bytes.
///
/// The error of another kind of file, or of a larger one, says so. Such a file is not opened.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = finite(path)?;
    if metadata.len() > most && metadata.is_file() {
        return Err(too_large(metadata.len(), most));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    // The file may grow while it is read, and the files of the kernel have the size 0.
    (File::open(path)?.take(most.saturating_add(1))).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64, most));
    }
    Ok(bytes)
}

/// Reads a regular file of UTF-8 text of at most `most` bytes.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8; save it as UTF-8"))
}

/// The metadata of a file that ends.
fn finite(path: &Path) -> io::Result<Metadata> {
    let metadata = fs::metadata(path)?;
    // A folder can be opened, and the system's own error for reading it is clear.
    if metadata.is_file() || metadata.is_dir() {
        return Ok(metadata);
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "it is a device, a pipe or a socket, which may never end; name a regular file",
    ))
}

fn too_large(size: u64, most: u64) -> io::Error {
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!("it has {size} bytes or more, and at most {most} are read; is it the right file?"),
    )
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert_eq!(read_text(&file, u64::MAX).unwrap(), "four");
        let error = read(&file, 3).unwrap_err().to_string();
        assert!(
            error.starts_with("it has 4 bytes or more, and at most 3"),
            "{error}"
        );
        fs::write(&file, [0xff]).unwrap();
        let error = read_text(&file, 4).unwrap_err().to_string();
        assert_eq!(error, "it is not UTF-8; save it as UTF-8");
    }

    #[test]
    fn an_endless_device_and_a_pipe_without_a_writer_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&pipe, Path::new("/dev/zero")] {
            let read = read(path, MAX_TEXT_BYTES).unwrap_err().to_string();
            let opened = open(path).unwrap_err().to_string();
            for error in [read, opened] {
                assert!(error.contains("name a regular file"), "{error}");
            }
        }
    }

    #[test]
    fn a_folder_or_nothing_is_the_errors_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path(), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        let error = read(&folder.path().join("none"), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_of_the_kernel_that_says_it_is_empty_is_bounded_too() {
        assert!(
            !read(Path::new("/proc/self/status"), 1 << 20)
                .unwrap()
                .is_empty()
        );
        let error = read(Path::new("/proc/self/status"), 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
