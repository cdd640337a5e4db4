//! Return values of tools, as the model sees them.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

use crate::{Content, Metric, Observation};

/// A value that a tool may return.
///
/// Text, numbers and booleans are shown as text, [`Json`] and [`Value`] as structured content. An
/// `Err` is a *failed observation*: its text is shown to the model, which should read and react to
/// it ("no such city"). A bug is a panic; the host reports it as a trap.
pub trait IntoObservation {
    /// The observation that shows this value.
    fn into_observation(self) -> Observation;
}

/// Shows any serialisable value as structured content.
#[derive(Debug, Clone, PartialEq)]
pub struct Json<T>(pub T);

impl Observation {
    /// One part of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from_content(Content::Text(text.into()))
    }

    /// One part of text that says what failed and how to correct it.
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            failed: true,
            ..Self::text(text)
        }
    }

    /// Adds a number for the trainer's logs. The model never sees it.
    #[must_use]
    pub fn metric(mut self, name: impl Into<String>, value: f64) -> Self {
        self.metrics.push(Metric {
            name: name.into(),
            value,
        });
        self
    }

    fn from_content(content: Content) -> Self {
        Self {
            content: vec![content],
            failed: false,
            metrics: Vec::new(),
            extra: Vec::new(),
        }
    }
}

impl IntoObservation for Observation {
    fn into_observation(self) -> Observation {
        self
    }
}

impl<T: IntoObservation, E: Display> IntoObservation for Result<T, E> {
    fn into_observation(self) -> Observation {
        match self {
            Ok(value) => value.into_observation(),
            Err(error) => Observation::failure(error.to_string()),
        }
    }
}

impl<T: Serialize> IntoObservation for Json<T> {
    fn into_observation(self) -> Observation {
        match serde_json::to_string(&self.0) {
            Ok(json) => Observation::from_content(Content::Structured(json)),
            Err(error) => {
                Observation::failure(format!("the result cannot be written as JSON: {error}"))
            }
        }
    }
}

impl IntoObservation for Value {
    fn into_observation(self) -> Observation {
        Observation::from_content(Content::Structured(self.to_string()))
    }
}

impl IntoObservation for Vec<Content> {
    fn into_observation(self) -> Observation {
        Observation {
            content: self,
            failed: false,
            metrics: Vec::new(),
            extra: Vec::new(),
        }
    }
}

macro_rules! shown_as_text {
    ($($kind:ty),*) => {$(
        impl IntoObservation for $kind {
            fn into_observation(self) -> Observation {
                Observation::text(self.to_string())
            }
        }
    )*};
}

shown_as_text!(
    String, &str, bool, char, i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, usize, isize, f32,
    f64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_and_errors_are_failures_to_read() {
        assert_eq!(7_u8.into_observation(), Observation::text("7"));
        let right: Result<&str, String> = Ok("fine");
        assert_eq!(right.into_observation(), Observation::text("fine"));
        let wrong: Result<Json<u8>, &str> = Err("no such city");
        assert_eq!(
            wrong.into_observation(),
            Observation::failure("no such city")
        );
        let structured = Json(vec![1, 2]).into_observation();
        assert_eq!(
            structured.content,
            [Content::Structured("[1,2]".to_owned())]
        );
    }
}
