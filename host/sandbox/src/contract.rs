//! The interfaces that the sandbox speaks, by name and version.

/// The version of the contract that this host speaks.
pub const CONTRACT: &str = "0.1.0";

/// The interface of components that have an `init`.
pub(crate) const LIFECYCLE: &str = "rlf:plugin/lifecycle";

/// Interfaces that every component may import, without versions. They are the same for all components, because every
/// std guest imports WASI, used or not. A test keeps this list equal to the linker.
pub(crate) const LINKED: [&str; 32] = [
    "rlf:plugin/code",
    "rlf:plugin/data",
    "rlf:plugin/log",
    "rlf:plugin/process",
    "rlf:plugin/types",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];
