//! The end of a tool call: its cause, the responsible side, and the text for the model. docs/architecture.md, "How
//! calls end", has the table.
//!
//! Texts for the model are short. They name no path, no hash and no function of the host, and say what to do next if
//! something can be done. Their limits come from the configuration, so they are the same in every replay.

use rlf_dialogue::tool::{Ended, Fault, Observation};
use rlf_sandbox::{Clock, Ending, LimitReached, Stopped};

use crate::bindings::types;
use crate::convert::{error_text, observation_bytes, observation_from_guest};
use crate::safe_text::make_string_safe;

/// Maximum number of characters of a guest's own text in an error for the model.
const MAX_ERROR_CHARS: usize = 500;

/// The end of one attempt at a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    /// The way it ended.
    pub ended: Ended,
    /// The side that caused it.
    pub fault: Fault,
    /// The observation for the model. `None` if nothing is to be graded.
    pub observation: Option<Observation>,
    /// Details for logs and the record of the call.
    pub detail: Option<String>,
}

impl CallEnd {
    /// An end that the model caused. `text` is the observation.
    pub fn by_model(ended: Ended, text: impl Into<String>) -> Self {
        Self {
            ended,
            fault: Fault::Model,
            observation: Some(Observation::text(text, true)),
            detail: None,
        }
    }

    /// An end because the plugin broke. The model reads only that; `detail` goes to the logs.
    pub fn by_plugin(detail: String) -> Self {
        Self {
            ended: Ended::Trap,
            fault: Fault::Plugin,
            observation: Some(Observation::text(
                "error: the tool broke on this call and gave no result",
                true,
            )),
            detail: Some(detail),
        }
    }

    /// An end by an infrastructure failure: there is nothing to show and nothing to grade.
    pub fn by_infrastructure(ended: Ended, detail: String) -> Self {
        Self {
            ended,
            fault: Fault::Infrastructure,
            observation: None,
            detail: Some(detail),
        }
    }

    /// The end of a call that was answered from the cache.
    pub fn by_cache(observation: Observation) -> Self {
        Self {
            ended: Ended::Ok,
            fault: Fault::None,
            observation: Some(observation),
            detail: None,
        }
    }

    fn given_up() -> Self {
        Self {
            ended: Ended::Cancelled,
            fault: Fault::Nobody,
            observation: None,
            detail: None,
        }
    }

    /// Adds a detail for logs.
    #[must_use]
    pub fn with_detail(self, detail: String) -> Self {
        Self {
            detail: Some(detail),
            ..self
        }
    }

    /// True if a retry may end otherwise, because something that the call needs was missing or late.
    pub fn may_be_retried(&self) -> bool {
        self.ended == Ended::Unavailable || self.fault == Fault::Infrastructure
    }

    /// The end of a call that returned. `result_bytes` is the limit with that name.
    pub fn from_result(
        result: Result<types::Observation, types::Error>,
        result_bytes: u64,
    ) -> Self {
        let observation = match result {
            Ok(observation) => observation,
            Err(error) => return Self::from_error(error),
        };
        let used = observation_bytes(&observation) as u64;
        if used > result_bytes {
            let limit = LimitReached {
                name: "result_bytes".into(),
                value: result_bytes,
                used,
            };
            return Self::output_limit(&limit).with_detail(limit.to_string());
        }
        match observation_from_guest(observation) {
            Ok(observation) => Self {
                ended: if observation.failed {
                    Ended::Failed
                } else {
                    Ended::Ok
                },
                fault: Fault::of_answer(observation.failed),
                observation: Some(observation),
                detail: None,
            },
            Err(error) => Self::by_plugin(format!("broke the contract: {error}")),
        }
    }

    /// The end of a call for which the guest returned an error.
    fn from_error(error: types::Error) -> Self {
        let detail = error_text(&error);
        let words = |message: String| {
            make_string_safe(message.chars().take(MAX_ERROR_CHARS).collect::<String>())
        };
        let end = match error {
            types::Error::InvalidArguments(message) => {
                Self::by_model(Ended::InvalidArguments, invalid_arguments(&words(message)))
            }
            types::Error::NotFound(message) => Self::by_model(
                Ended::Failed,
                format!("error: not found: {}", words(message)),
            ),
            types::Error::Denied(_) => Self::denied(),
            // A quota of this call: nested calls, or bytes read. As with any other limit, the model asked for too much.
            types::Error::Exhausted(_) => Self::by_model(
                Ended::Denied,
                "error: the tool used up what one call may use; ask for less",
            ),
            types::Error::Unavailable(_) => {
                return Self::by_infrastructure(Ended::Unavailable, detail);
            }
            // The host did not give up, because then the result would not have come back. The guest's own budget ran
            // out.
            types::Error::Cancelled => Self::timeout(None),
            types::Error::Internal(_) => return Self::by_plugin(detail),
        };
        end.with_detail(detail)
    }

    /// The end of a grading for which a reward returned an error instead of scores.
    pub fn from_grading_error(error: &types::Error) -> Self {
        let detail = error_text(error);
        match error {
            types::Error::Unavailable(_) => Self::by_infrastructure(Ended::Unavailable, detail),
            _ => Self {
                ended: Ended::Failed,
                ..Self::by_plugin(detail)
            },
        }
    }

    /// The end of a call in which the sandbox stopped the guest.
    pub fn from_stopped(stopped: &Stopped) -> Self {
        let detail = stopped.reason.clone();
        let limit = stopped.limit.as_ref();
        match stopped.ended {
            Ending::Trap => Self::by_plugin(match &stopped.backtrace {
                Some(backtrace) => format!("{detail}\n{backtrace}"),
                None => detail,
            }),
            Ending::Exited { .. } => {
                Self::by_model(Ended::Exited, "error: the tool ended without a result")
                    .with_detail(detail)
            }
            Ending::Timeout { clock: Clock::Cpu | Clock::Virtual } => {
                Self::timeout(limit).with_detail(detail)
            }
            Ending::Timeout { clock: Clock::Wall | Clock::Host } => {
                Self::by_infrastructure(Ended::Timeout, detail)
            }
            Ending::MemoryLimit => Self::by_model(
                Ended::MemoryLimit,
                match limit.filter(|limit| limit.name == "memory_bytes") {
                    Some(limit) => format!(
                        "error: the tool needed more than the {} of memory it may use; ask for less",
                        bytes(limit.value)
                    ),
                    None => "error: the tool needed more memory than it may use; ask for less".into(),
                },
            )
            .with_detail(detail),
            Ending::OutputLimit => match limit {
                Some(limit) => Self::output_limit(limit),
                None => Self::by_model(
                    Ended::OutputLimit,
                    "error: the output is larger than it may be; ask for less",
                ),
            }
            .with_detail(detail),
            Ending::Denied => Self::denied().with_detail(detail),
            Ending::Cancelled => Self::given_up(),
            Ending::Unavailable => Self::by_infrastructure(Ended::Unavailable, detail),
        }
    }

    fn timeout(limit: Option<&LimitReached>) -> Self {
        let text = match limit.filter(|limit| limit.name.ends_with("_ms")) {
            Some(limit) => format!(
                "error: the call was stopped after the {} it may take; try a simpler one",
                milliseconds(limit.value)
            ),
            None => "error: the call took longer than it may; try a simpler one".into(),
        };
        Self::by_model(Ended::Timeout, text)
    }

    fn output_limit(limit: &LimitReached) -> Self {
        Self::by_model(
            Ended::OutputLimit,
            format!(
                "error: the output is larger than the {} it may have; ask for less",
                bytes(limit.value)
            ),
        )
    }

    fn denied() -> Self {
        Self::by_model(
            Ended::Denied,
            "error: the tool asked for something it may not have",
        )
    }
}

/// The text for wrong arguments.
pub fn invalid_arguments(explanation: &str) -> String {
    format!("error: invalid arguments: {explanation}")
}

fn milliseconds(value: u64) -> String {
    if value.is_multiple_of(1000) {
        format!("{} s", value / 1000)
    } else {
        format!("{value} ms")
    }
}

/// Writes a number of bytes as people do.
pub fn bytes(value: u64) -> String {
    match value {
        value if value >= 1 << 20 && value.is_multiple_of(1 << 20) => {
            format!("{} MiB", value >> 20)
        }
        value if value >= 1 << 10 && value.is_multiple_of(1 << 10) => {
            format!("{} KiB", value >> 10)
        }
        value => format!("{value} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlf_dialogue::message::{Content, plain_text};

    fn stopped(ended: Ending, limit: Option<(&str, u64)>) -> CallEnd {
        CallEnd::from_stopped(&Stopped {
            ended,
            reason: "what happened".into(),
            limit: limit.map(|(name, value)| LimitReached {
                name: name.into(),
                value,
                used: value + 1,
            }),
            backtrace: Some("at /home/someone/plugin.rs:1".into()),
        })
    }

    fn observed(end: &CallEnd) -> String {
        end.observation
            .as_ref()
            .map(|o| plain_text(&o.content))
            .unwrap_or_default()
    }

    /// docs/architecture.md, "How calls end": one line here for each way a call can end.
    #[test]
    fn every_way_to_end_has_its_fault_and_its_words() {
        use Ending as S;
        let rows = [
            (
                stopped(S::Trap, None),
                Ended::Trap,
                Fault::Plugin,
                "error: the tool broke on this call and gave no result",
            ),
            (
                stopped(S::Exited { code: 0 }, None),
                Ended::Exited,
                Fault::Model,
                "error: the tool ended without a result",
            ),
            (
                stopped(S::Timeout { clock: Clock::Cpu }, Some(("cpu_ms", 2_000))),
                Ended::Timeout,
                Fault::Model,
                "error: the call was stopped after the 2 s it may take; try a simpler one",
            ),
            (
                stopped(
                    S::Timeout {
                        clock: Clock::Virtual,
                    },
                    Some(("wall_ms", 250)),
                ),
                Ended::Timeout,
                Fault::Model,
                "error: the call was stopped after the 250 ms it may take; try a simpler one",
            ),
            (
                stopped(S::Timeout { clock: Clock::Wall }, Some(("wall_ms", 250))),
                Ended::Timeout,
                Fault::Infrastructure,
                "",
            ),
            (
                stopped(S::Timeout { clock: Clock::Host }, Some(("wall_ms", 250))),
                Ended::Timeout,
                Fault::Infrastructure,
                "",
            ),
            (
                stopped(S::MemoryLimit, Some(("memory_bytes", 256 << 20))),
                Ended::MemoryLimit,
                Fault::Model,
                "error: the tool needed more than the 256 MiB of memory it may use; ask for less",
            ),
            (
                stopped(S::MemoryLimit, Some(("resources", 3))),
                Ended::MemoryLimit,
                Fault::Model,
                "error: the tool needed more memory than it may use; ask for less",
            ),
            (
                stopped(S::OutputLimit, Some(("hostcall_bytes", 16 << 20))),
                Ended::OutputLimit,
                Fault::Model,
                "error: the output is larger than the 16 MiB it may have; ask for less",
            ),
            (
                stopped(S::Denied, None),
                Ended::Denied,
                Fault::Model,
                "error: the tool asked for something it may not have",
            ),
            (
                stopped(S::Unavailable, None),
                Ended::Unavailable,
                Fault::Infrastructure,
                "",
            ),
            (
                stopped(S::Cancelled, None),
                Ended::Cancelled,
                Fault::Nobody,
                "",
            ),
        ];
        for (end, ended, fault, text) in rows {
            assert_eq!(
                (end.ended, end.fault, observed(&end).as_str()),
                (ended, fault, text)
            );
            assert_eq!(
                end.observation.is_some(),
                matches!(fault, Fault::Model | Fault::Plugin)
            );
            assert_eq!(end.may_be_retried(), fault == Fault::Infrastructure);
        }
    }

    #[test]
    fn a_backtrace_goes_to_the_logs_and_never_to_the_model() {
        let end = stopped(Ending::Trap, None);
        assert!(end.detail.as_deref().unwrap().contains("plugin.rs"));
        assert!(!observed(&end).contains("plugin.rs"));
    }

    #[test]
    fn what_the_guest_returns_as_an_error_has_its_row_too() {
        use types::Error as E;
        let m = |text: &str| text.to_owned();
        let rows = [
            (
                E::InvalidArguments(m("position 3: `+` expected")),
                Ended::InvalidArguments,
                Fault::Model,
                "error: invalid arguments: position 3: `+` expected",
            ),
            (
                E::NotFound(m("no row \u{1b}[1m`Atlantis`")),
                Ended::Failed,
                Fault::Model,
                "error: not found: no row \u{241b}[1m`Atlantis`",
            ),
            (
                E::Denied(m("secret")),
                Ended::Denied,
                Fault::Model,
                "error: the tool asked for something it may not have",
            ),
            (
                E::Exhausted(m("bytes")),
                Ended::Denied,
                Fault::Model,
                "error: the tool used up what one call may use; ask for less",
            ),
            (
                E::Unavailable(m("no server")),
                Ended::Unavailable,
                Fault::Infrastructure,
                "",
            ),
            (
                E::Cancelled,
                Ended::Timeout,
                Fault::Model,
                "error: the call took longer than it may; try a simpler one",
            ),
            (
                E::Internal(m("/home/x: index out of bounds")),
                Ended::Trap,
                Fault::Plugin,
                "error: the tool broke on this call and gave no result",
            ),
        ];
        for (error, ended, fault, text) in rows {
            let end = CallEnd::from_result(Err(error), 1_000);
            assert_eq!(
                (end.ended, end.fault, observed(&end).as_str()),
                (ended, fault, text)
            );
            assert!(end.detail.is_some());
        }
    }

    #[test]
    fn results_are_ok_failed_too_large_or_against_the_contract() {
        let result = |text: &str, failed: bool| types::Observation {
            content: vec![types::Content::Text(text.into())],
            failed,
            metrics: vec![],
            extra: vec![],
        };
        let end = CallEnd::from_result(Ok(result("20", false)), 1_024);
        assert_eq!((end.ended, end.fault), (Ended::Ok, Fault::None));
        assert_eq!(
            end.observation.unwrap().content,
            [Content::Text("20".into())]
        );

        let end = CallEnd::from_result(Ok(result("no such city", true)), 1_024);
        assert_eq!((end.ended, end.fault), (Ended::Failed, Fault::Model));

        let end = CallEnd::from_result(Ok(result(&"x".repeat(1_025), false)), 1_024);
        assert_eq!(end.ended, Ended::OutputLimit);
        assert_eq!(
            observed(&end),
            "error: the output is larger than the 1 KiB it may have; ask for less"
        );
        assert_eq!(end.detail.unwrap(), "result_bytes = 1024, used 1025");

        let mut broken = result("x", false);
        broken.content = vec![types::Content::Structured("{".into())];
        let end = CallEnd::from_result(Ok(broken), 1_024);
        assert_eq!((end.ended, end.fault), (Ended::Trap, Fault::Plugin));
        assert!(
            end.detail
                .unwrap()
                .starts_with("broke the contract: a structured part")
        );
    }
}
