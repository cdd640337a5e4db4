//! Programs that read and print: each test is one run of the unchanged code.

use rlf_plugin::execute::{Limits, Program, Report};

use crate::outcome::{Test, cut_short};
use crate::row::Stream;

/// The candidate as a separate program.
pub(crate) fn program(code: &str, stream: &Stream, limits: Limits, seed: u64) -> Program {
    Program::new("python", code)
        .stdin(stream.input.clone())
        .seed(seed)
        .limits(limits)
}

/// The result of one run. Its output counts only if the program ran to its end, also by `sys.exit()`. It is an error
/// if the expected output is longer than the output that is kept, because no candidate could pass.
pub(crate) fn test(report: &Report, stream: &Stream) -> Result<Test, String> {
    use rlf_plugin::execute::Outcome;
    let ended = matches!(
        report.outcome,
        Some(Outcome::Completed | Outcome::Exited(0))
    );
    if !ended {
        return Ok(cut_short(report));
    }
    if report.stdout.omitted > 0 {
        let kept = report.stdout.head.len() + report.stdout.tail.len();
        if stream.output.trim_end().len() > kept {
            return Err(format!(
                "the expected output has {} bytes, and {kept} of a program's are kept; raise `output_bytes` in the \
                 programs of the interpreter, or lower the tests of a group",
                stream.output.len()
            ));
        }
        return Ok(Test::Exceeded);
    }
    let printed = [&*report.stdout.head, &*report.stdout.tail].concat();
    if same(&String::from_utf8_lossy(&printed), &stream.output) {
        Ok(Test::Passed)
    } else {
        Ok(Test::Wrong)
    }
}

/// White space at the ends of lines and empty lines at the end do not count; everything else is compared exactly.
fn same(printed: &str, expected: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let trimmed = text.trim_end();
        trimmed
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    lines(printed) == lines(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_at_ends_is_no_answer() {
        assert!(same("1 2\n3\n", "1 2 \r\n3"));
        assert!(same("", "\n\n"));
        for (printed, expected) in [
            ("1  2", "1 2"),
            (" 1", "1"),
            ("\n1", "1"),
            ("1\n\n2", "1\n2"),
        ] {
            assert!(!same(printed, expected), "{printed:?} {expected:?}");
        }
    }

    #[test]
    fn a_right_text_of_a_program_that_failed_does_not_count() {
        let stream = Stream {
            input: String::new(),
            output: "1".to_owned(),
        };
        let mut report = Report::printed("1\n");
        assert_eq!(test(&report, &stream), Ok(Test::Passed));
        report.outcome = Some(rlf_plugin::execute::Outcome::Exited(1));
        assert_eq!(test(&report, &stream), Ok(Test::Exited));
        report.outcome = None;
        report.ended = rlf_plugin::Ended::Timeout;
        assert_eq!(test(&report, &stream), Ok(Test::TimedOut));
    }
}
