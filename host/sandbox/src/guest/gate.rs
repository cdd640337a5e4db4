//! Gates: ways out of the sandbox, each opened to a plugin separately.
//!
//! This crate knows no gate itself. The caller that loads a component passes the gates that the operator opened to it.
//! Each gate links its interface, and its host functions find it in the [`State`] of their call. A component that
//! imports a gate that was not passed does not load. `init` must not depend on anything outside, so all gates are
//! closed while it runs.

use std::any::Any;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Linker;

use super::state::State;

/// Gate that is open to one plugin.
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
