//! One grade call: the row is parsed once, and all candidates of the group run side by side.

use std::collections::BTreeMap;

use rlf_plugin::execute::{self, Limits, Program, Report};
use rlf_plugin::{Ended, Error, Grading, Task, Terms, Trajectory};

use crate::candidate::Candidate;
use crate::config::{Config, Weak};
use crate::extract::{Code, extract};
use crate::judge::{Values, judge};
use crate::outcome::{Graded, Test};
use crate::plan::{Plan, Verdict, told};
use crate::row::{Python, Row, Stream, Tests};
use crate::streams;
use crate::weak::WeakRun;

/// Maximum bytes of files, and again of output, from all candidates of a round. This is well below the limit of an
/// answer (`hostcall_bytes`); reading takes many times as much, but stays below the memory of a call.
const RETURNED: u64 = 3 << 20;

type Result<T> = std::result::Result<T, String>;

/// Grades a group. An error of the whole comes from the row, the operator or the machine, and excludes the group.
pub(crate) fn group(
    config: &Config,
    task: &Task,
    group: &[Trajectory],
    grading: &Grading,
) -> Result<Vec<Result<Terms>>> {
    let reference = task.reference_value().map_err(|error| error.to_string())?;
    let row = Row::read(&reference)?;
    let codes: Vec<Option<Code>> = group
        .iter()
        .map(|trajectory| extract(trajectory.answer.as_deref()?, config.code))
        .collect();
    let programs: Vec<String> = codes
        .iter()
        .flatten()
        .map(|code| row.program(&code.source))
        .collect();
    let graded = if programs.is_empty() {
        Vec::new()
    } else {
        Group {
            config,
            row: &row,
            codes: &programs,
            seed: grading.seed,
        }
        .graded()?
    };
    let mut graded = graded.into_iter();
    let one = |code: &Option<Code>| {
        let Some(code) = code else {
            return Ok(Graded::nothing().terms(config));
        };
        let mut graded = graded.next().expect("one for each code")?;
        // Prose is not code; a block that is marked as code is, even if it does not parse.
        graded.extracted |= code.fenced;
        Ok(graded.terms(config))
    };
    Ok(codes.iter().map(one).collect())
}

struct Group<'a> {
    config: &'a Config,
    row: &'a Row,
    /// The programs of the candidates that have code.
    codes: &'a [String],
    seed: u64,
}

impl Group<'_> {
    fn graded(&self) -> Result<Vec<Result<Graded>>> {
        match &self.row.tests {
            Tests::Streams(streams) => self.streams(streams),
            Tests::Calls { function, cases } => {
                self.planned(&Plan::calls(function, cases, self.config), None, 0)
            }
            Tests::Python(python) => {
                let plan = Plan::split(python, self.config, self.seed)?;
                self.planned(&plan, Some(python), 1)
            }
        }
    }

    /// Limits of each of this many programs. Their output comes back together, and must always fit, because one
    /// candidate must not break the call for the others.
    fn limits(&self, programs: usize) -> Limits {
        Limits {
            file_bytes: (RETURNED / programs as u64).min(1 << 20),
            output_bytes: (RETURNED / 2 / programs as u64).min(1 << 20) as u32,
            ..self.config.limits()
        }
    }

    /// The number of programs left for each candidate, or an error if they are too few.
    fn share(&self, spent: usize, needed: usize) -> Result<usize> {
        let most = self.config.programs;
        let candidates = self.codes.len();
        let share = most.saturating_sub(spent) / candidates;
        if share < needed {
            return Err(format!(
                "a group of {candidates} needs {} programs and one grade call may run {most}: raise nested_calls in the \
                 limits of this reward and `programs` in its config, or lower `max_tests` or the group's size",
                spent + needed * candidates
            ));
        }
        Ok(share)
    }

    /// Grades candidates with a plan for which `spent` programs have run.
    fn planned(
        &self,
        plan: &Plan,
        python: Option<&Python>,
        spent: usize,
    ) -> Result<Vec<Result<Graded>>> {
        let config = self.config;
        let weak: Vec<usize> = plan.weak.iter().map(|test| test.unit).collect();
        if let (Weak::Error, Some(test)) = (config.weak, plan.weak.first()) {
            return Err(format!(
                "test {} can only run beside the candidate ({}), and weak = \"error\"",
                test.unit, test.why
            ));
        }
        let runs_weak = usize::from(!weak.is_empty() && config.weak == Weak::Run);
        let called = usize::from(!plan.asserts.is_empty());
        // One program to compile; one to judge all candidates.
        let spent = spent + called + usize::from(python.is_some());
        let share = self.share(spent, called + runs_weak)?;
        let attempts = config.attempts.min(share - runs_weak);
        let mut failures: BTreeMap<usize, String> = BTreeMap::new();
        let mut candidates: Vec<Candidate> =
            self.codes.iter().cloned().map(Candidate::new).collect();
        if called == 1 {
            self.calls(plan, attempts, &mut candidates, &mut failures)?;
        }
        let weak_tests = self.weak(python, &weak, runs_weak == 1, &candidates, &mut failures);
        let used: usize = candidates
            .iter()
            .map(|candidate| candidate.programs + runs_weak)
            .sum();
        let left = config
            .programs
            .saturating_sub(spent.saturating_sub(1) + used);
        let asserts = self.judged(plan, python, &candidates, left, &mut failures)?;
        let graded = candidates.iter().zip(asserts).zip(weak_tests).enumerate();
        Ok(graded
            .map(
                |(number, ((candidate, mut tests), weak_tests))| match failures.remove(&number) {
                    Some(why) => Err(why),
                    None => Ok({
                        tests.extend(weak_tests);
                        Graded {
                            tests,
                            weak: weak.len(),
                            extracted: !candidate.rejected,
                            programs: candidate.programs + runs_weak,
                            narrow_integers: candidate.narrow_integers,
                        }
                    }),
                },
            )
            .collect())
    }

    /// Runs every candidate's steps, in rounds of one program each.
    fn calls(
        &self,
        plan: &Plan,
        attempts: usize,
        candidates: &mut [Candidate],
        failures: &mut BTreeMap<usize, String>,
    ) -> Result<()> {
        let module = plan.compile()?;
        loop {
            let open: Vec<usize> = (0..candidates.len())
                .filter(|number| {
                    candidates[*number].is_open(plan, attempts) && !failures.contains_key(number)
                })
                .collect();
            if open.is_empty() {
                return Ok(());
            }
            let programs: Vec<Program> = open
                .iter()
                .map(|number| {
                    candidates[*number].program(plan, &module, self.limits(open.len()), self.seed)
                })
                .collect();
            for (number, ran) in open.into_iter().zip(run(&programs)) {
                match ran {
                    Ok(Ran::Report(report)) => candidates[number].learn(plan, &report),
                    Ok(Ran::Broke) => candidates[number].broken = Some(Test::Exceeded),
                    Err(why) => {
                        failures.insert(number, why);
                    }
                }
            }
        }
    }

    fn weak(
        &self,
        python: Option<&Python>,
        weak: &[usize],
        runs: bool,
        candidates: &[Candidate],
        failures: &mut BTreeMap<usize, String>,
    ) -> Vec<Vec<Test>> {
        let Some(python) = python.filter(|_| runs) else {
            return vec![vec![Test::Unreached; weak.len()]; candidates.len()];
        };
        let runs: Vec<WeakRun> = self
            .codes
            .iter()
            .map(|code| WeakRun::new(weak.to_vec(), code, self.seed))
            .collect();
        let programs: Vec<Program> = runs
            .iter()
            .zip(self.codes)
            .map(|(run, code)| run.program(python, code, self.limits(self.codes.len()), self.seed))
            .collect();
        let mut tests = Vec::new();
        for (number, (run, ran)) in runs.iter().zip(run(&programs)).enumerate() {
            match ran {
                Ok(Ran::Report(report)) => tests.push(run.read(&report)),
                Ok(Ran::Broke) => tests.push(vec![Test::Exceeded; weak.len()]),
                Err(why) => {
                    failures.entry(number).or_insert(why);
                    tests.push(Vec::new());
                }
            }
        }
        tests
    }

    /// The outcome of each assertion, for each candidate: compared here if the values are plain, else by the judge.
    fn judged(
        &self,
        plan: &Plan,
        python: Option<&Python>,
        candidates: &[Candidate],
        programs: usize,
        failures: &mut BTreeMap<usize, String>,
    ) -> Result<Vec<Vec<Test>>> {
        let mut asked: BTreeMap<usize, Values> = BTreeMap::new();
        // `Ok` is final; `Err` is the outcome unless the judge says that the assertion holds.
        let mut tests: Vec<Vec<std::result::Result<Test, Test>>> = Vec::new();
        for (number, candidate) in candidates.iter().enumerate() {
            let mut of_this = Vec::new();
            for assertion in &plan.asserts {
                let missing = candidate.missing(&assertion.holes);
                if let Some(missing) = missing
                    && !assertion.may_do_without()
                {
                    of_this.push(Ok(missing));
                    continue;
                }
                let values = || {
                    assertion
                        .holes
                        .iter()
                        .filter_map(|step| Some((*step, candidate.value(*step)?)))
                };
                let verdict = match (&*assertion.holes, values().next()) {
                    ([_], Some((_, value))) => assertion.verdict(value),
                    (_, Some(_)) => Verdict::Open,
                    (_, None) => Verdict::Fails,
                };
                let otherwise = missing.unwrap_or(Test::Wrong);
                of_this.push(match verdict {
                    Verdict::Holds => Ok(Test::Passed),
                    Verdict::Fails => Ok(otherwise),
                    Verdict::Open => {
                        let values = values().map(|(step, value)| (step, value.clone()));
                        asked.entry(number).or_default().extend(values);
                        Err(otherwise)
                    }
                });
            }
            tests.push(of_this);
        }
        let verdicts = match python {
            Some(python) => judge(python, &asked, self.config.judging(), self.seed, programs)?,
            None => BTreeMap::new(),
        };
        for number in asked.keys().filter(|number| !verdicts.contains_key(number)) {
            failures.entry(*number).or_insert_with(|| {
                "the programs of this grade call are spent before it is judged; raise `nested_calls` in the limits \
                 of this reward, and `programs` in its config"
                    .to_owned()
            });
        }
        let settled = tests.into_iter().enumerate().map(|(number, tests)| {
            let holds = |assertion| {
                verdicts
                    .get(&number)
                    .is_some_and(|holding| holding.contains(&assertion))
            };
            let settle = |(assertion, test): (usize, std::result::Result<Test, Test>)| match test {
                Ok(settled) => settled,
                Err(_) if holds(assertion) => Test::Passed,
                Err(otherwise) => otherwise,
            };
            tests.into_iter().enumerate().map(settle).collect()
        });
        Ok(settled.collect())
    }

    /// Runs one program for each candidate and test: the code may read a stream in ways that only a separate process
    /// supports.
    fn streams(&self, streams: &[Stream]) -> Result<Vec<Result<Graded>>> {
        let config = self.config;
        let most = if config.max_tests == 0 {
            streams.len()
        } else {
            config.max_tests
        };
        let streams = &streams[..most.min(streams.len())];
        self.share(0, streams.len())?;
        let limits = self.limits(self.codes.len() * streams.len());
        let programs: Vec<Program> = self
            .codes
            .iter()
            .flat_map(|code| {
                streams
                    .iter()
                    .map(|stream| streams::program(code, stream, limits, self.seed))
            })
            .collect();
        let ran = run(&programs);
        let graded = ran.chunks(streams.len()).map(|ran| {
            let mut tests = Vec::new();
            let (mut rejected, mut narrow_integers) = (false, false);
            for (ran, stream) in ran.iter().zip(streams) {
                tests.push(match ran.as_ref().map_err(String::clone)? {
                    Ran::Broke => Test::Exceeded,
                    Ran::Report(report) => {
                        rejected |= matches!(report.outcome, Some(execute::Outcome::Rejected(_)));
                        narrow_integers |= report.has_narrow_integers();
                        streams::test(report, stream)?
                    }
                });
            }
            Ok(Graded {
                weak: 0,
                extracted: !rejected,
                programs: tests.len(),
                narrow_integers,
                tests,
            })
        });
        Ok(graded.collect())
    }
}

/// The result of running a program.
enum Ran {
    Report(Box<Report>),
    /// It left more output than allowed, or broke its interpreter, which worked when the row was parsed.
    Broke,
}

/// Maximum bytes passed to the host at once: half of the default of `hostcall_bytes`.
const HANDED: usize = 8 << 20;

/// Splits the programs: as many as may be passed at once, at least one; and the rest.
fn handed(programs: &[Program]) -> (&[Program], &[Program]) {
    let mut bytes = 0;
    let fits = programs.iter().take_while(|program| {
        let files = program.files.iter().map(|file| file.data.len());
        let modules = program.modules.iter().map(|module| module.data.len());
        bytes += program.code.len() + program.stdin.len() + files.chain(modules).sum::<usize>();
        bytes <= HANDED
    });
    programs.split_at(fits.count().max(1).min(programs.len()))
}

/// Runs programs. An infrastructure failure is an error, not a failed test.
fn run(programs: &[Program]) -> Vec<Result<Ran>> {
    let ran = |ran: std::result::Result<Report, Error>| match ran {
        Ok(report) if matches!(report.ended, Ended::Unavailable | Ended::Cancelled) => {
            Err(format!(
                "the candidate could not be run: its program ended as {:?}",
                report.ended
            ))
        }
        Ok(report) => Ok(Ran::Report(Box::new(report))),
        // Too much output is the candidate's fault, too much input the row's.
        Err(Error::Exhausted(text)) if text.contains("programs.file_bytes") => Err(format!(
            "a test of the row is too large for a program: {text}; raise `file_bytes` in [plugins.INTERPRETER.programs], \
             or lower `max_tests` in the config of this reward"
        )),
        Err(Error::Exhausted(text)) if !text.contains("nested_calls") => Ok(Ran::Broke),
        Err(Error::Internal(_)) => Ok(Ran::Broke),
        Err(error) => Err(told(&error)),
    };
    let mut answers = Vec::with_capacity(programs.len());
    let mut left = programs;
    while !left.is_empty() {
        let (now, later) = handed(left);
        answers.extend(execute::run(now).into_iter().map(ran));
        left = later;
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_handed_over_in_parts_that_fit() {
        let program = |bytes: usize| Program::new("python", "").stdin(vec![b'1'; bytes]);
        let (small, half, huge) = (program(10), program(HANDED / 2), program(2 * HANDED));
        let mut left = &[
            small.clone(),
            half.clone(),
            half.clone(),
            huge,
            small.clone(),
            small,
        ][..];
        let mut parts = Vec::new();
        while !left.is_empty() {
            let (now, later) = handed(left);
            parts.push(now.len());
            left = later;
        }
        assert_eq!(parts, [2, 1, 1, 2]);
    }
}
