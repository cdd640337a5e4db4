//! One test binary for the crate, one module for each set of promises.

mod dataset;
mod episode;
mod parser;
mod support;
mod template;
mod tokenizer;
mod writing;
