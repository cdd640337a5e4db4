//! `rlf:plugin/execute`: a plugin runs programs, for example a reward that tries the code of a model.
//!
//! Each program has its own instance and its own limits, so a program that loops cannot use up the time that its
//! neighbours are graded with. The caller's total use is bounded by the number of programs that it may run and by its
//! own deadline, which also applies to the programs. If a program cannot run because something is unavailable, the
//! caller's call ends as well: no trajectory must be judged by such a failure.

use std::sync::Arc;

use rlf_sandbox::{OpenGate, State, Stopped};
use tokio::task::JoinSet;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use super::nesting::{Nesting, ProgramRunner};
use crate::bindings::code::{Compiled, Exception, Program, Report};
use crate::bindings::types::Error;

#[allow(missing_docs, unreachable_pub, clippy::pedantic)] // generated
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package rlf:execute-gate; world gate { import rlf:plugin/execute@0.1.0; }",
        world: "rlf:execute-gate/gate",
        imports: { default: async | trappable },
        with: {
            "rlf:plugin/types@0.1.0": crate::bindings::rlf::plugin::types,
            "rlf:plugin/code@0.1.0": crate::bindings::rlf::plugin::code,
        },
    });
}

pub(super) use bindings::rlf::plugin::execute as wit;

/// Access to the interpreters that the grants name.
pub(crate) struct ExecuteGate {
    plugins: Arc<[String]>,
}

impl ExecuteGate {
    pub(crate) fn open(plugins: &[String]) -> Self {
        Self {
            plugins: Arc::from(plugins),
        }
    }
}

impl OpenGate for ExecuteGate {
    fn interface(&self) -> &'static str {
        "rlf:plugin/execute"
    }

    fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        wit::add_to_linker::<State, HasExecute>(linker, |state| View(state))
    }
}

struct HasExecute;

impl HasData for HasExecute {
    type Data<'a> = View<'a>;
}

pub(super) struct View<'a>(pub(super) &'a mut State);

impl View<'_> {
    fn open(&self) -> Option<(Arc<[String]>, Arc<Nesting>)> {
        let plugins = Arc::clone(&self.0.gate::<ExecuteGate>()?.plugins);
        Some((plugins, self.0.context()?))
    }
}

fn denied() -> Error {
    Error::Denied("nothing can be run from here".to_owned())
}

/// Finds the interpreter for a language among the open ones.
fn interpreter(
    nesting: &Nesting,
    plugins: &[String],
    language: &str,
) -> Result<Arc<dyn ProgramRunner>, Error> {
    nesting.interpreter(plugins, language).ok_or_else(|| {
        let language: String = language.chars().take(64).collect();
        Error::NotFound(format!(
            "no interpreter that is open to this plugin runs {language:?}; there are: {}",
            plugins.join(", ")
        ))
    })
}

impl wit::Host for View<'_> {
    async fn compile(
        &mut self,
        language: String,
        name: String,
        source: String,
    ) -> Result<Result<Result<Compiled, Exception>, Error>> {
        let Some((plugins, nesting)) = self.open() else {
            return Ok(Err(denied()));
        };
        let most = self.0.limits().nested_calls;
        if let Err(error) = nesting.count(most) {
            return Ok(Err(error));
        }
        let interpreter = match interpreter(&nesting, &plugins, &language) {
            Ok(interpreter) => interpreter,
            Err(error) => return Ok(Err(error)),
        };
        let compiling = async move { interpreter.compile(&name, &source).await };
        Ok(self.0.outside(compiling).await?)
    }

    async fn run(&mut self, programs: Vec<Program>) -> Result<Vec<Result<Report, Error>>> {
        let most = self.0.limits().nested_calls;
        if programs.len() > most as usize {
            let asked = programs.len() as u64;
            return Err(Stopped::limited("nested_calls", u64::from(most), asked).into());
        }
        let Some((plugins, nesting)) = self.open() else {
            return Ok(programs.iter().map(|_| Err(denied())).collect());
        };
        let deadline = self.0.deadline();
        let mut runs = JoinSet::new();
        for (index, program) in programs.into_iter().enumerate() {
            let label = nesting.count(most);
            let found = label.and_then(|label| {
                let interpreter = interpreter(&nesting, &plugins, &program.language)?;
                Ok((label, interpreter))
            });
            runs.spawn(async move {
                let (label, interpreter) = match found {
                    Ok(found) => found,
                    Err(error) => return (index, Ok(Err(error))),
                };
                (index, interpreter.run(program, label, deadline).await)
            });
        }
        // All results wait together in the host's memory.
        let most_bytes = self.0.limits().hostcall_bytes;
        let all = async {
            let mut answers = Vec::with_capacity(runs.len());
            let mut bytes = 0_u64;
            while let Some(run) = runs.join_next().await {
                let broken = |_| Stopped::unavailable("the host broke while running its programs");
                let (index, report) = run.map_err(broken)?;
                let report = report?;
                bytes += report.as_ref().map_or(0, report_bytes);
                if bytes > most_bytes {
                    return Err(Stopped::limited("hostcall_bytes", most_bytes, bytes));
                }
                answers.push((index, report));
            }
            answers.sort_unstable_by_key(|(index, _)| *index);
            Ok::<_, Stopped>(answers)
        };
        let answers = self.0.outside(all).await?;
        Ok(answers.into_iter().map(|(_, report)| report).collect())
    }
}

fn report_bytes(report: &Report) -> u64 {
    let output = [&report.stdout, &report.stderr]
        .map(|captured| captured.head.len() + captured.tail.len())
        .into_iter();
    let files = report.files.iter().map(|file| file.data.len());
    output.chain(files).sum::<usize>() as u64
}
