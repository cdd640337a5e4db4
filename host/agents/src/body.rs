//! The bodies of requests and answers.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::refusal::Refusal;

/// Maximum size of a request's body, in bytes.
pub(crate) const MAX_BYTES: usize = 4 << 20;
/// Time in which a body has to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// Reads the body of a request.
pub(crate) async fn read(body: Body) -> Result<Bytes, Refusal> {
    let reading = axum::body::to_bytes(body, MAX_BYTES);
    match tokio::time::timeout(ARRIVAL, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(Refusal::invalid(format!(
            "the body cannot be read, or has more than {MAX_BYTES} bytes: {error}"
        ))),
        Err(_) => Err(Refusal::invalid(format!(
            "the body did not arrive within {} s",
            ARRIVAL.as_secs()
        ))),
    }
}

/// Parses a body, which is a JSON object or empty.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    match rlf_json::from_slice::<Object<T>>(body) {
        Ok(Object(parsed)) => Ok(parsed),
        Err(error) => Err(Refusal::invalid(format!("the body: {error}"))),
    }
}

/// Reads a value in a body, which is a JSON object.
pub(crate) fn object<T: DeserializeOwned>(value: &Value) -> Result<T, Refusal> {
    match Object::<T>::deserialize(value) {
        Ok(Object(read)) => Ok(read),
        Err(error) => Err(Refusal::invalid(error.to_string())),
    }
}

/// A JSON object. Serde alone also reads a struct from a list, by the positions of its fields.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FromMap(PhantomData))
    }
}

/// Reads an [`Object`].
struct FromMap<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FromMap<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}

/// An answer of events. The turn is complete before the first one, so they are sent together.
pub(crate) fn events(events: String) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
}
