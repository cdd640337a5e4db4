//! Memory limit: the sum of a guest's memories and tables.

use std::sync::Arc;

use wasmtime::{ResourceLimiter, Result};

use crate::record::Record;
use crate::report::LimitReached;

/// Size of a table's element: one pointer.
const ELEMENT_BYTES: u64 = 8;

/// Limit on the sum of all memories and tables of a store. A component may have many, and wasmtime's own `StoreLimits`
/// bounds each one alone.
pub(crate) struct MemoryLimiter {
    record: Arc<Record>,
    bytes: u64,
    elements: u64,
    /// Growth that was granted and may still fail.
    pending: (u64, u64),
}

impl MemoryLimiter {
    pub(crate) fn new(record: Arc<Record>) -> Self {
        Self {
            record,
            bytes: 0,
            elements: 0,
            pending: (0, 0),
        }
    }

    fn grow(&mut self, bytes: u64, elements: u64) -> bool {
        let limits = self.record.limits();
        let wanted_elements = self.elements.saturating_add(elements);
        let wanted_bytes = self.bytes.saturating_add(bytes);
        self.pending = (0, 0);
        let refused = if wanted_elements > limits.table_elements {
            LimitReached::new("table_elements", limits.table_elements, wanted_elements)
        } else if wanted_bytes > limits.memory_bytes {
            LimitReached::new("memory_bytes", limits.memory_bytes, wanted_bytes)
        } else {
            self.pending = (bytes, elements);
            self.bytes = wanted_bytes;
            self.elements = wanted_elements;
            self.record.note_memory(wanted_bytes);
            return true;
        };
        self.record.refuse_growth(refused);
        false
    }

    fn give_back(&mut self) {
        let (bytes, elements) = std::mem::take(&mut self.pending);
        self.bytes -= bytes;
        self.elements -= elements;
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        Ok(self.grow(desired.saturating_sub(current) as u64, 0))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> Result<()> {
        self.give_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        let elements = desired.saturating_sub(current) as u64;
        Ok(self.grow(elements.saturating_mul(ELEMENT_BYTES), elements))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> Result<()> {
        self.give_back();
        Ok(())
    }
}
