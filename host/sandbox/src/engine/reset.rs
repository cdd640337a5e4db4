//! Reset: the memory of an instance is set back for the next one in its place.

use std::{fmt, fs};

use serde::Serialize;
use wasmtime::{Enabled, PoolingAllocationConfig};

/// Bytes kept resident of the memory of a free place, and of its tables. 4 MiB is no faster; 64 KiB makes searches take
/// twice as long.
const KEPT_BYTES: usize = 1 << 20;

/// Way in which the memory of an instance is set back for the next one in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// The kernel names the pages that were written, and these are copied over from the image.
    Copying,
    /// Everything is unmapped and faulted in again, because the kernel cannot name written pages: Linux can from 6.7 on.
    /// Calls cost up to ten times as much.
    Unmapping,
    /// Everything is unmapped, because the machine swaps: wasmtime's question to the kernel misses written pages that are
    /// swapped out, so the next instance would find them.
    UnmappingForSwap,
}

impl Reset {
    /// The way that works on this machine.
    pub(crate) fn for_machine() -> Self {
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        Self::from_swaps(PoolingAllocationConfig::is_pagemap_scan_available(), &swaps)
    }

    /// The way for a machine with the swap areas in `swaps`, a table with a line of titles.
    fn from_swaps(can_ask: bool, swaps: &str) -> Self {
        if !can_ask {
            Self::Unmapping
        } else if swaps.lines().skip(1).any(|line| !line.trim().is_empty()) {
            Self::UnmappingForSwap
        } else {
            Self::Copying
        }
    }

    pub(crate) fn configure(self, pooling: &mut PoolingAllocationConfig) {
        let asks = self == Self::Copying;
        pooling
            .pagemap_scan(if asks { Enabled::Yes } else { Enabled::No })
            // Without the kernel's list of written pages, everything kept would be copied after each call, written or
            // not.
            .linear_memory_keep_resident(if asks { KEPT_BYTES } else { 0 })
            .table_keep_resident(if asks { KEPT_BYTES } else { 0 });
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Copying => "after a call, the pages that it wrote are restored by copying",
            Self::Unmapping => {
                "after a call, its memory is unmapped, which is slower: before Linux 6.7 written pages cannot be asked for"
            }
            Self::UnmappingForSwap => {
                "after a call, its memory is unmapped, which is slower: this machine swaps (`swapoff -a` makes it fast)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Reset;

    const TITLES: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    #[test]
    fn only_a_machine_that_does_not_swap_copies() {
        let swapping = format!(
            "{TITLES}/dev/zram0                              partition\t8388604\t\t0\t\t100\n"
        );
        assert_eq!(Reset::from_swaps(true, TITLES), Reset::Copying);
        assert_eq!(Reset::from_swaps(true, ""), Reset::Copying);
        assert_eq!(Reset::from_swaps(true, &swapping), Reset::UnmappingForSwap);
        assert_eq!(Reset::from_swaps(false, &swapping), Reset::Unmapping);
    }
}
