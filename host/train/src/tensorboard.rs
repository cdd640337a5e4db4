//! TensorBoard event files with scalars. The format is two small protobuf messages and a checksum, so it
//! is written by hand: the crates for it would bring a protobuf compiler's runtime.
//!
//! The record format is that of TensorFlow's `record_writer.h`: length (u64), masked CRC-32C of the
//! length, data, masked CRC-32C of the data, all little-endian. The messages are
//! `tensorboard/compat/proto/event.proto` and `summary.proto`.

/// The first record of every file.
pub fn header(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_bytes(&mut event, 3, b"brain.Event:2");
    record(&event)
}

/// One record with the scalars of one step. `wall_time` in seconds since 1970.
pub fn scalars<'a>(
    wall_time: f64,
    step: u64,
    values: impl IntoIterator<Item = (&'a str, f64)>,
) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, tag.as_bytes());
        put_float(&mut entry, 2, value as f32);
        put_bytes(&mut summary, 1, &entry);
    }
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_key(&mut event, 2, 0);
    put_varint(&mut event, step);
    put_bytes(&mut event, 5, &summary);
    record(&event)
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + 16);
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked_crc(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&masked_crc(data).to_le_bytes());
    out
}

/// Writes the key of a field. Wire types of protobuf: 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes.
fn put_key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    put_varint(out, field << 3 | wire_type);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    put_key(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_float(out: &mut Vec<u8>, field: u64, value: f32) {
    put_key(out, field, 5);
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(out, field, 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The checksum as TensorFlow masks it, because stored checksums may be checksummed again
/// (`tensorflow/core/lib/hash/crc32c.h`).
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), reflected, bit by bit: a few hundred bytes a step.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| {
        if crc & 1 == 1 {
            crc >> 1 ^ 0x82f6_3b78
        } else {
            crc >> 1
        }
    };
    !bytes
        .iter()
        .fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnoli() {
        // RFC 3720, appendix B.4, and the check value of the CRC catalogue.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    /// Written by tensorboard 2.21 (`RecordWriter` over `event_pb2.Event`).
    #[test]
    fn records_are_those_that_tensorboard_writes() {
        let hex = |bytes: &[u8]| -> String {
            bytes
                .iter()
                .flat_map(|b| [b >> 4, b & 15])
                .filter_map(|d| char::from_digit(d.into(), 16))
                .collect()
        };
        assert_eq!(
            hex(&header(1_700_000_000.5)),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110"
        );
        let values = [("rl/loss", -0.25), ("rl/kl", 0.5)];
        assert_eq!(
            hex(&scalars(1_700_000_001.5, 300, values)),
            "2c00000000000000f4aecc450900006040fc54d94110ac022a1e0a0e0a07726c2f6c6f737315000080be\
             0a0c0a05726c2f6b6c150000003f597ca046"
        );
    }
}
