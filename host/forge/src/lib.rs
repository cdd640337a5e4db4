//! Forge: makes environments and tasks automatically, and verifies environments before anyone trains on them.
//!
//! Environments are [composed](mod@compose) from archetypes, and [verified](mod@verify) by playing them. The
//! [tool graph](mod@graph) and the chains [sampled](sampling) from it say which calls make sense together.
//! [`countries`] makes the tasks of the quickstart: questions over a table of countries, whose answers are known by
//! construction, with demonstrations.
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

pub mod compose;
pub mod countries;
pub mod graph;
pub mod sampling;
pub mod verify;
