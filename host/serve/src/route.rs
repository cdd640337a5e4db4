//! A route: its path, its handler, and the types that describe it.

use std::sync::Arc;

use axum::routing::MethodRouter;
use http::Method;
use schemars::{Schema, SchemaGenerator};

use crate::service::Service;

/// Describes a type by its JSON Schema.
pub(crate) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// The kind of a route's answer.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    Json(Describe),
    Text(&'static str),
}

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) takes: Option<Describe>,
    pub(crate) answers: Answers,
    pub(crate) handler: fn() -> MethodRouter<Arc<Service>>,
}
