//! Verification of a specification: in the sandbox, and by walks without one.

use rlf_environments::environments::Environments;
use rlf_random::Key;
use rlf_specification::Program;
use rlf_specification::play::{Fault, verify};

use super::report::{Finding, FindingKind, Report};
use super::served::{Unserved, served};
use super::{Effort, Start};

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
    report.add_walks(program, effort.seed);
    Ok(report)
}

impl Report {
    /// Adds the faults that walks over the specification find. They make many more calls than sessions do. So a finding
    /// that an operation never succeeds, or is never refused, stays only if the walks have it too.
    fn add_walks(&mut self, program: &Program, seed: u64) {
        let faults = verify(program, Key::from_value(seed).named("walks"));
        let place = |operation: &str| format!("{}-{operation}", program.specification().name);
        let kinds = faults
            .iter()
            .map(|fault| (kind(fault), place(fault.cause().0)));
        let kinds: Vec<(FindingKind, String)> = kinds.collect();
        self.findings.retain(|finding| {
            !is_of_all_calls(finding.kind) || kinds.contains(&(finding.kind, finding.place.clone()))
        });
        for (fault, (kind, place)) in faults.iter().zip(kinds) {
            let is_known = |finding: &Finding| {
                let is_same_place = finding.place == place || kind == FindingKind::DoesNotLoad;
                finding.kind == kind && is_same_place
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
        FindingKind::ResultDiffers => {
            "return the value that the state has, or give the field another name"
        }
        _ => "refuse the call before, with a message that says what to do",
    }
}
