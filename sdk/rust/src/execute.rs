//! Running programs, for plugins to which the operator opens the gate `execute`.
//!
//! A plugin asks for the gate in `plugin.toml` (`gates = ["execute"]`); the operator decides which interpreters it
//! may use (`execute = ["python"]`). Each program runs in a fresh instance, under its own limits, and has only the
//! inputs that it is given. One call runs at most 64 programs in total, unless the operator sets another number
//! (`nested_calls`), all of them before the caller's deadline.
//!
//! ```
//! use rlf_plugin::execute::{self, Program};
//! # use rlf_plugin::{execute::Report, testing};
//! # testing::execute_with(|program| {
//! #     assert_eq!(program.stdin, b"21");
//! #     Ok(Report::printed("42\n"))
//! # });
//!
//! let double = Program::new("python", "print(int(input()) * 2)").stdin("21");
//! let report = execute::run_one(double).unwrap();
//! assert!(report.completed());
//! assert_eq!(report.stdout.text(), "42\n");
//! ```

pub use crate::bindings::execute::rlf::plugin::code::{
    Captured, Compiled, Exception, File, Limits, Outcome, Program, Report,
};

use crate::{Ended, Error};

/// Beginning of the line that the interpreter `python-science` writes about numpy.
const NARROW_INTEGERS: &str = "note: numpy's default integers have 32 bits";

/// Compiles a module that programs can import by its name, once for all of them. The inner error describes an error
/// in the source.
pub fn compile(
    language: &str,
    name: &str,
    source: &str,
) -> Result<Result<Compiled, Exception>, Error> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::execute::rlf::plugin::execute::compile(language, name, source);
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = language;
        crate::stand_in::compile(name, source)
    }
}

/// Runs the programs side by side; one result for each, in order. Every program that ran has a report, however it
/// ended.
pub fn run(programs: &[Program]) -> Vec<Result<Report, Error>> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::execute::rlf::plugin::execute::run(programs);
    #[cfg(not(target_family = "wasm"))]
    programs.iter().map(crate::stand_in::execute).collect()
}

/// Runs one program.
pub fn run_one(program: Program) -> Result<Report, Error> {
    run(&[program])
        .pop()
        .unwrap_or_else(|| Err(Error::Internal("the host gave no answer".to_owned())))
}

/// The highest limits that the operator allows.
impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_ms: 0,
            memory_bytes: 0,
            output_bytes: 0,
            file_bytes: 0,
        }
    }
}

impl Program {
    /// A program without inputs, under the limits that the operator sets for its interpreter.
    pub fn new(language: impl Into<String>, code: impl Into<String>) -> Self {
        Self {
            language: language.into(),
            code: code.into(),
            arguments: Vec::new(),
            stdin: Vec::new(),
            files: Vec::new(),
            fetch: Vec::new(),
            modules: Vec::new(),
            seed: 0,
            limits: Limits::default(),
        }
    }

    /// Sets the program's arguments: the first one is its name.
    #[must_use]
    pub fn arguments<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets its standard input.
    #[must_use]
    pub fn stdin(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.stdin = data.into();
        self
    }

    /// Adds a file that exists when the program starts.
    #[must_use]
    pub fn file(mut self, path: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        self.files.push(File {
            path: path.into(),
            data: data.into(),
        });
        self
    }

    /// Adds a file to return after the run, if it exists.
    #[must_use]
    pub fn fetch(mut self, path: impl Into<String>) -> Self {
        self.fetch.push(path.into());
        self
    }

    /// Adds a module that the program can import.
    #[must_use]
    pub fn module(mut self, module: &Compiled) -> Self {
        self.modules.push(module.clone());
        self
    }

    /// Sets another seed of everything random.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets its limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl Report {
    /// The report of a program that printed this text and completed, for tests.
    pub fn printed(stdout: impl Into<Vec<u8>>) -> Self {
        let captured = |head: Vec<u8>| Captured {
            head,
            tail: Vec::new(),
            omitted: 0,
        };
        Self {
            ended: Ended::Ok,
            outcome: Some(Outcome::Completed),
            stdout: captured(stdout.into()),
            stderr: captured(Vec::new()),
            files: Vec::new(),
            cpu_us: 0,
        }
    }

    /// True if the program ran to its end.
    pub fn completed(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Completed))
    }

    /// The exception that ended the program, if it did not complete: an exception that it raised, or a syntax error
    /// in its source.
    pub fn exception(&self) -> Option<&Exception> {
        match &self.outcome {
            Some(Outcome::Raised(exception) | Outcome::Rejected(exception)) => Some(exception),
            Some(Outcome::Completed | Outcome::Exited(_)) | None => None,
        }
    }

    /// True if the program used numpy where its default integers have 32 bits, so that sums of them may have overflowed
    /// without an error. The interpreter `python-science` says so on standard error when the program imports numpy.
    ///
    /// ```
    /// use rlf_plugin::execute::Report;
    ///
    /// let mut report = Report::printed("704982704\n");
    /// assert!(!report.has_narrow_integers());
    /// report.stderr.head = b"half a line note: numpy's default integers have 32 bits here and ..\n".to_vec();
    /// assert!(report.has_narrow_integers());
    /// ```
    pub fn has_narrow_integers(&self) -> bool {
        let note = NARROW_INTEGERS.as_bytes();
        // The program may have written a part of a line before it.
        let has_note = |part: &[u8]| part.windows(note.len()).any(|bytes| bytes == note);
        has_note(&self.stderr.head) || has_note(&self.stderr.tail)
    }

    /// A file that the run returned.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        let named =
            |file: &&File| file.path.trim_start_matches('/') == path.trim_start_matches('/');
        self.files.iter().find(named).map(|file| &*file.data)
    }
}

impl Captured {
    /// The stream as text, with a mark where a part was left out.
    pub fn text(&self) -> String {
        // A character may begin in the head and end in the tail.
        if self.omitted == 0 {
            let whole = [self.head.as_slice(), &self.tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[{} bytes left out]\n{tail}", self.omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_native_test_answers_for_the_interpreters() {
        let program = Program::new("python", "print(1)")
            .file("a.txt", "a")
            .seed(7);
        assert!(matches!(run_one(program.clone()), Err(Error::Denied(_))));
        assert!(matches!(
            compile("python", "m", "x = 1"),
            Err(Error::Denied(_))
        ));
        testing::execute_with(|program| {
            assert_eq!((&*program.language, program.seed), ("python", 7));
            assert_eq!(program.files[0].data, b"a");
            Ok(Report {
                files: vec![File {
                    path: "/out".into(),
                    data: b"b".to_vec(),
                }],
                ..Report::printed(program.code.clone())
            })
        });
        let module = compile("python", "m", "x = 1").unwrap().unwrap();
        assert_eq!((&*module.name, &*module.data), ("m", &b"x = 1"[..]));
        let report = run_one(program).unwrap();
        assert_eq!(report.stdout.text(), "print(1)");
        assert_eq!(report.file("out"), Some(&b"b"[..]));
        assert!(report.completed() && report.exception().is_none());
    }

    #[test]
    fn what_was_left_out_is_marked() {
        let captured = Captured {
            head: b"a".to_vec(),
            tail: b"z".to_vec(),
            omitted: 24,
        };
        assert_eq!(captured.text(), "a\n[24 bytes left out]\nz");
        let split = Captured {
            head: vec!["é".as_bytes()[0]],
            tail: vec!["é".as_bytes()[1]],
            omitted: 0,
        };
        assert_eq!(split.text(), "é");
    }
}
