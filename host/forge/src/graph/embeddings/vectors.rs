//! Vectors on disk: a file for each model, with a line for each text.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::lines;

/// Hexadecimal digits of the model's identity in a file's name.
const DIGITS: usize = 16;

/// The reason why a file of vectors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The file cannot be read or written.
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
        /// Dimension of the vectors on disk.
        wanted: usize,
        /// Dimension of the new vectors.
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
    /// Reads the vectors of a model from a folder, if it has any. A line that was cut off is removed.
    pub fn open(folder: &Path, identity: &str) -> Result<Self, VectorError> {
        let hash = blake3::hash(identity.as_bytes()).to_hex();
        let path = folder.join(format!("{}.jsonl", &hash[..DIGITS]));
        let bytes = match lines::whole(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(VectorError::Io { path, source }),
        };
        let mut all = Self {
            path,
            by_text: HashMap::new(),
            dimension: None,
        };
        for (line, text) in lines::numbered(&bytes) {
            all.read(text).map_err(|why| VectorError::Line {
                path: all.path.clone(),
                line,
                why,
            })?;
        }
        Ok(all)
    }

    /// Adds the vector of a line of the file. The error says what is wrong with the line.
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
        for vector in &vectors {
            let wanted = *self.dimension.get_or_insert(vector.len());
            if vector.len() != wanted {
                return Err(VectorError::Dimension {
                    path: self.path.clone(),
                    wanted,
                    got: vector.len(),
                });
            }
        }
        let new = texts.iter().zip(&vectors).map(|(text, vector)| Line {
            text: text.clone(),
            vector: vector.clone(),
        });
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| lines::append(&self.path, new))
            .map_err(|source| VectorError::Io {
                path: self.path.clone(),
                source,
            })?;
        self.by_text.extend(texts.iter().cloned().zip(vectors));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_line_even_after_empty_ones() {
        let folder = tempfile::tempdir().unwrap();
        let mut vectors = Vectors::open(folder.path(), "model").unwrap();
        vectors.add(&["a".to_owned()], vec![vec![1.0]]).unwrap();
        let text = fs::read_to_string(vectors.path()).unwrap();
        fs::write(vectors.path(), format!("{text}\n[]\n{text}")).unwrap();
        let error = Vectors::open(folder.path(), "model").unwrap_err();
        assert!(
            matches!(error, VectorError::Line { line: 3, .. }),
            "{error}"
        );
    }
}
