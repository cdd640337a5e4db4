//! One test binary for the crate, one module for each set of promises.

mod call_tokens;
#[path = "../../../../tests/src/data.rs"]
mod data;
mod episode;
mod parser;
mod support;
mod template;
mod tokenizer;
mod writing;
