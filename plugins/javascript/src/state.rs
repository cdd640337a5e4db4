//! State that a program's run keeps outside the engine: its files, its input, and how far it is.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use crate::files::Files;

/// The state that the engine's functions share.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) files: RefCell<Files>,
    pub(crate) stdin: RefCell<Vec<u8>>,
    /// Made by `compile`, by name.
    pub(crate) compiled: RefCell<BTreeMap<String, Vec<u8>>>,
    /// The modules of the SDK can be imported: what runs is a plugin.
    pub(crate) is_plugin: Cell<bool>,
    random: Cell<u64>,
    /// Set by `process.exit`.
    pub(crate) exit: Cell<Option<i32>>,
    /// The program was parsed, and runs.
    pub(crate) started: Cell<bool>,
}

impl State {
    /// SplitMix64 (Steele, Lea and Flood 2014).
    pub(crate) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.random.set(seed);
    }
}
