//! Commands on standard input, one a line: from a terminal with a prompt, or from a script.

use std::io::{BufRead, IsTerminal, StdinLock, Write};
use std::process::ExitCode;

use anyhow::Context;
use console::style;

/// Reads commands until the input ends.
pub(crate) struct CommandLines {
    input: StdinLock<'static>,
    interactive: bool,
    number: usize,
    failed: bool,
}

impl CommandLines {
    pub(crate) fn from_stdin() -> Self {
        let input = std::io::stdin();
        Self {
            interactive: input.is_terminal(),
            input: input.lock(),
            number: 0,
            failed: false,
        }
    }

    /// True if a person types the commands.
    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// The next command; `None` at the end of the input and after `quit`. Empty lines and comments are skipped.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            if self.interactive {
                let mut out = std::io::stderr();
                let _ = write!(out, "{} ", style(">").bold().for_stderr());
                let _ = out.flush();
            }
            let mut line = String::new();
            let read = self.input.read_line(&mut line);
            if read.context("cannot read standard input")? == 0 {
                return Ok(None);
            }
            self.number += 1;
            match line.trim() {
                "quit" | "exit" => return Ok(None),
                "" => {}
                line if line.starts_with('#') => {}
                line => return Ok(Some(line.to_owned())),
            }
        }
    }

    /// Shows why the last command failed. A script is told its line.
    pub(crate) fn show_error(&mut self, error: anyhow::Error) {
        self.note_failure();
        let error = if self.interactive {
            error
        } else {
            error.context(format!("line {}", self.number))
        };
        eprintln!("{} {error:#}", style("error:").red().bold().for_stderr());
    }

    /// Remembers that a command failed, which has been shown.
    pub(crate) fn note_failure(&mut self) {
        self.failed = true;
    }

    /// Failure if a command of a script failed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.failed && !self.interactive {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}
