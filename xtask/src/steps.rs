//! A command of this crate is a sequence of steps. Each step has a heading, visible output and a time, and a step
//! that fails says what to type.

use std::{
    fmt::Write as _,
    io::{IsTerminal, stderr},
    panic,
    process::{Command, ExitStatus, Output},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// The steps taken so far.
#[derive(Debug)]
pub struct Steps {
    taken: Vec<Step>,
    start: Instant,
}

#[derive(Debug)]
struct Step {
    name: String,
    time: Duration,
    failed: bool,
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

impl Steps {
    /// A list without steps.
    pub fn new() -> Self {
        Self {
            taken: Vec::new(),
            start: Instant::now(),
        }
    }

    /// Runs `command` as the step `name`; its output goes to the same place as ours. If it fails, `mend` says what to
    /// do.
    pub fn run(&mut self, name: &str, command: &mut Command, mend: &str) -> Result<()> {
        self.take(name, || {
            say(&format!("$ {}", command_line(command)));
            let status = status(command)?;
            if status.success() {
                return Ok(());
            }
            bail!(
                "{name}: {status}\n  ran:  {}\n  mend: {mend}",
                command_line(command)
            )
        })
    }

    /// Runs `work` as the step `name`; its error is the step's.
    pub fn take<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        heading(name);
        let start = Instant::now();
        let outcome = work();
        self.taken.push(Step {
            name: name.to_owned(),
            time: start.elapsed(),
            failed: outcome.is_err(),
        });
        outcome
    }

    /// Runs two pieces of work at once, each as a step, and returns the first error of the two. While one of them
    /// waits for a single compiler, the other uses the rest of the processor.
    pub fn take_both(
        &mut self,
        (name, work): (&str, impl FnOnce() -> Result<()> + Send),
        (other_name, other_work): (&str, impl FnOnce() -> Result<()> + Send),
    ) -> Result<()> {
        heading(&format!("{name}; at the same time: {other_name}"));
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(|| timed(other_work));
            (timed(work), other.join())
        });
        let other = other.unwrap_or_else(|panic| panic::resume_unwind(panic));
        for (name, (time, outcome)) in [(name, &one), (other_name, &other)] {
            self.taken.push(Step {
                name: name.to_owned(),
                time: *time,
                failed: outcome.is_err(),
            });
        }
        one.1.and(other.1)
    }

    /// A line for each step, and the total time. Steps that ran at once overlap in it.
    pub fn summary(&self) -> String {
        let width = self.taken.iter().map(|step| step.name.len()).max();
        let width = width.unwrap_or(0).max("total".len());
        let mut text = String::new();
        for step in &self.taken {
            let mark = if step.failed { "  FAILED" } else { "" };
            let time = seconds(step.time);
            _ = writeln!(text, "  {:width$}  {time:>8}{mark}", step.name);
        }
        let total = seconds(self.start.elapsed());
        _ = write!(text, "  {:width$}  {total:>8}", "total");
        text
    }
}

/// Runs `command` and waits for it. It is an error if it cannot be started, but not if it fails.
pub fn status(command: &mut Command) -> Result<ExitStatus> {
    command
        .status()
        .with_context(|| format!("cannot start `{}`", command_line(command)))
}

/// The standard output of `command`, if it succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let output = finished(command)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` did not print UTF-8", command_line(command)))
}

/// The standard error of `command`, if it succeeds.
pub fn errors(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&finished(command)?.stderr).into_owned())
}

fn finished(command: &mut Command) -> Result<Output> {
    let output = command
        .output()
        .with_context(|| format!("cannot start `{}`", command_line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{}`: {}\n{}",
            command_line(command),
            output.status,
            said.trim()
        );
    }
    Ok(output)
}

/// Prints the heading of a part of the work.
pub fn heading(text: &str) {
    if stderr().is_terminal() {
        eprintln!("\n\x1b[1m== {text}\x1b[0m");
    } else {
        eprintln!("\n== {text}");
    }
}

/// Prints a line under a heading.
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// The command as a user would type it.
fn command_line(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(|argument| {
        let argument = argument.to_string_lossy();
        if argument.is_empty() || argument.contains([' ', '(', '\'', '&', '*']) {
            format!("'{}'", argument.replace('\'', r"'\''"))
        } else {
            argument.into_owned()
        }
    });
    std::iter::once(program)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

fn timed(work: impl FnOnce() -> Result<()>) -> (Duration, Result<()>) {
    let start = Instant::now();
    let outcome = work();
    (start.elapsed(), outcome)
}

fn seconds(time: Duration) -> String {
    // Rounded first, so that no time reads as `60.0 s` or `1 min 60 s`.
    let tenths = (time.as_secs_f64() * 10.0).round() / 10.0;
    if tenths < 60.0 {
        return format!("{tenths:.1} s");
    }
    let seconds = tenths.round() as u64;
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_says_what_ran_and_how_to_mend_it() {
        let mut steps = Steps::new();
        let error = steps
            .run("nothing", &mut Command::new("false"), "try `true`")
            .unwrap_err()
            .to_string();
        assert!(error.contains("ran:  false"), "{error}");
        assert!(error.contains("mend: try `true`"), "{error}");
        assert!(steps.summary().contains("FAILED"));
    }

    #[test]
    fn the_summary_names_every_step() {
        let mut steps = Steps::new();
        steps.run("first", &mut Command::new("true"), "").unwrap();
        steps.take("second", || Ok(())).unwrap();
        let lines: Vec<_> = steps.summary().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("first") && lines[1].contains("second"));
        assert!(lines[2].contains("total"));
    }

    #[test]
    fn of_two_steps_at_once_each_has_its_line_and_one_failure_is_enough() {
        let mut steps = Steps::new();
        steps
            .take_both(("first", || Ok(())), ("second", || Ok(())))
            .unwrap();
        let failed = steps.take_both(("third", || Ok(())), ("fourth", || bail!("no")));
        assert_eq!(failed.unwrap_err().to_string(), "no");
        let summary = steps.summary();
        let marked: Vec<_> = summary
            .lines()
            .map(|line| line.contains("FAILED"))
            .collect();
        assert_eq!(marked, [false, false, false, true, false], "{summary}");
    }

    #[test]
    fn commands_are_shown_as_they_are_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["nextest", "-E", "not package(x)"]);
        assert_eq!(command_line(&command), "cargo nextest -E 'not package(x)'");
    }

    #[test]
    fn times_are_in_minutes_from_a_minute_on() {
        assert_eq!(seconds(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 05 s");
        assert_eq!(seconds(Duration::from_millis(59_960)), "1 min 00 s");
        assert_eq!(seconds(Duration::from_millis(119_700)), "2 min 00 s");
    }
}
