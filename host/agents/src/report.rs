//! The report of an agent at the end of its work.

use rlf_rollout::agent::AgentReport;
use serde::Deserialize;

/// The form of a report, for the message that refuses another one.
pub(crate) const FORM: &str = "{\"answer\": TEXT, \"reward\": NUMBER}";

/// A report as an agent writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    reward: Option<f64>,
}

impl From<Report> for AgentReport {
    fn from(Report { answer, reward }: Report) -> Self {
        Self { answer, reward }
    }
}
