//! Gates: ways out of the sandbox, opened to a plugin one by one.
//!
//! This crate knows none of them. Whoever loads a component hands in the gates that the operator opened
//! to it; each links its interface, and its host functions find it again in the [`State`] of the call
//! they are called from, with what that call has left. A component that imports a gate which is not
//! handed in does not load, and `init`, which must not depend on the world, finds every gate shut.

use std::any::Any;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Linker;

use super::state::State;

/// One way out, as it is opened to one plugin.
pub trait OpenGate: Any + Send + Sync {
    /// The interface it serves, without a version: `rlf:plugin/http`.
    fn interface(&self) -> &'static str;

    /// Links that interface. Its functions reach this gate through [`State::gate`].
    fn link(&self, linker: &mut Linker<State>) -> Result<()>;
}

/// The gates of one template.
#[derive(Clone, Default)]
pub(crate) struct Gates {
    gates: Arc<[Arc<dyn OpenGate>]>,
    opened: Arc<[Arc<dyn Any + Send + Sync>]>,
}

impl Gates {
    pub(crate) fn new(gates: &[Arc<dyn OpenGate>]) -> Self {
        let opened = gates.iter().cloned().map(|gate| gate as Arc<_>).collect();
        Self {
            gates: Arc::from(gates),
            opened,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    pub(crate) fn interfaces(&self) -> Vec<&'static str> {
        self.gates.iter().map(|gate| gate.interface()).collect()
    }

    pub(crate) fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        self.gates.iter().try_for_each(|gate| gate.link(linker))
    }

    /// The gates as a store keeps them, found by their type.
    pub(crate) fn opened(&self) -> Arc<[Arc<dyn Any + Send + Sync>]> {
        Arc::clone(&self.opened)
    }
}
