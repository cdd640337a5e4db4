//! The body of a request: read with limits on its size, on its time and on what all bodies take together.

use std::time::{Duration, Instant};

use axum::extract::Request;
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use rlf_dialogue::exact;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::answer::Refusal;
use crate::config::BODY_UNIT;
use crate::queue::Patience;
use crate::service::Service;

/// How long room is kept for what a client has announced and not sent. Bodies of clients that send as fast as
/// machines do are read whole, one behind the other, and do not wait for each other half read; whoever is slower has
/// room for what has come, and an idle one for nothing.
const PROMISE: Duration = Duration::from_millis(250);

/// A body and the room it takes, given back when it is dropped.
pub(crate) struct Body {
    bytes: Vec<u8>,
    room: OwnedSemaphorePermit,
}

impl Body {
    /// Reads, and waits for room as it comes.
    pub(crate) async fn read(
        request: Request,
        service: &Service,
        patience: &mut Patience,
    ) -> Result<Self, Refusal> {
        let most = service.config.max_body_bytes;
        let mut arriving = request.into_body();
        // Nothing where it comes in chunks, whatever else the head says.
        let announced = arriving.size_hint().exact();
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large(most));
        }
        let mut room = Room::none(service, patience).await?;
        let mut bytes = Vec::new();
        // Waiting for room is not on the client's time.
        let mut left = service.config.client;
        let mut kept_until = None;
        loop {
            let began = Instant::now();
            let kept = kept_until.map(|until: Instant| until.saturating_duration_since(began));
            let next = timeout(kept.unwrap_or(left).min(left), arriving.frame()).await;
            left = left.saturating_sub(began.elapsed());
            let frame = match next {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    return Err(Refusal::new(
                        StatusCode::BAD_REQUEST,
                        format!("the body did not arrive whole: {error}"),
                    ));
                }
                Err(_) if kept_until.take().is_some() && !left.is_zero() => {
                    room.shrink_to(bytes.len() as u64);
                    continue;
                }
                Err(_) => {
                    return Err(Refusal::new(
                        StatusCode::REQUEST_TIMEOUT,
                        "the body did not arrive within serve.client_ms",
                    ));
                }
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let is_first = bytes.is_empty();
            let come = (bytes.len() + data.len()) as u64;
            if come > most {
                return Err(too_large(most));
            }
            match announced.filter(|_| is_first) {
                Some(announced) => {
                    room.grow_to(announced, service, patience).await?;
                    kept_until = Some(Instant::now() + PROMISE);
                }
                None => room.grow_to(come, service, patience).await?,
            }
            bytes.extend_from_slice(&data);
        }
        let becomes = bytes.len() as u64 + values(&bytes) * size_of::<Value>() as u64;
        let budget = service.config.body_budget_bytes;
        if becomes > budget {
            return Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!(
                    "the body has so many values that reading it takes {becomes} bytes, more than serve.body_budget_bytes = {budget}"
                ),
            ));
        }
        room.grow_to(becomes, service, patience).await?;
        Ok(Self {
            bytes,
            room: room.permit,
        })
    }

    /// As the type that a route takes. What it takes room for from now on is the value.
    pub(crate) fn parse<T: DeserializeOwned>(self) -> Result<(T, OwnedSemaphorePermit), Refusal> {
        Ok((parse(&self.bytes)?, self.room))
    }
}

/// How many values a text has, if it is JSON: a list of a million zeros is two megabytes here, and far more once it is
/// read.
fn values(text: &[u8]) -> u64 {
    let (mut values, mut is_quoted, mut is_escaped) = (0, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b',' | b':' | b'[' | b'{' if !is_quoted => values += 1,
            _ => {}
        }
    }
    values
}

fn too_large(most: u64) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body is larger than serve.max_body_bytes = {most}"),
    )
}

/// What a body has of serve.body_budget_bytes.
struct Room {
    permit: OwnedSemaphorePermit,
}

impl Room {
    async fn none(service: &Service, patience: &mut Patience) -> Result<Self, Refusal> {
        let permit = take(0, service, patience).await?;
        Ok(Self { permit })
    }

    /// Waits until it is room for so many bytes.
    async fn grow_to(
        &mut self,
        bytes: u64,
        service: &Service,
        patience: &mut Patience,
    ) -> Result<(), Refusal> {
        let more = units(bytes).saturating_sub(self.permit.num_permits());
        if more > 0 {
            self.permit.merge(take(more, service, patience).await?);
        }
        Ok(())
    }

    /// Gives back what is more than room for so many bytes.
    fn shrink_to(&mut self, bytes: u64) {
        let less = self.permit.num_permits().saturating_sub(units(bytes));
        drop(self.permit.split(less));
    }
}

fn units(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(BODY_UNIT)).unwrap_or(usize::MAX)
}

async fn take(
    units: usize,
    service: &Service,
    patience: &mut Patience,
) -> Result<OwnedSemaphorePermit, Refusal> {
    let _waits = service.metrics.waits();
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    service.bodies.take(units, patience).await.map_err(|_| {
        Refusal::later(
            "too many large requests are under way; their bodies fill serve.body_budget_bytes",
        )
    })
}

/// Reads a value; where it does not fit, says where and why in the form of the original service.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    // A list would be taken for the fields in their order.
    if body.trim_ascii_start().first() == Some(&b'[')
        && serde_json::from_slice::<IgnoredAny>(body).is_ok()
    {
        return Err(Refusal::invalid(
            "value_error",
            &[],
            "the body is to be a JSON object",
        ));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if !inner.is_data() {
            return Refusal::invalid("json_invalid", &[], format!("JSON decode error: {inner}"));
        }
        let message = inner.to_string();
        let missing = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.split('`').next())
            .map(str::to_owned);
        let mut place: Vec<&str> = path
            .split(['.', '[', ']'])
            .filter(|part| !part.is_empty())
            .collect();
        if let Some(field) = &missing {
            if place.last() != Some(&field.as_str()) {
                place.push(field);
            }
            return Refusal::invalid("missing", &place, "Field required");
        }
        Refusal::invalid("value_error", &place, message)
    })?;
    json.end().map_err(|error| {
        Refusal::invalid("json_invalid", &[], format!("JSON decode error: {error}"))
    })?;
    exact::check(body).map_err(|error| Refusal::invalid("value_error", &[], error.to_string()))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use serde_json::json;

    use super::*;
    use crate::protocol::RunCodeRequest;

    async fn refusal(body: &str) -> Value {
        let refusal = parse::<RunCodeRequest>(body.as_bytes()).unwrap_err();
        assert_eq!(refusal.status(), 422);
        let body = refusal.into_response().into_body().collect().await.unwrap();
        serde_json::from_slice::<Value>(&body.to_bytes()).unwrap()["detail"][0].take()
    }

    #[test]
    fn values_are_counted_and_texts_are_not_looked_into() {
        for (text, number) in [
            ("0", 0),
            ("[0,0,0]", 3),
            ("[[],[]]", 4),
            (r#"{"a": [1, 2], "b": "x,[,\",,"}"#, 6),
        ] {
            assert_eq!(values(text.as_bytes()), number, "{text}");
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_said_with_its_place() {
        assert_eq!(
            refusal(r#"{"language": "python"}"#).await,
            json!({"type": "missing", "loc": ["body", "code"], "msg": "Field required"})
        );
        let wrong = refusal(r#"{"code": "", "language": "python", "run_timeout": "soon"}"#).await;
        assert_eq!(wrong["loc"], json!(["body", "run_timeout"]));
        let wrong = refusal(r#"{"code": "", "language": "python", "fetch_files": ["a", 1]}"#).await;
        assert_eq!(wrong["loc"], json!(["body", "fetch_files", "1"]));
        for broken in [
            "",
            "{",
            "[1",
            "{\"code\": \"\", \"language\": \"a\"} {}",
            "{\"code\": NaN}",
            "\u{feff}{}",
        ] {
            assert_eq!(refusal(broken).await["type"], "json_invalid", "{broken}");
        }
        assert_eq!(refusal("[]").await["type"], "value_error");
        let rounded = r#"{"code": "", "language": "python", "run_timeout": 18446744073709551616}"#;
        let said = refusal(rounded).await["msg"].to_string();
        assert!(
            said.contains("18446744073709551616 has more than 64 bits"),
            "{said}"
        );
        let deep = "[".repeat(200_000);
        assert_eq!(refusal(&deep).await["type"], "value_error");
    }
}
