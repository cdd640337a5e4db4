//! Reduces the number of data segments. A snapshot has up to ten thousand, and every instance writes a record of each
//! into its own memory.

use wasm_encoder::{ConstExpr, DataSection, Encode};
use wasmparser::{BinaryReader, DataKind, DataSectionReader, Operator, Result};

/// Maximum number of zeros between two segments that are joined.
const GAP: usize = 4096;
/// Bytes of magic, version and layer, in a module and in a component.
const HEADER_BYTES: usize = 8;
/// Most bytes of a data section that a segment takes besides its content, and the number of segments.
const SEGMENT_BYTES: usize = 16;
/// Kind of a segment that is placed into the first memory.
const OF_FIRST_MEMORY: u32 = 0;
/// Id of a component's section that is a module.
pub(super) const MODULE: u8 = 1;
/// Ids of a module's sections.
pub(super) const DATA: u8 = 11;
pub(super) const DATA_COUNT: u8 = 12;

/// Joins data segments that are close together. A component that cannot be read is returned unchanged.
pub(super) fn join(component: &[u8]) -> Vec<u8> {
    let joined = rewritten(component, |id, body| match id {
        MODULE => Ok(Some(encoded(module(body)?.as_slice()))),
        _ => Ok(None),
    });
    joined.unwrap_or_else(|_| component.to_vec())
}

fn module(bytes: &[u8]) -> Result<Vec<u8>> {
    // If segments are not counted, no instruction refers to one by number, so their numbers may change.
    let mut are_named = false;
    rewritten(bytes, |id, _| {
        are_named |= id == DATA_COUNT;
        Ok(None)
    })?;
    rewritten(bytes, |id, body| match id {
        DATA if !are_named => data_section(body),
        _ => Ok(None),
    })
}

fn encoded(value: &(impl Encode + ?Sized)) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

/// Copies sections. `other` may replace the content of a section, encoded with its size.
fn rewritten(
    bytes: &[u8],
    mut other: impl FnMut(u8, &[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<u8>> {
    let parts = sections(bytes)?;
    let mut copy = Vec::with_capacity(bytes.len());
    copy.extend_from_slice(&bytes[..HEADER_BYTES]);
    for (id, body) in parts {
        copy.push(id);
        match other(id, body)? {
            Some(other) => copy.extend(other),
            None => body.encode(&mut copy),
        }
    }
    Ok(copy)
}

/// The sections of a module or component, each with its id.
pub(super) fn sections(bytes: &[u8]) -> Result<Vec<(u8, &[u8])>> {
    let mut reader = BinaryReader::new(bytes, 0);
    reader.read_bytes(HEADER_BYTES)?;
    let mut sections = Vec::new();
    while !reader.eof() {
        let id = reader.read_u8()?;
        let size = reader.read_var_u32()? as usize;
        sections.push((id, reader.read_bytes(size)?));
    }
    Ok(sections)
}

/// The data section with segments joined; `None` if they are not in order.
fn data_section(body: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut segments: Vec<Segment> = Vec::new();
    // Of the segments so far.
    let mut end = 0;
    for data in DataSectionReader::new(BinaryReader::new(body, 0))? {
        let data = data?;
        let place = match &data.kind {
            DataKind::Active {
                memory_index: 0,
                offset_expr,
            } => {
                // Segments that are not in order may overlap the zeros between two others. A snapshot's are in order.
                let place = constant(offset_expr)?.filter(|place| u64::from(*place) >= end);
                let Some(place) = place else {
                    return Ok(None);
                };
                end = u64::from(place) + data.data.len() as u64;
                Some(place)
            }
            _ => None,
        };
        let joined = match (place, segments.last_mut()) {
            (Some(place), Some(last)) => last.take(place, data.data),
            _ => false,
        };
        if !joined {
            segments.push(match place {
                Some(place) => Segment::Placed(place, data.data.to_vec()),
                None => Segment::Other(body[data.range].to_vec()),
            });
        }
    }
    let mut section = DataSection::new();
    for segment in segments {
        match segment {
            Segment::Placed(place, data) => {
                section.active(0, &ConstExpr::i32_const(place.cast_signed()), data)
            }
            Segment::Other(written) => section.raw(&written),
        };
    }
    Ok(Some(encoded(&section)))
}

/// The content of a data section that places these bytes into the first memory, each at its address. What is close together
/// is one segment.
pub(super) fn placed(segments: &[(u32, &[u8])]) -> Vec<u8> {
    let end = |&(place, data): &(u32, &[u8])| place as usize + data.len();
    // Segments that are not in order may overlap the zeros between two others. A snapshot's are in order.
    let are_in_order = segments.is_sorted_by(|one, next| end(one) <= next.0 as usize);
    let joined: Vec<_> = segments
        .chunk_by(|one, next| are_in_order && next.0 as usize - end(one) <= GAP)
        .collect();
    let length = joined
        .iter()
        .map(|run| end(&run[run.len() - 1]) - run[0].0 as usize);
    let mut section = Vec::with_capacity(length.sum::<usize>() + joined.len() * SEGMENT_BYTES);
    joined.len().encode(&mut section);
    for run in joined {
        let (start, last) = (run[0].0 as usize, end(&run[run.len() - 1]));
        OF_FIRST_MEMORY.encode(&mut section);
        ConstExpr::i32_const(run[0].0.cast_signed()).encode(&mut section);
        (last - start).encode(&mut section);
        let begin = section.len();
        for (place, data) in run {
            section.resize(begin + *place as usize - start, 0);
            section.extend_from_slice(data);
        }
    }
    section
}

/// The value of a constant expression of 32 bits. `None` for any other expression.
pub(super) fn constant(expression: &wasmparser::ConstExpr<'_>) -> Result<Option<u32>> {
    let mut operators = expression.get_operators_reader();
    let first = operators.read()?;
    Ok(match (first, operators.read()?) {
        (Operator::I32Const { value }, Operator::End) => Some(value.cast_unsigned()),
        _ => None,
    })
}

enum Segment {
    /// A segment of the first memory, at an address.
    Placed(u32, Vec<u8>),
    /// Any other segment, as it was written.
    Other(Vec<u8>),
}

impl Segment {
    /// Appends the data at `place`, if `place` is close enough to the end.
    fn take(&mut self, place: u32, data: &[u8]) -> bool {
        let Self::Placed(start, held) = self else {
            return false;
        };
        let Some(at) = place.checked_sub(*start).map(|at| at as usize) else {
            return false;
        };
        if at < held.len() || at - held.len() > GAP {
            return false;
        }
        held.resize(at, 0);
        held.extend_from_slice(data);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{GAP, Segment, join, module, placed};
    use proptest::prelude::*;
    use wasmparser::{BinaryReader, DataKind, DataSectionReader};

    fn module_with(segments: &str) -> Vec<u8> {
        wat::parse_str(format!("(module (memory 4) (memory 1) {segments})")).unwrap()
    }

    #[test]
    fn what_lies_close_is_one_segment() {
        let apart = module_with(
            r#"(data (i32.const 8) "ab") (data (i32.const 16) "c") (data (i32.const 17) "d")
               (data (i32.const 200000) "e") (data (memory 1) (i32.const 0) "f") (data (i32.const -1) "")"#,
        );
        let together = module_with(
            r#"(data (i32.const 8) "ab\00\00\00\00\00\00cd") (data (i32.const 200000) "e")
               (data (memory 1) (i32.const 0) "f") (data (i32.const -1) "")"#,
        );
        assert_eq!(module(&apart).unwrap(), together);
        assert_eq!(module(&together).unwrap(), together);
    }

    #[test]
    fn what_is_in_no_order_stays_as_it_is() {
        for segments in [
            r#"(data (i32.const 4) "b") (data (i32.const 0) "a") (data (i32.const 8) "c")"#,
            r#"(data (i32.const 0) "abc") (data (i32.const 2) "d")"#,
            r#"(global i32 (i32.const 4)) (data (i32.const 0) "a") (data (global.get 0) "b") (data (i32.const 8) "c")"#,
        ] {
            let module_bytes = module_with(segments);
            assert_eq!(module(&module_bytes).unwrap(), module_bytes);
        }
    }

    #[test]
    fn segments_that_an_instruction_may_name_keep_their_numbers() {
        let named = module_with(
            r#"(data (i32.const 8) "a") (data (i32.const 9) "b") (data "c") (func (data.drop 2))"#,
        );
        assert_eq!(module(&named).unwrap(), named);
    }

    #[test]
    fn modules_in_a_component_are_joined_and_all_else_stays() {
        let component = |data: &str| {
            wat::parse_str(format!(
                r#"(component (core module (memory 1) {data}) (component $inner (core module)) (export "inner" (component $inner)))"#
            ))
            .unwrap()
        };
        let apart = component(r#"(data (i32.const 0) "a") (data (i32.const 3) "b")"#);
        let together = component(r#"(data (i32.const 0) "a\00\00b")"#);
        assert_eq!(join(&apart), together);
        assert_eq!(join(b"\0asm, or not"), b"\0asm, or not");
    }

    #[test]
    fn what_would_be_overwritten_is_not_joined() {
        let mut segment = Segment::Placed(8, b"abc".to_vec());
        assert!(!segment.take(10, b"x"));
        assert!(!segment.take(7, b"x"));
        assert!(segment.take(11, b"d"));
        assert!(matches!(segment, Segment::Placed(8, data) if data == b"abcd"));
    }

    proptest! {
        #[test]
        fn memory_is_the_same(
            mut segments in proptest::collection::vec((0u32..70_000, 0usize..3_000, 1u8..), 0..8),
            are_in_order: bool,
        ) {
            if are_in_order {
                segments.sort_unstable();
            }
            let fill = |data: &[(u32, Vec<u8>)]| {
                let mut memory = vec![0; 80_000];
                for (place, bytes) in data {
                    memory[*place as usize..][..bytes.len()].copy_from_slice(bytes);
                }
                memory
            };
            let texts: Vec<String> = segments
                .iter()
                .map(|(place, size, byte)| {
                    format!("(data (i32.const {place}) \"{}\")", format!("\\{byte:02x}").repeat(*size))
                })
                .collect();
            let wanted: Vec<_> = segments.iter().map(|(place, size, byte)| (*place, vec![*byte; *size])).collect();
            let joined = module(&module_with(&texts.concat())).unwrap();
            let mut found = Vec::new();
            for payload in wasmparser::Parser::new(0).parse_all(&joined) {
                if let wasmparser::Payload::DataSection(section) = payload.unwrap() {
                    for data in section {
                        let data = data.unwrap();
                        let wasmparser::DataKind::Active { offset_expr, .. } = data.kind else { panic!() };
                        found.push((super::constant(&offset_expr).unwrap().unwrap(), data.data.to_vec()));
                    }
                }
            }
            prop_assert!(found.len() <= wanted.len());
            prop_assert_eq!(fill(&found), fill(&wanted));
            // The same data, written as the section of an image.
            let given: Vec<(u32, &[u8])> = wanted.iter().map(|(place, data)| (*place, &data[..])).collect();
            let section = placed(&given);
            let mut found = Vec::new();
            for data in DataSectionReader::new(BinaryReader::new(&section, 0)).unwrap() {
                let data = data.unwrap();
                let DataKind::Active { memory_index: 0, offset_expr } = data.kind else { panic!() };
                found.push((super::constant(&offset_expr).unwrap().unwrap(), data.data.to_vec()));
            }
            prop_assert!(found.len() <= wanted.len());
            prop_assert_eq!(fill(&found), fill(&wanted));
        }

        #[test]
        fn an_image_has_one_segment_for_what_lies_close(gap in 0..=2 * GAP) {
            let section = placed(&[(8, b"ab"), (10 + gap as u32, b"c")]);
            let segments = DataSectionReader::new(BinaryReader::new(&section, 0)).unwrap().count();
            prop_assert_eq!(segments, if gap <= GAP { 1 } else { 2 });
        }
    }
}
