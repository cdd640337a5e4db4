//! Files of named tensors, in the format of safetensors.
//!
//! Tensors are read and written one at a time, so the memory of a whole file is never needed. A file that is written has
//! the bytes that `safetensors::serialize` gives for the same tensors.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use candle_core::{Tensor, Var};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use crate::error::{PolicyError, Result};
use crate::ops::with_numbers;
use crate::weights::{Parameter, Stored};

/// Bytes of the header's length, to a multiple of which the header is filled up.
const LENGTH_BYTES: usize = 8;
/// Maximum length of a header that is read, in bytes: that of the crate safetensors.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Numbers that are converted at once.
const CHUNK: usize = 1 << 14;
/// The beginning of the file that git keeps in the place of weights.
const LFS_POINTER: &[u8] = b"version https://git-lfs";
const READING: &str = "reading weights";

/// A file of tensors, open to be read.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    /// The place of the first tensor in the file.
    start: u64,
    tensors: BTreeMap<String, TensorInfo>,
    metadata: HashMap<String, String>,
}

impl TensorFile {
    /// Opens a file and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        // Weights may have any size, but they are a regular file.
        let mut file = rlf_files::open(path).map_err(PolicyError::io(path, READING))?;
        let size = file
            .metadata()
            .map_err(PolicyError::io(path, READING))?
            .len();
        let damaged = |problem: &dyn Display| {
            PolicyError::checkpoint(
                path,
                format!(
                    "not a whole safetensors file of {size} bytes ({problem}); it was cut short or damaged, copy it again"
                ),
            )
        };
        let mut beginning = Vec::new();
        Read::take(&file, LFS_POINTER.len() as u64)
            .read_to_end(&mut beginning)
            .map_err(PolicyError::io(path, READING))?;
        if beginning == LFS_POINTER {
            return Err(PolicyError::checkpoint(
                path,
                "is a git-lfs pointer, not the weights; fetch them with `git lfs pull`",
            ));
        }
        let Some(length) = beginning.first_chunk::<LENGTH_BYTES>() else {
            return Err(damaged(&"it ends before its header"));
        };
        let length = u64::from_le_bytes(*length);
        let start = length.saturating_add(LENGTH_BYTES as u64);
        if length > MAX_HEADER_BYTES || start > size {
            return Err(damaged(&"it ends inside its header"));
        }
        let mut header = vec![0; length as usize];
        file.seek(SeekFrom::Start(LENGTH_BYTES as u64))
            .and_then(|_| file.read_exact(&mut header))
            .map_err(PolicyError::io(path, READING))?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|error| damaged(&error))?;
        let expected = start + header.data_len() as u64;
        if expected != size {
            return Err(damaged(&format!("its header describes {expected}")));
        }
        let tensors = header.tensors().into_iter();
        Ok(Self {
            path: path.to_owned(),
            file,
            start,
            tensors: tensors.map(|(name, info)| (name, info.clone())).collect(),
            metadata: header.metadata().clone().unwrap_or_default(),
        })
    }

    /// The tensors' names, in alphabetical order, and their shapes.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = (&str, &[usize])> {
        let tensors = self.tensors.iter();
        tensors.map(|(name, info)| (name.as_str(), info.shape.as_slice()))
    }

    /// A tensor's shape. None if the file does not have the tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|info| info.shape.as_slice())
    }

    /// A value of the file's metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// The numbers of a tensor. Those in f16 or bf16 become f32.
    pub(crate) fn read(&mut self, name: &str) -> Result<Vec<f32>> {
        let Some(info) = self.tensors.get(name) else {
            return Err(self.refused(format!("tensor {name} is missing")));
        };
        let unread = PolicyError::io(&self.path, READING);
        let (from, to) = info.data_offsets;
        let mut numbers = Vec::with_capacity(info.shape.iter().product());
        let mut bytes = vec![0; (to - from).min(CHUNK * size_of::<f32>())];
        let mut left = to - from;
        if let Err(error) = self.file.seek(SeekFrom::Start(self.start + from as u64)) {
            return Err(unread(error));
        }
        while left > 0 {
            let part = left.min(bytes.len());
            if let Err(error) = self.file.read_exact(&mut bytes[..part]) {
                return Err(unread(error));
            }
            if !append(&mut numbers, info.dtype, &bytes[..part]) {
                let found = info.dtype;
                return Err(self.refused(format!(
                    "tensor {name} is {found:?}; f32, f16 and bf16 are supported"
                )));
            }
            left -= part;
        }
        Ok(numbers)
    }

    /// The numbers of a tensor, all of which must be finite.
    pub(crate) fn read_finite(&mut self, name: &str) -> Result<Vec<f32>> {
        let numbers = self.read(name)?;
        if let Some(place) = numbers.iter().position(|x| !x.is_finite()) {
            let value = numbers[place];
            return Err(self.refused(format!(
                "tensor {name}: element {place} is {value}; the file is damaged or training diverged"
            )));
        }
        Ok(numbers)
    }

    /// Reads a tensor into a variable of the same shape. `content` says what the file should hold.
    pub(crate) fn read_into(&mut self, name: &str, variable: &Var, content: &str) -> Result<()> {
        let expected = variable.dims();
        let Some(shape) = self.shape(name) else {
            return Err(self.refused(format!("tensor {name} is missing: not {content}")));
        };
        if shape != expected {
            return Err(self.refused(format!(
                "tensor {name}: expected {expected:?}, found {shape:?}: {content} of another model"
            )));
        }
        let numbers = Tensor::from_vec(self.read(name)?, expected, variable.device())?;
        variable.set(&numbers)?;
        Ok(())
    }

    /// An error about the file's content.
    pub(crate) fn refused(&self, message: String) -> PolicyError {
        PolicyError::checkpoint(&self.path, message)
    }
}

/// Appends the numbers in `bytes` as f32. Returns false if their type is not supported.
fn append(numbers: &mut Vec<f32>, dtype: Dtype, bytes: &[u8]) -> bool {
    match dtype {
        Dtype::F32 => {
            let chunks = bytes.as_chunks().0.iter();
            numbers.extend(chunks.map(|bytes| f32::from_le_bytes(*bytes)));
        }
        Dtype::BF16 => {
            let chunks = bytes.as_chunks().0.iter();
            numbers.extend(chunks.map(|bytes| bf16::from_le_bytes(*bytes).to_f32()));
        }
        Dtype::F16 => {
            let chunks = bytes.as_chunks().0.iter();
            numbers.extend(chunks.map(|bytes| f16::from_le_bytes(*bytes).to_f32()));
        }
        _ => return false,
    }
    true
}

/// The type of the weights on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredDtype {
    /// The weights unchanged: training can continue from them as if it had never stopped.
    F32,
    /// Rounded weights at half the size, for publishing.
    Bf16,
}

impl StoredDtype {
    /// PyTorch's name of the type.
    pub(crate) fn in_torch(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
        }
    }

    /// The type in a header, and its bytes.
    fn in_header(self) -> (Dtype, usize) {
        match self {
            Self::F32 => (Dtype::F32, 4),
            Self::Bf16 => (Dtype::BF16, 2),
        }
    }
}

/// A tensor that is to be saved. Its numbers are read when it is written.
pub(crate) struct SavedTensor<'a> {
    name: &'a str,
    shape: &'a [usize],
    variable: &'a Var,
    /// The block of the variable that it holds. If it is None, all numbers.
    block: Option<(&'a Parameter, &'a Stored)>,
}

impl<'a> SavedTensor<'a> {
    /// All numbers of a variable.
    pub(crate) fn whole(name: &'a str, variable: &'a Var) -> Self {
        Self {
            name,
            shape: variable.dims(),
            variable,
            block: None,
        }
    }

    /// A stored tensor of a parameter, whose numbers are in `variable`.
    pub(crate) fn of(parameter: &'a Parameter, stored: &'a Stored, variable: &'a Var) -> Self {
        Self {
            name: &stored.name,
            shape: &stored.shape,
            variable,
            block: Some((parameter, stored)),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// Its bytes on disk.
    pub(crate) fn bytes(&self, dtype: StoredDtype) -> usize {
        let (_, bytes_each) = dtype.in_header();
        self.shape.iter().product::<usize>() * bytes_each
    }

    /// Writes its numbers. An error of candle is inside the error.
    fn write(&self, dtype: StoredDtype, out: &mut dyn Write) -> io::Result<()> {
        let mut write = |numbers: &[f32]| match self.block {
            Some((parameter, stored)) => {
                write_numbers(&parameter.take(stored, numbers), dtype, out)
            }
            None => write_numbers(numbers, dtype, out),
        };
        let written = if self.variable.device().is_cpu() {
            with_numbers(self.variable, write)
        } else {
            let numbers = self.variable.flatten_all();
            let numbers = numbers.and_then(|numbers| numbers.to_vec1::<f32>());
            numbers.map(|numbers| write(&numbers))
        };
        written.map_err(io::Error::other)?
    }
}

fn write_numbers(numbers: &[f32], dtype: StoredDtype, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    for numbers in numbers.chunks(CHUNK) {
        bytes.clear();
        match dtype {
            StoredDtype::F32 => bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes())),
            StoredDtype::Bf16 => {
                let rounded = numbers.iter().map(|x| bf16::from_f32(*x));
                bytes.extend(rounded.flat_map(bf16::to_le_bytes));
            }
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes tensors with different names to a file, completely or not at all.
pub(crate) fn write_tensors(
    file: &Path,
    mut tensors: Vec<SavedTensor<'_>>,
    metadata: HashMap<String, String>,
    dtype: StoredDtype,
) -> Result<()> {
    // The order that the crate safetensors gives to tensors of one type.
    tensors.sort_unstable_by_key(SavedTensor::name);
    let mut end = 0;
    let described = tensors.iter().map(|tensor| {
        let from = end;
        end += tensor.bytes(dtype);
        let info = TensorInfo {
            dtype: dtype.in_header().0,
            shape: tensor.shape.to_vec(),
            data_offsets: (from, end),
        };
        (tensor.name.to_owned(), info)
    });
    let broken =
        |error: &dyn Display| PolicyError::checkpoint(file, format!("cannot be written: {error}"));
    let header =
        Metadata::new(Some(metadata), described.collect()).map_err(|error| broken(&error))?;
    let mut header = serde_json::to_vec(&header).map_err(|error| broken(&error))?;
    header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');
    let written = rlf_files::write_with(file, |out| {
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        tensors
            .iter()
            .try_for_each(|tensor| tensor.write(dtype, out))
    });
    written.map_err(|error| match error.downcast::<candle_core::Error>() {
        // The weights could not be read, and the disk is not at fault.
        Ok(error) => error.into(),
        Err(error) => PolicyError::writing(file)(error),
    })
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::measure::quickstart_shape;
    use crate::model::Model;

    fn bytes(numbers: &[f32], dtype: StoredDtype) -> Vec<u8> {
        let bytes = numbers.iter().map(|x| match dtype {
            StoredDtype::F32 => x.to_le_bytes().to_vec(),
            StoredDtype::Bf16 => bf16::from_f32(*x).to_le_bytes().to_vec(),
        });
        bytes.flatten().collect()
    }

    /// The file that the crate safetensors makes of tensors that are all in memory.
    fn serialized(
        tensors: &[(String, Vec<usize>, Vec<f32>)],
        metadata: HashMap<String, String>,
        dtype: StoredDtype,
    ) -> Vec<u8> {
        let bytes: Vec<Vec<u8>> = tensors.iter().map(|one| bytes(&one.2, dtype)).collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            let view = TensorView::new(dtype.in_header().0, shape.clone(), bytes);
            (name, view.unwrap())
        });
        safetensors::serialize(views, Some(metadata)).unwrap()
    }

    #[test]
    fn a_file_has_the_bytes_that_the_crate_safetensors_gives_it() {
        let model = Model::init(&quickstart_shape(), 3, &Device::Cpu).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.safetensors");
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let (mut blocks, mut whole) = (Vec::new(), Vec::new());
        for (parameter, variable) in model.layout().iter().zip(model.variables()) {
            let all: Vec<f32> = variable.flatten_all().unwrap().to_vec1().unwrap();
            for stored in &parameter.stored {
                let numbers = parameter.take(stored, &all);
                blocks.push((stored.name.clone(), stored.shape.clone(), numbers));
            }
            whole.push((parameter.name.clone(), variable.dims().to_vec(), all));
        }
        for dtype in [StoredDtype::F32, StoredDtype::Bf16] {
            let parameters = model.layout().iter().zip(model.variables());
            let saved = parameters.flat_map(|(parameter, variable)| {
                let stored = parameter.stored.iter();
                stored.map(move |stored| SavedTensor::of(parameter, stored, variable))
            });
            write_tensors(&file, saved.collect(), metadata.clone(), dtype).unwrap();
            let written = std::fs::read(&file).unwrap();
            assert!(written == serialized(&blocks, metadata.clone(), dtype));
        }
        let parameters = model.parameters();
        let saved = parameters.map(|(name, variable)| SavedTensor::whole(name, variable));
        write_tensors(&file, saved.collect(), HashMap::new(), StoredDtype::F32).unwrap();
        let written = std::fs::read(&file).unwrap();
        assert!(written == serialized(&whole, HashMap::new(), StoredDtype::F32));
    }

    #[test]
    fn every_tensor_is_read_as_it_was_written_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.safetensors");
        // The longer one is read in several parts.
        let lengths = [("b", 2 * CHUNK + 5), ("a", 3)];
        let variables = lengths.map(|(name, length)| {
            let numbers: Vec<f32> = (0..length).map(|x| x as f32 / 7.0).collect();
            (
                name,
                numbers.clone(),
                Var::from_vec(numbers, length, &Device::Cpu).unwrap(),
            )
        });
        let saved = variables
            .iter()
            .map(|(name, _, variable)| SavedTensor::whole(name, variable));
        let metadata = HashMap::from([("steps".to_owned(), "7".to_owned())]);
        write_tensors(&file, saved.collect(), metadata, StoredDtype::F32).unwrap();
        let mut tensors = TensorFile::open(&file).unwrap();
        assert_eq!(tensors.metadata("steps"), Some("7"));
        let shapes: Vec<_> = tensors.shapes().collect();
        assert_eq!(shapes, [("a", &[3][..]), ("b", &[2 * CHUNK + 5][..])]);
        for (name, numbers, _) in &variables {
            assert_eq!(&tensors.read(name).unwrap(), numbers);
        }
    }
}
