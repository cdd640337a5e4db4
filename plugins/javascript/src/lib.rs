//! The interpreter `javascript`: programs run as Node would run them, by QuickJS inside this component.
//!
//! `init` builds the engine and everything that Node brings (`prelude/`), so that the snapshot contains it and a run
//! begins with the program. Nothing is granted: files are those of the run, in memory; time is the host's virtual
//! time; randomness follows from the program's seed. Output goes to the host as it is printed, one call for each
//! print, so that a limit which stops a program loses no output. Such a call is cheap compared with formatting a
//! value.
//!
//! | file | is |
//! |---|---|
//! | `engine` | the engine, its functions for the prelude, and its loop |
//! | `files` | the run's files |
//! | `modules` | what `import` finds |
//! | `state` | the state that the engine's functions share |
//! | `raw` | the engine's functions that the binding does not offer: all `unsafe` code |
//! | `host` | the host's side: output, time, data |
//! | `plugin.js` | what answers requests where a plugin is a JavaScript file; the rest is in `sdk/javascript` |
//! | `prelude/` | Node's part, in JavaScript |

// Outside a component only tests use any of it.
#![cfg_attr(not(any(target_family = "wasm", test)), allow(dead_code))]

#[cfg(target_family = "wasm")]
mod bindings;
#[cfg(target_family = "wasm")]
mod component;
mod engine;
mod files;
mod host;
mod modules;
mod raw;
mod state;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;
