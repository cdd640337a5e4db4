//! The rows of a JSON file, one after the other: JSON lines, or the items of arrays. At most one row is in memory at
//! a time.

use std::io::{BufRead, Error, Read};

use serde_json::Value;

use crate::error::RowError;

/// The reason why the next row could not be read.
#[derive(Debug)]
pub(crate) enum NoRow {
    /// The file could not be read further, or a row is too large. No row follows.
    Io(Error),
    /// The text at this line is not JSON.
    Bad(usize, RowError),
}

impl NoRow {
    fn bad(line: usize, message: impl Into<String>) -> Self {
        Self::Bad(line, RowError::Row(message.into()))
    }
}

/// Maximum size of a row that is read, in bytes. The largest published rows, with images in them, have some megabytes.
const MAX_ROW_BYTES: usize = 64 << 20;

/// Iterator over the rows of a JSON file, each with the line that it begins in.
#[derive(Debug)]
pub(crate) struct JsonRows<R> {
    reader: R,
    /// Maximum size of a row, in bytes.
    max_row: usize,
    shape: Shape,
    /// The line that is read next, from 1.
    line: usize,
    /// True if an array was read before.
    after_array: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Unknown,
    Lines,
    Items,
    Done,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: BufRead> JsonRows<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            max_row: MAX_ROW_BYTES,
            shape: Shape::Unknown,
            line: 1,
            after_array: false,
        }
    }

    /// Ends the rows at one that is too large: nobody knows where it ends.
    fn too_large(&mut self, line: usize) -> NoRow {
        self.shape = Shape::Done;
        NoRow::Io(Error::other(format!(
            "the row in line {line} has more than {} bytes; write each row in a line of its own, or the file as one array of \
             rows",
            self.max_row
        )))
    }

    /// Skips white space and a byte order mark, then recognises the shape by the next byte.
    fn next_shape(&mut self) -> Result<Shape, Error> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(Shape::Done);
            }
            let marked = self.line == 1 && buffer.starts_with(BYTE_ORDER_MARK);
            let start = if marked { BYTE_ORDER_MARK.len() } else { 0 };
            let rest = &buffer[start..];
            let space = rest
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            self.line += rest[..space]
                .iter()
                .map(|byte| usize::from(*byte == b'\n'))
                .sum::<usize>();
            let first = rest.get(space).copied();
            // The bracket of an array is read here, once.
            let array = first == Some(b'[');
            self.reader.consume(start + space + usize::from(array));
            match first {
                Some(b'[') => return Ok(Shape::Items),
                Some(_) => return Ok(Shape::Lines),
                None => {}
            }
        }
    }

    fn next_line(&mut self) -> Option<Result<(usize, Value), NoRow>> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let mut line = self.reader.by_ref().take(self.max_row as u64 + 1);
            match line.read_until(b'\n', &mut bytes) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    self.shape = Shape::Done;
                    return Some(Err(NoRow::Io(error)));
                }
            }
            let line = self.line;
            if bytes.len() > self.max_row {
                return Some(Err(self.too_large(line)));
            }
            self.line += 1;
            if bytes.iter().any(|byte| !byte.is_ascii_whitespace()) {
                let value = rlf_json::from_slice(&bytes).map_err(|error| {
                    if self.after_array {
                        let message =
                            "something follows the array: a file has arrays, or JSON lines";
                        return NoRow::bad(line, message);
                    }
                    let hint = if error.is_eof() {
                        "; a row stands in one line, or the file is one array of rows"
                    } else {
                        ""
                    };
                    NoRow::bad(line, format!("not JSON: {error}{hint}"))
                });
                return Some(value.map(|value| (line, value)));
            }
        }
    }

    fn next_item(&mut self) -> Option<Result<(usize, Value), NoRow>> {
        let mut item = Vec::new();
        let mut start = self.line;
        let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) => {
                    self.shape = Shape::Done;
                    return Some(Err(NoRow::Io(error)));
                }
            };
            if buffer.is_empty() {
                self.shape = Shape::Done;
                return Some(Err(NoRow::bad(start, "the array is not closed with ]")));
            }
            let mut read = 0;
            let mut closed = None;
            for byte in buffer {
                read += 1;
                if *byte == b'\n' {
                    self.line += 1;
                }
                if item.is_empty() && byte.is_ascii_whitespace() {
                    start = self.line;
                    continue;
                }
                if in_text {
                    in_text = escaped || *byte != b'"';
                    escaped = !escaped && *byte == b'\\';
                } else {
                    match byte {
                        b'"' => in_text = true,
                        b'{' | b'[' => depth += 1,
                        b',' | b']' if depth == 0 => {
                            closed = Some(*byte);
                            break;
                        }
                        b'}' | b']' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                }
                item.push(*byte);
            }
            self.reader.consume(read);
            if item.len() > self.max_row {
                return Some(Err(self.too_large(start)));
            }
            if closed == Some(b']') {
                // Another array may follow, but nothing else may be skipped.
                self.shape = Shape::Unknown;
                self.after_array = true;
            }
            if closed.is_some() && !item.is_empty() {
                let value = rlf_json::from_slice(&item)
                    .map_err(|error| NoRow::bad(start, format!("not JSON: {error}")));
                return Some(value.map(|value| (start, value)));
            }
            if self.shape == Shape::Unknown {
                return None;
            }
            if closed.is_some() {
                start = self.line;
            }
        }
    }
}

impl<R: BufRead> Iterator for JsonRows<R> {
    type Item = Result<(usize, Value), NoRow>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.shape == Shape::Unknown {
                match self.next_shape() {
                    Ok(shape) => self.shape = shape,
                    Err(error) => {
                        self.shape = Shape::Done;
                        return Some(Err(NoRow::Io(error)));
                    }
                }
            }
            let row = match self.shape {
                Shape::Lines => self.next_line(),
                Shape::Items => self.next_item(),
                Shape::Unknown | Shape::Done => None,
            };
            if row.is_some() || self.shape != Shape::Unknown {
                return row;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _};

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{JsonRows, NoRow};

    /// Reads through a buffer of `capacity` bytes, so that rows cross its ends.
    fn read(text: &str, capacity: usize) -> Vec<Result<(usize, Value), usize>> {
        JsonRows::new(BufReader::with_capacity(capacity, text.as_bytes()))
            .map(|row| {
                row.map_err(|error| match error {
                    NoRow::Bad(line, _) => line,
                    NoRow::Io(error) => panic!("{error}"),
                })
            })
            .collect()
    }

    #[test]
    fn each_row_knows_the_line_it_begins_in() {
        let lines = "\u{feff}\n{\"a\":1}\n\n  {\"a\":2}\r\n";
        let array = "\n[\n {\"a\": 1},\n\n {\"a\":\n 2}\n]\n";
        for capacity in [1, 3, 7, 4096] {
            let two =
                |first, second| vec![Ok((first, json!({"a": 1}))), Ok((second, json!({"a": 2})))];
            if capacity > 3 {
                assert_eq!(read(lines, capacity), two(2, 4), "{capacity}");
            }
            assert_eq!(read(array, capacity), two(3, 5), "{capacity}");
        }
    }

    #[test]
    fn a_bad_row_does_not_hide_the_others() {
        assert_eq!(
            read("{\"a\":1}\n{\"a\":\n3\n", 16),
            [Ok((1, json!({"a": 1}))), Err(2), Ok((3, json!(3)))]
        );
        assert_eq!(
            read("[1, nothing,\n\"],[\\\"\"]", 4),
            [Ok((1, json!(1))), Err(1), Ok((2, json!("],[\"")))]
        );
        assert_eq!(read("[1,\n{", 16), [Ok((1, json!(1))), Err(2)]);
        assert_eq!(read("[]", 16), []);
        // Files of several arrays, one of which ends too early.
        let several = read("[1]\n[]\n[2,\n3]\n", 16);
        assert_eq!(
            several,
            [Ok((1, json!(1))), Ok((3, json!(2))), Ok((4, json!(3)))]
        );
        assert_eq!(read("[1]\n,{\"id\":", 16), [Ok((1, json!(1))), Err(2)]);
        assert_eq!(read(" \n", 16), []);
    }

    #[test]
    fn a_row_without_an_end_is_refused_before_it_fills_the_memory() {
        for text in ["{\"a\": 1}\n{\"b\": \"", "[{\"a\": 1},\n{\"b\": \""] {
            let endless = text.as_bytes().chain(std::io::repeat(b'x'));
            let mut rows = JsonRows::new(BufReader::new(endless));
            rows.max_row = 100_000;
            assert_eq!(rows.next().unwrap().unwrap(), (1, json!({"a": 1})));
            let Some(Err(NoRow::Io(error))) = rows.next() else {
                panic!("the row was read")
            };
            let error = error.to_string();
            assert!(
                error.starts_with("the row in line 2 has more than 100000 bytes"),
                "{error}"
            );
            assert!(rows.next().is_none(), "after it, nothing is read");
        }
    }

    #[test]
    fn a_line_of_exactly_the_largest_size_is_read() {
        let text = "{\"a\":1}\n{\"a\":2}\n";
        let mut rows = JsonRows::new(text.as_bytes());
        rows.max_row = 8;
        assert_eq!(rows.filter_map(Result::ok).count(), 2);
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were_written(
            texts in prop::collection::vec(".{0,12}", 1..6), pretty: bool, capacity in 1_usize..40,
        ) {
            let rows: Vec<Value> = texts.iter().map(|text| json!({"text": text, "list": [1, [text]]})).collect();
            let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
            let array = if pretty { serde_json::to_string_pretty(&rows) } else { serde_json::to_string(&rows) };
            for text in [lines.join("\n"), array.unwrap()] {
                let read = read(&text, capacity);
                let read: Vec<Value> = read.into_iter().map(|row| row.unwrap().1).collect();
                prop_assert_eq!(&read, &rows);
            }
        }

        #[test]
        fn no_bytes_are_too_wild(bytes in prop::collection::vec(any::<u8>(), 0..80), array: bool) {
            let bytes = if array { [b"[".as_slice(), &bytes].concat() } else { bytes };
            prop_assert!(JsonRows::new(bytes.as_slice()).count() <= bytes.len() + 1);
        }
    }
}
