//! Verification of a specification: in the sandbox, and by walks without one.

use std::thread;
use std::time::Duration;

use rlf_environments::environments::Environments;
use rlf_random::Key;
use rlf_specification::Program;
use rlf_specification::play::{Fault, verify};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::report::{Finding, FindingKind, Report};
use super::served::{Unserved, served};
use super::{Effort, Start};

/// Maximum time of the walks without a sandbox. Those of the shipped examples take less than a second.
const MAX_WALKS: Duration = Duration::from_mins(2);

/// Verifies a specification that an environment plays, perhaps together with others. Each scenario is generated with
/// the seeds from 0 and played in the sandbox. Then walks without a sandbox make many more calls.
pub async fn verify_program(
    environments: &Environments,
    environment: &str,
    program: &Program,
    seeds: u64,
    effort: Effort,
) -> Result<Report, Unserved> {
    let starts = Start::for_program(program, seeds);
    let played = super::play_all(environments, environment, true, &starts, effort);
    let mut report = served(environments, played).await?;
    report.environment.clone_from(&program.specification().name);
    let key = Key::from_value(effort.seed).named("walks");
    let faults = walks(program, key, MAX_WALKS).await;
    report.add_walks(faults.as_deref());
    Ok(report)
}

/// Walks over a program on a thread of its own, because walks never wait for anything. None if they take longer than
/// `limit`. The thread ends soon after that, or after nobody waits any more.
async fn walks(program: &Program, key: Key, limit: Duration) -> Option<Vec<Fault>> {
    let program = program.clone();
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        if let Some(faults) = verify(&program, key, || !sender.is_closed()) {
            // Nobody waits if the time has just ended.
            let _ = sender.send(faults);
        }
    });
    let faults = timeout(limit, receiver).await.ok()?;
    Some(faults.expect("no specification makes the walks panic"))
}

impl Report {
    /// Adds the faults that walks over the specification find; None if the walks did not end in time. They make many
    /// more calls than sessions do. So a finding that an operation never succeeds, or is never refused, stays only if
    /// the walks have it too.
    fn add_walks(&mut self, faults: Option<&[Fault]>) {
        let Some(faults) = faults else {
            let kind = FindingKind::SlowWalks;
            return self.findings.push(Finding {
                kind,
                severity: kind.severity(),
                place: self.environment.clone(),
                message: format!("random walks did not end in {} s", MAX_WALKS.as_secs()),
                mend: mend(kind).to_owned(),
                times: 1,
            });
        };
        let place = |fault: &Fault| match fault {
            Fault::DoesNotLoad { scenario, seed, .. } => format!("{scenario}, seed {seed}"),
            _ => format!("{}-{}", self.environment, fault.cause().0),
        };
        let found = faults.iter().map(|fault| (kind(fault), place(fault)));
        let found: Vec<(FindingKind, String)> = found.collect();
        self.findings.retain(|finding| {
            !is_of_all_calls(finding.kind) || found.contains(&(finding.kind, finding.place.clone()))
        });
        for (fault, (kind, place)) in faults.iter().zip(found) {
            let is_known = |finding: &Finding| {
                finding.kind == kind && without_seed(&finding.place) == without_seed(&place)
            };
            if !is_of_all_calls(kind) && !self.findings.iter().any(is_known) {
                self.findings.push(Finding {
                    kind,
                    severity: kind.severity(),
                    place,
                    message: fault.to_string(),
                    mend: mend(kind).to_owned(),
                    times: 1,
                });
            }
        }
    }
}

/// The scenario of an initial state: with another seed, it has the same fault. Tools have no seed.
fn without_seed(place: &str) -> &str {
    place
        .split_once(", seed ")
        .map_or(place, |(scenario, _)| scenario)
}

/// True if a finding says something about all calls of an operation.
fn is_of_all_calls(kind: FindingKind) -> bool {
    matches!(kind, FindingKind::NeverSucceeds | FindingKind::NeverRefuses)
}

fn kind(fault: &Fault) -> FindingKind {
    match fault {
        Fault::DoesNotLoad { .. } => FindingKind::DoesNotLoad,
        Fault::Undone { .. } => FindingKind::BreaksRule,
        Fault::ResultDiffers { .. } => FindingKind::ResultDiffers,
        Fault::NeverSucceeds { .. } => FindingKind::NeverSucceeds,
        Fault::NeverRefused { .. } => FindingKind::NeverRefuses,
    }
}

fn mend(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::DoesNotLoad => "correct the scenario, or what the environment requires of it",
        FindingKind::SlowWalks => "make initial states smaller, and do less in one operation",
        FindingKind::ResultDiffers => {
            "return the value that the state has, or give the field another name"
        }
        _ => "refuse the call before, with a message that says what to do",
    }
}

#[cfg(test)]
mod tests {
    use rlf_specification::{Format, StateError, check_text};

    use super::*;

    #[tokio::test]
    async fn walks_that_take_too_long_are_stopped_and_found() {
        // Each call makes half a million steps.
        let mut work = "1".to_owned();
        for depth in 0..4 {
            let many = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]";
            work = format!("{many}.map(x{depth}, {work}).size()");
        }
        let text = format!(
            r#"
            name = "Doors"
            description = "A house with doors."
            entities = []
            scenarios = [{{ size = "simple" }}]
            [[operations]]
            name = "count_doors"
            description = "Count the doors."
            read_only = true
            result = {{ fields = [{{ name = "doors", type = "integer", value = "{work}" }}] }}
            "#
        );
        let checked = check_text(&text, Format::Toml);
        let Some(program) = checked.program else {
            panic!("{:?}", checked.findings);
        };
        let limit = Duration::from_millis(1);
        assert_eq!(walks(&program, Key::from_value(0), limit).await, None);
        let mut report = report(Vec::new());
        report.add_walks(None);
        assert_eq!(
            report.findings[0].to_string(),
            "Doors: random walks did not end in 120 s; make initial states smaller, and do less in one operation"
        );
        assert!(!report.is_sound());
    }

    #[test]
    fn a_scenario_that_does_not_load_hides_no_other_and_has_its_place() {
        let kind = FindingKind::DoesNotLoad;
        let mut report = report(vec![Finding {
            kind,
            severity: kind.severity(),
            place: "simple, seed 0".to_owned(),
            message: "it has no doors".to_owned(),
            mend: String::new(),
            times: 1,
        }]);
        let fault = |scenario: &'static str| Fault::DoesNotLoad {
            scenario,
            seed: 7,
            error: StateError::NoScenario(scenario),
        };
        report.add_walks(Some(&[fault("simple"), fault("complex")]));
        let places: Vec<&str> = report
            .findings
            .iter()
            .map(|one| one.place.as_str())
            .collect();
        assert_eq!(places, ["simple, seed 0", "complex, seed 7"]);
    }

    fn report(findings: Vec<Finding>) -> Report {
        Report {
            environment: "Doors".to_owned(),
            starts: 1,
            loaded: 0,
            calls: 0,
            operations: Vec::new(),
            findings,
        }
    }
}
