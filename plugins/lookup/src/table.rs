//! The table with its index.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use hashbrown::HashTable;

use crate::cells::Cells;
use crate::config::Config;
use crate::nearest::Letters;
use crate::read::Rows;

/// Rows by the name of their entity.
pub(crate) struct Table {
    columns: Vec<String>,
    keys: Cells,
    /// The keys in the form in which they are compared; the index and the nearest names use it.
    folded: Cells,
    letters: Vec<Letters>,
    /// Row by row, `columns.len()` cells each.
    cells: Cells,
    index: HashTable<u32>,
    ignore_case: bool,
}

/// The reason why rows are not a table of facts.
#[derive(Debug, PartialEq)]
pub(crate) enum TableError {
    Empty,
    NoColumn {
        wanted: String,
        known: Vec<String>,
    },
    NoOtherColumn(String),
    NoKey {
        row: usize,
        key: String,
    },
    Twice {
        key: String,
        ignore_case: bool,
    },
    TooLarge,
    /// An invalid name for the tool or one of its arguments.
    Name(String),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the table has no rows"),
            Self::NoColumn { wanted, known } => {
                write!(
                    f,
                    "configuration: the table has no column `{wanted}`; it has {}",
                    known.join(", ")
                )
            }
            Self::NoOtherColumn(key) => write!(f, "the table has no column beside its key `{key}`"),
            Self::NoKey { row, key } => {
                write!(f, "row {row} has nothing in the key column `{key}`")
            }
            Self::Twice {
                key,
                ignore_case: true,
            } => write!(
                f,
                "two rows are about `{key}`, upper and lower case being the same (ignore_case = false \
                 tells them apart)"
            ),
            Self::Twice {
                key,
                ignore_case: false,
            } => write!(f, "two rows are about `{key}`"),
            Self::TooLarge => f.write_str("the table is larger than 4 GiB"),
            Self::Name(name) => write!(
                f,
                "configuration: `{name}` cannot be the name of a tool or argument: 1 to 64 letters, digits, _ \
                 and -, and the two arguments differ"
            ),
        }
    }
}

impl Table {
    pub(crate) fn build(rows: Rows, config: &Config) -> Result<Self, TableError> {
        check_names(config)?;
        let Rows {
            columns: known,
            rows,
        } = rows;
        if rows.is_empty() {
            return Err(TableError::Empty);
        }
        let position = |wanted: &String| {
            known
                .iter()
                .position(|column| column == wanted)
                .ok_or_else(|| TableError::NoColumn {
                    wanted: wanted.clone(),
                    known: known.clone(),
                })
        };
        let key = config.key.as_ref().map_or(Ok(0), position)?;
        let shown: Vec<usize> = match &config.columns {
            Some(columns) => columns.iter().map(position).collect::<Result<_, _>>()?,
            None => (0..known.len()).filter(|column| *column != key).collect(),
        };
        if shown.is_empty() {
            return Err(TableError::NoOtherColumn(known[key].clone()));
        }

        let mut table = Self {
            columns: shown.iter().map(|column| known[*column].clone()).collect(),
            keys: Cells::default(),
            folded: Cells::default(),
            letters: Vec::with_capacity(rows.len()),
            cells: Cells::default(),
            index: HashTable::with_capacity(rows.len()),
            ignore_case: config.ignore_case,
        };
        for (number, row) in rows.iter().enumerate() {
            let cell = |column: usize| row.get(column).map_or("", String::as_str);
            if cell(key).is_empty() {
                return Err(TableError::NoKey {
                    row: number + 1,
                    key: known[key].clone(),
                });
            }
            let fits = shown.iter().all(|column| table.cells.push(cell(*column)));
            if !fits {
                return Err(TableError::TooLarge);
            }
            table.insert(cell(key))?;
        }
        Ok(table)
    }

    fn insert(&mut self, key: &str) -> Result<(), TableError> {
        let folded = self.fold(key);
        let hash = hash(&folded);
        let row = self.keys.len() as u32;
        if self
            .index
            .find(hash, |other| self.folded.get(*other as usize) == folded)
            .is_some()
        {
            return Err(TableError::Twice {
                key: key.to_owned(),
                ignore_case: self.ignore_case,
            });
        }
        if !(self.keys.push(key) && self.folded.push(&folded)) {
            return Err(TableError::TooLarge);
        }
        self.letters.push(Letters::new(&folded));
        let texts = &self.folded;
        self.index
            .insert_unique(hash, row, |other| self::hash(texts.get(*other as usize)));
        Ok(())
    }

    /// A key in the form in which it is compared: runs of white space are one space; lower case by default.
    fn fold(&self, key: &str) -> String {
        let spaced = key.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.ignore_case {
            spaced.to_lowercase()
        } else {
            spaced
        }
    }

    /// The row about an entity.
    pub(crate) fn row(&self, key: &str) -> Option<usize> {
        let folded = self.fold(key);
        self.index
            .find(hash(&folded), |row| {
                self.folded.get(*row as usize) == folded
            })
            .map(|row| *row as usize)
    }

    /// The entities whose names are nearest to an unknown one.
    pub(crate) fn nearest(&self, key: &str, count: usize) -> Vec<String> {
        let folded = self.fold(key);
        crate::nearest::nearest(&folded, &self.folded, &self.letters, count)
            .into_iter()
            .map(|row| self.keys.get(row).to_owned())
            .collect()
    }

    /// The columns that a call may name.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// The position of a column, in any case.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column == name)
            .or_else(|| {
                let name = name.trim().to_lowercase();
                self.columns
                    .iter()
                    .position(|column| column.to_lowercase() == name)
            })
    }

    pub(crate) fn column_name(&self, column: usize) -> &str {
        &self.columns[column]
    }

    pub(crate) fn key(&self, row: usize) -> &str {
        self.keys.get(row)
    }

    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        self.cells.get(row * self.columns.len() + column)
    }
}

fn check_names(config: &Config) -> Result<(), TableError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for name in [&config.name, &config.key_argument, &config.column_argument] {
        if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
            return Err(TableError::Name(name.clone()));
        }
    }
    if config.key_argument == config.column_argument {
        return Err(TableError::Name(config.key_argument.clone()));
    }
    Ok(())
}

/// Hashes with fixed keys: the same table gives the same memory, and no call asks for randomness.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}
