//! The state of an environment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::value::Value;

/// The entities of one kind by key. A record has the key as its first field.
pub(crate) type Table = BTreeMap<Arc<str>, Arc<[Value]>>;

/// Everything that an environment knows at one moment. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub(crate) values: Vec<Value>,
    pub(crate) tables: Vec<Arc<Table>>,
    /// The smallest number that the next generated key can have, for each entity. 1 for those without generated keys.
    pub(crate) next: Vec<i64>,
}

impl State {
    /// Number of entities of all kinds.
    pub fn size(&self) -> usize {
        self.tables.iter().map(|table| table.len()).sum()
    }
}
