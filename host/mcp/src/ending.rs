//! The reason why this side ended a connection.

use std::sync::{Arc, OnceLock};

/// The reason why this side ended a connection, for the calls that waited for answers. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending(Arc<OnceLock<String>>);

impl Ending {
    /// Keeps a reason, such as "the server ..". The first one stays.
    pub(crate) fn set(&self, reason: String) {
        _ = self.0.set(reason);
    }

    /// The reason. `None` if this side did not end the connection.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
