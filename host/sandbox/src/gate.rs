//! Gates: ways out of the sandbox, opened to a plugin one by one.
//!
//! This crate knows none of them. Whoever loads a component hands in the gates that the operator opened
//! to it; each links its interface, and its host functions find it again in the [`State`] of the call
//! they are called from, with what that call has left. A component that imports a gate which is not
//! handed in does not load, and `init`, which must not depend on the world, finds every gate shut.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Linker;

use crate::state::State;

/// One way out, as it is opened to one plugin.
pub trait Gate: Any + Send + Sync {
    /// The interface it serves, without a version: `rlf:plugin/http`.
    fn interface(&self) -> &'static str;

    /// Links that interface. Its functions reach this gate through [`State::gate`].
    fn link(&self, linker: &mut Linker<State>) -> Result<()>;
}

/// The gates of one template.
#[derive(Clone, Default)]
pub(crate) struct Gates(Arc<[Arc<dyn Gate>]>);

impl Gates {
    pub(crate) fn new(gates: &[Arc<dyn Gate>]) -> Self {
        Self(Arc::from(gates))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn interfaces(&self) -> Vec<&'static str> {
        self.0.iter().map(|gate| gate.interface()).collect()
    }

    pub(crate) fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        self.0.iter().try_for_each(|gate| gate.link(linker))
    }

    pub(crate) fn find<G: Gate>(&self) -> Option<&G> {
        self.0
            .iter()
            .find_map(|gate| (&**gate as &dyn Any).downcast_ref())
    }
}

/// What gates keep for the time of one call, by type.
#[derive(Default)]
pub(crate) struct Kept(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Kept {
    pub(crate) fn get_or_make<T: Any + Send + Sync>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        self.0
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(make()))
            .downcast_mut()
            .expect("kept under its own type")
    }
}
