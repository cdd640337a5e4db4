//! Forge: makes tasks automatically, and verifies environments before anyone trains on them.
//!
//! Each generator is a module. It makes tasks whose answers are known by construction, and demonstrations for them.
//! [`countries`], which the quickstart trains on, asks questions over a table of countries, to be answered with two tools.
//! [`tasks`] makes tasks in any environment that is given as data.
//!
//! The crate must not know how text becomes tokens or how a model learns.
//!
//! | looking for | module |
//! |---|---|
//! | the questions about countries: table, tasks, demonstrations, audit | [`countries`] |
//! | environments composed from archetypes | [`compose`](mod@compose) |
//! | checks of an environment by playing it | [`verify`](mod@verify) |
//! | the tool graph: which output of which tool can fill which input | [`graph`](mod@graph) |
//! | chains of tools for tasks, sampled from the graph | [`sampling`] |
//! | tasks from chains: executed, put into words, refined, checked, replayed | [`tasks`] |

pub mod compose;
pub mod countries;
pub mod graph;
pub mod sampling;
pub mod tasks;
pub mod verify;
