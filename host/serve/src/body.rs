//! Reads the body of a request, with limits on its size, on its time and on the memory of all bodies together.

use std::time::{Duration, Instant};

use axum::extract::Request;
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::answer::Refusal;
use crate::config::BODY_UNIT;
use crate::queue::WaitBudget;
use crate::service::Service;

/// Time for which room is reserved for the announced part of a body that has not arrived. Bodies of fast clients are
/// read whole, one after the other, so that half-read bodies do not wait for each other. A slower client has room only
/// for the part that has arrived, and an idle client has none.
const ANNOUNCED_BODY_GRACE: Duration = Duration::from_millis(250);

/// A body with its share of the body budget, which is given back when it is dropped.
pub(crate) struct Body {
    bytes: Vec<u8>,
    room: OwnedSemaphorePermit,
}

impl Body {
    /// Reads a body. It waits for room as the body arrives.
    pub(crate) async fn read(
        request: Request,
        service: &Service,
        wait: &mut WaitBudget,
    ) -> Result<Self, Refusal> {
        let most = service.config.max_body_bytes;
        let mut arriving = request.into_body();
        // `None` for a chunked body, whatever else the head says.
        let announced = arriving.size_hint().exact();
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large(most));
        }
        let mut room = BodyReservation::none(service, wait).await?;
        let mut bytes = Vec::new();
        // Time spent waiting for room does not count against the client.
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
                    room.grow_to(announced, service, wait).await?;
                    kept_until = Some(Instant::now() + ANNOUNCED_BODY_GRACE);
                }
                None => room.grow_to(come, service, wait).await?,
            }
            bytes.extend_from_slice(&data);
        }
        room.grow_to(memory(&bytes, service)?, service, wait)
            .await?;
        Ok(Self {
            bytes,
            room: room.permit,
        })
    }

    /// The bytes of the body, and its share of the budget.
    pub(crate) fn into_parts(self) -> (Vec<u8>, OwnedSemaphorePermit) {
        (self.bytes, self.room)
    }

    /// Parses the body as the type of a route. The returned permit is the body's share of the budget.
    pub(crate) fn parse<T: DeserializeOwned>(self) -> Result<(T, OwnedSemaphorePermit), Refusal> {
        Ok((parse(&self.bytes)?, self.room))
    }
}

/// Waits for room for a message of a WebSocket, which has arrived whole. Dropping the permit gives the room back.
pub(crate) async fn message_room(
    message: &[u8],
    service: &Service,
    wait: &mut WaitBudget,
) -> Result<OwnedSemaphorePermit, Refusal> {
    let units = units(memory(message, service)?);
    take(units, service, wait).await
}

/// The number of bytes that a JSON text takes when it is read. Refuses a text that takes more than the whole budget.
fn memory(text: &[u8], service: &Service) -> Result<u64, Refusal> {
    let bytes = text.len() as u64 + values(text) * size_of::<Value>() as u64;
    let budget = service.config.body_budget_bytes;
    if bytes > budget {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the JSON has so many values that reading it takes {bytes} bytes, more than serve.body_budget_bytes = {budget}"
            ),
        ));
    }
    Ok(bytes)
}

/// Counts the values in a JSON text. A list of a million zeros is two megabytes as text, and far more in memory.
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

/// A body's share of `serve.body_budget_bytes`.
struct BodyReservation {
    permit: OwnedSemaphorePermit,
}

impl BodyReservation {
    async fn none(service: &Service, wait: &mut WaitBudget) -> Result<Self, Refusal> {
        let permit = take(0, service, wait).await?;
        Ok(Self { permit })
    }

    /// Waits until the share has room for this number of bytes.
    async fn grow_to(
        &mut self,
        bytes: u64,
        service: &Service,
        wait: &mut WaitBudget,
    ) -> Result<(), Refusal> {
        let more = units(bytes).saturating_sub(self.permit.num_permits());
        if more > 0 {
            self.permit.merge(take(more, service, wait).await?);
        }
        Ok(())
    }

    /// Returns the room beyond this number of bytes.
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
    wait: &mut WaitBudget,
) -> Result<OwnedSemaphorePermit, Refusal> {
    let _waits = service.metrics.waits();
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    service.bodies.take(units, wait).await.map_err(|_| {
        Refusal::later(
            "too many large requests are under way; their bodies fill serve.body_budget_bytes",
        )
    })
}

/// Parses a value. If it does not fit, the refusal says where and why, in the form of SandboxFusion.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    // Serde would accept a list that has the fields' values in order.
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
    rlf_json::check(body)
        .map_err(|error| Refusal::invalid("value_error", &[], error.to_string()))?;
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
