//! Forge: makes environments and tasks automatically, and verifies them before anyone trains on them.
//!
//! Environments are composed from a seed or written by a language model. Tasks, rows and demonstrations are made in
//! them, and each is proven solvable by execution.
//!
//! The crate must not know how text becomes tokens or how a model learns.
//!
//! | looking for | module |
//! |---|---|
//! | environments composed from archetypes | [`compose`](mod@compose) |
//! | environments written by a language model, verified and revised | [`writer`] |
//! | asking a language model: prompts, answers on disk, tokens | [`ask`] |
//! | checks of an environment by playing it | [`verify`](mod@verify) |
//! | the tool graph: which output of which tool can fill which input | [`graph`](mod@graph) |
//! | chains of tools for tasks, sampled from the graph | [`sampling`] |
//! | tasks from chains: executed, put into words, refined, checked, replayed | [`tasks`] |
//! | rows in FTRL's form, made in five stages | [`rows`] |
//! | the questions about countries that the quickstart trains on | [`countries`] |
//! | files of JSON lines; articles and singulars | `lines`; `english` |

pub mod ask;
pub mod compose;
pub mod countries;
mod english;
pub mod graph;
mod lines;
pub mod rows;
pub mod sampling;
pub mod tasks;
pub mod verify;
pub mod writer;
