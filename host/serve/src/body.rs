//! The body of a request: read with limits on its size, on its time and on what all bodies take together.

use axum::extract::Request;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::sync::OwnedSemaphorePermit;

use crate::answer::Refusal;
use crate::config::BODY_UNIT;
use crate::queue::Patience;
use crate::service::Service;

/// A body and the room it takes, given back when it is dropped.
pub(crate) struct Body {
    bytes: Bytes,
    room: OwnedSemaphorePermit,
}

impl Body {
    /// Waits for room and reads.
    pub(crate) async fn read(
        request: Request,
        service: &Service,
        patience: &mut Patience,
    ) -> Result<Self, Refusal> {
        let most = service.config.max_body_bytes;
        let too_large = || {
            Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than serve.max_body_bytes = {most}"),
            )
        };
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let announced = length.unwrap_or(most);
        if announced > most {
            return Err(too_large());
        }
        let units = u32::try_from(announced.div_ceil(BODY_UNIT)).unwrap_or(u32::MAX);
        let waits = service.metrics.waits();
        let room = service.bodies.take(units, patience).await.map_err(|_| {
            Refusal::later(
                "too many large requests are under way; their bodies fill serve.body_budget_bytes",
            )
        })?;
        drop(waits);
        let body = Limited::new(request.into_body(), most as usize);
        let bytes = match tokio::time::timeout(service.config.client, body.collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Err(error)) => {
                return Err(Refusal::new(
                    StatusCode::BAD_REQUEST,
                    format!("the body did not arrive whole: {error}"),
                ));
            }
            Err(_) => {
                return Err(Refusal::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body did not arrive within serve.client_ms",
                ));
            }
        };
        Ok(Self { bytes, room })
    }

    /// As the type that a route takes. What it takes room for from now on is the value.
    pub(crate) fn parse<T: DeserializeOwned>(self) -> Result<(T, OwnedSemaphorePermit), Refusal> {
        Ok((parse(&self.bytes)?, self.room))
    }
}

/// Reads a value; where it does not fit, says where and why in the form of the original service.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
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
    Ok(value)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::RunCodeRequest;

    async fn refusal(body: &str) -> Value {
        let refusal = parse::<RunCodeRequest>(body.as_bytes()).unwrap_err();
        assert_eq!(refusal.status(), 422);
        let body = refusal.into_response().into_body().collect().await.unwrap();
        serde_json::from_slice::<Value>(&body.to_bytes()).unwrap()["detail"][0].take()
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
        let deep = "[".repeat(200_000);
        assert_eq!(refusal(&deep).await["type"], "value_error");
    }
}
