//! Vectors on disk: a file for each model, with a line for each text.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Hexadecimal digits of the model's identity in a file's name.
const DIGITS: usize = 16;

/// The reason why a file of vectors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is not what this program writes.
    #[error("{}, line {line}: {why}; delete the file to ask for its vectors again", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake.
        why: String,
    },
    /// The endpoint answers with vectors of another dimension than before.
    #[error(
        "the endpoint gives vectors of {got} numbers, and those in {} have {wanted}: it runs another model now; give it another \
         name, or delete the file",
        path.display()
    )]
    Dimension {
        /// The file.
        path: PathBuf,
        /// Numbers of its vectors.
        wanted: usize,
        /// Numbers of the new ones.
        got: usize,
    },
    /// A text has no vector.
    #[error("there is no embedding of {text:?}; fetch those of all tools of the graph")]
    Missing {
        /// The text.
        text: String,
    },
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    vector: Vec<f32>,
}

/// The vectors of one model, in memory and on disk.
#[derive(Debug)]
pub struct Vectors {
    path: PathBuf,
    by_text: HashMap<String, Vec<f32>>,
    dimension: Option<usize>,
}

impl Vectors {
    /// Reads the vectors of a model from a folder, where they may be. A line that was cut off is removed.
    pub fn open(folder: &Path, identity: &str) -> Result<Self, VectorError> {
        let hash = blake3::hash(identity.as_bytes()).to_hex();
        let path = folder.join(format!("{}.jsonl", &hash[..DIGITS]));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(VectorError::Io { path, source }),
        };
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if whole < bytes.len() {
            let file = OpenOptions::new().write(true).open(&path);
            if let Err(source) = file.and_then(|file| file.set_len(whole as u64)) {
                return Err(VectorError::Io { path, source });
            }
        }
        let mut all = Self {
            path,
            by_text: HashMap::new(),
            dimension: None,
        };
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        for (number, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            all.read(line).map_err(|why| VectorError::Line {
                path: all.path.clone(),
                line: number + 1,
                why,
            })?;
        }
        Ok(all)
    }

    /// Takes a line of the file. The error is its mistake.
    fn read(&mut self, line: &[u8]) -> Result<(), String> {
        let Line { text, vector } =
            serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let wanted = *self.dimension.get_or_insert(vector.len());
        if vector.len() != wanted {
            let got = vector.len();
            return Err(format!(
                "it has {got} numbers, and an earlier line {wanted}"
            ));
        }
        let is_zero = vector.iter().all(|number| *number == 0.0);
        if is_zero || vector.iter().any(|number| !number.is_finite()) {
            return Err("its vector is zero, or has a number that is not finite".to_owned());
        }
        self.by_text.insert(text, vector);
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The vector of a text.
    pub fn get(&self, text: &str) -> Option<&[f32]> {
        self.by_text.get(text).map(Vec::as_slice)
    }

    /// Adds the vectors of texts, on disk first.
    pub(super) fn add(
        &mut self,
        texts: &[String],
        vectors: Vec<Vec<f32>>,
    ) -> Result<(), VectorError> {
        let io = |source| VectorError::Io {
            path: self.path.clone(),
            source,
        };
        let mut lines = Vec::new();
        for (text, vector) in texts.iter().zip(&vectors) {
            let wanted = *self.dimension.get_or_insert(vector.len());
            if vector.len() != wanted {
                return Err(VectorError::Dimension {
                    path: self.path.clone(),
                    wanted,
                    got: vector.len(),
                });
            }
            let line = Line {
                text: text.clone(),
                vector: vector.clone(),
            };
            serde_json::to_writer(&mut lines, &line).map_err(|error| io(error.into()))?;
            lines.push(b'\n');
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| {
                let file = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&self.path);
                file?.write_all(&lines)
            })
            .map_err(io)?;
        self.by_text.extend(texts.iter().cloned().zip(vectors));
        Ok(())
    }
}
