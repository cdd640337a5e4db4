//! The tool graph: which output of which tool can be passed to which input of another.
//!
//! Nodes are tools and their parameters. Edges lead from an input to its tool, from a tool to its outputs, from an output
//! to each input of another tool that it can fill (a [`Link`], with its [`Reason`]), and from a tool to each tool that
//! depends on it, which is one that has such an input. The graph follows EnvFactory's, with one addition: declared keys
//! of entities make certain edges, for which no words are compared.
//!
//! | looking for | module |
//! |---|---|
//! | the neutral description of a tool | `tool`, `value_type` |
//! | tools of specifications, and of definitions with JSON Schema | `from_specification`, `from_schema` |
//! | the measure of similarity, the default one, and one by an embedding endpoint | `similarity`, `lexical`, `embeddings` |
//! | the graph and its edges | `edges` |
//! | which tools can be called, and inputs that nothing can fill | `edges/fill.rs` |
//! | counts | `counts` |
//! | the page that draws it | `page` |
//!
//! ```
//! use rlf_forge::graph::{Lexical, ToolGraph, specified_tools};
//! use rlf_specification::{Format, read};
//!
//! let text = include_str!("../../../plugins/specified/examples/LendingLibrary.toml");
//! let tools = specified_tools(&read(text, Format::Toml).unwrap());
//! let graph = ToolGraph::new(tools, &Lexical::default())?;
//! let names = |tools: &[usize]| tools.iter().map(|&tool| graph.tools()[tool].name.clone()).collect::<Vec<_>>();
//! let find_books = graph.find("LendingLibrary-find_books").unwrap();
//! assert_eq!(names(graph.dependents(find_books)), ["lend_book"]);
//! # Ok::<(), rlf_forge::graph::GraphError>(())
//! ```

mod counts;
mod edges;
mod embeddings;
mod from_schema;
mod from_specification;
mod lexical;
mod page;
mod similarity;
mod tool;
mod value_type;

pub use counts::Counts;
pub use edges::{GraphError, InputId, Link, OutputId, Reason, ToolGraph, Unfillable, Why};
pub use embeddings::{EmbedError, Embedder, Embeddings, Missing, VectorError, Vectors};
pub use from_schema::{KEY_WORDS, defined_tool};
pub use from_specification::specified_tools;
pub use lexical::Lexical;
pub use similarity::{Score, Similarity, Wording};
pub use tool::{FromUser, Input, Output, Tool};
pub use value_type::ValueType;
