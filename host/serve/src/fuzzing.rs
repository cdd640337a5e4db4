//! Entry points for the fuzz targets in `tests/fuzz`. Only cargo-fuzz compiles them.

use crate::{body, protocol, scratch};

/// Turns a file name of a request into a path from the program's root. `None` if the name is refused.
pub fn path(name: &str) -> Option<String> {
    scratch::path(name).ok()
}

/// True if `body` is a valid request of `/run_code`.
pub fn run_code(body: &[u8]) -> bool {
    body::parse::<protocol::RunCodeRequest>(body).is_ok()
}

/// True if `body` is a valid request of `/run_jupyter`.
pub fn run_jupyter(body: &[u8]) -> bool {
    body::parse::<protocol::RunJupyterRequest>(body).is_ok()
}
