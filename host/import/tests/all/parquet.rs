//! Parquet files hold the same rows as JSON lines. The files are written here, column by column: definition levels
//! say how much of a path exists, repetition levels say where a list continues.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use rlf_import::{ImportError, Imported, Options, read, rows};
use serde_json::{Value, json};

use crate::support::*;

const SCHEMA: &str = "
message schema {
  required binary data_source (STRING);
  required group prompt (LIST) {
    repeated group list {
      required group element {
        required binary role (STRING);
        optional binary content (STRING);
      }
    }
  }
  required group reward_model {
    required group ground_truth {
      required group target (LIST) {
        repeated group list { required binary element (STRING); }
      }
    }
  }
  optional group extra_info {
    optional int64 index;
    optional binary split (STRING);
  }
}";

fn texts(
    group: &mut SerializedRowGroupWriter<std::fs::File>,
    texts: &[&str],
    definition: &[i16],
    repetition: &[i16],
) {
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(*text)).collect();
    column
        .typed::<ByteArrayType>()
        .write_batch(&values, Some(definition), Some(repetition))
        .unwrap();
    column.close().unwrap();
}

/// Two rows: one with a prompt of two messages and two targets, one with a message without content and no extra.
fn write(path: &Path, compression: Compression) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    texts(&mut group, &["nq", "hotpotqa"], &[0, 0], &[0, 0]);
    texts(
        &mut group,
        &["system", "user", "user"],
        &[1, 1, 1],
        &[0, 1, 0],
    );
    texts(
        &mut group,
        &["Be short.", "Who wrote Faust?"],
        &[2, 2, 1],
        &[0, 1, 0],
    );
    texts(
        &mut group,
        &["Goethe", "J. W. Goethe", "yes"],
        &[1, 1, 1],
        &[0, 1, 0],
    );
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(&[7], Some(&[2, 0]), None)
        .unwrap();
    column.close().unwrap();
    texts(&mut group, &[], &[1, 0], &[0, 0]);
    group.close().unwrap();
    writer.close().unwrap();
}

fn as_json(imported: &[Imported]) -> Vec<Value> {
    let task = |row: &Imported| match row {
        Imported::Task(task) => serde_json::to_value(task).unwrap(),
        Imported::Demonstration(_) => panic!("a task was expected"),
    };
    imported.iter().map(task).collect()
}

#[test]
fn nested_lists_and_structs_come_as_in_json_whatever_they_are_packed_with() {
    let folder = tempfile::tempdir().unwrap();
    let same = import(
        &[
            json!({"data_source": "nq", "reward_model": {"ground_truth": {"target": ["Goethe", "J. W. Goethe"]}},
                "prompt": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Who wrote Faust?"}],
                "extra_info": {"index": 7}}),
            json!({"data_source": "hotpotqa", "reward_model": {"ground_truth": {"target": ["yes"]}},
                "prompt": [{"role": "user"}]}),
        ],
        &Options::default(),
    );
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ] {
        let path = folder.path().join("rows.parquet");
        write(&path, compression);
        let imported = read(&path, &Options::default()).unwrap();
        assert_eq!(
            as_json(&imported),
            as_json(same.as_ref().unwrap()),
            "{compression}"
        );
        assert_eq!(imported[0].id(), "7");
    }
}

#[test]
fn what_is_no_parquet_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    for bytes in ["", "PAR1", "{\"question\": \"a\"}", "PAR1PAR1"] {
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path, &Options::default()).unwrap_err();
        assert!(
            matches!(error, ImportError::Parquet { .. }) && !error.is_of_a_row(),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_ends_in_rows_or_an_error(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write(&path, Compression::SNAPPY);
        let mut bytes = std::fs::read(&path).unwrap();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        std::fs::write(&path, bytes).unwrap();
        if let Ok(rows) = rows(&path, &Options::default()) {
            prop_assert!(rows.take(1000).count() < 1000);
        }
    }
}
