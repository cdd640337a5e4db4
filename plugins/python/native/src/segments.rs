//! Fewer data segments: an instance keeps a record of each, written when it is made, and a snapshot has ten thousand of them.

use anyhow::{Result, bail};
use wasm_encoder::{
    ConstExpr, DataCountSection, DataSection, DataSegment, DataSegmentMode, Module, RawSection,
};
use wasmparser::{Data, DataKind, Operator, Parser, Payload};

/// Zeros between two segments that are not worth a segment more.
const GAP: usize = 4096;

/// The module with segments joined that lie close together.
pub(crate) fn join(module: &[u8]) -> Result<Vec<u8>> {
    let mut joined = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::DataSection(section) = payload? {
            for data in section {
                add(&mut joined, &data?)?;
            }
        }
    }
    let mut encoded = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        match &payload {
            Payload::DataCountSection { .. } => {
                encoded.section(&DataCountSection {
                    count: u32::try_from(joined.len())?,
                });
            }
            Payload::DataSection(_) => {
                let mut section = DataSection::new();
                for segment in &joined {
                    let offset = segment
                        .offset
                        .map(|offset| ConstExpr::i32_const(offset as i32));
                    let mode = match &offset {
                        Some(offset) => DataSegmentMode::Active {
                            memory_index: 0,
                            offset,
                        },
                        None => DataSegmentMode::Passive,
                    };
                    section.segment(DataSegment {
                        mode,
                        data: segment.data.iter().copied(),
                    });
                }
                encoded.section(&section);
            }
            _ => {
                if let Some((id, range)) = payload.as_section() {
                    let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
                    encoded.section(&RawSection {
                        id,
                        data: &module[range],
                    });
                }
            }
        }
    }
    Ok(encoded.finish())
}

struct Segment {
    /// Its address in memory; none until an instruction sets one.
    offset: Option<u32>,
    data: Vec<u8>,
}

impl Segment {
    /// Takes in what begins at `offset`, if that is not far behind the end.
    fn take(&mut self, offset: u32, data: &[u8]) -> bool {
        let Some(start) = self.offset else {
            return false;
        };
        let Some(at) = offset.checked_sub(start).map(|at| at as usize) else {
            return false;
        };
        if at < self.data.len() || at - self.data.len() > GAP {
            return false;
        }
        self.data.resize(at, 0);
        self.data.extend_from_slice(data);
        true
    }
}

fn add(joined: &mut Vec<Segment>, segment: &Data<'_>) -> Result<()> {
    let offset = match &segment.kind {
        // Instructions name it by its place in the list.
        DataKind::Passive if joined.iter().any(|segment| segment.offset.is_some()) => {
            bail!("a passive segment behind an active one");
        }
        DataKind::Passive => None,
        DataKind::Active {
            memory_index: 0,
            offset_expr,
        } => match offset_expr.get_operators_reader().read()? {
            Operator::I32Const { value } => Some(value.cast_unsigned()),
            other => bail!("a segment's place is computed: {other:?}"),
        },
        DataKind::Active { memory_index, .. } => bail!("a segment of memory {memory_index}"),
    };
    if let (Some(offset), Some(last)) = (offset, joined.last_mut())
        && last.take(offset, segment.data)
    {
        return Ok(());
    }
    joined.push(Segment {
        offset,
        data: segment.data.to_vec(),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Segment, join};
    use wasm_encoder::{ConstExpr, DataSection, MemorySection, MemoryType, Module};

    fn module(segments: &[(i32, &[u8])]) -> Vec<u8> {
        let mut memory = MemorySection::new();
        memory.memory(MemoryType {
            minimum: 1,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut data = DataSection::new();
        data.passive([7, 7]);
        for (offset, bytes) in segments {
            data.active(0, &ConstExpr::i32_const(*offset), bytes.iter().copied());
        }
        let mut module = Module::new();
        module.section(&memory).section(&data);
        module.finish()
    }

    #[test]
    fn what_lies_close_is_one_segment_and_what_is_passive_keeps_its_place() {
        let apart = module(&[(8, b"ab"), (16, b"c"), (17, b"d"), (20_000, b"e")]);
        let together = module(&[(8, b"ab\0\0\0\0\0\0cd"), (20_000, b"e")]);
        assert_eq!(join(&apart).unwrap(), together);
        assert_eq!(join(&together).unwrap(), together);
    }

    #[test]
    fn what_would_be_overwritten_is_not_joined() {
        let mut segment = Segment {
            offset: Some(8),
            data: b"abc".to_vec(),
        };
        assert!(!segment.take(10, b"x"));
        assert!(!segment.take(7, b"x"));
        assert!(segment.take(11, b"d"));
        assert_eq!(segment.data, b"abcd");
    }
}
