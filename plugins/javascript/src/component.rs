//! The contract's exports.

use std::cell::Cell as Slot;

use crate::{
    bindings::{
        exports::rlf::plugin::{
            interpreter::{
                self, Cell, Compiled, Error, File, GuestSession, Language, Limits, Outcome,
                Program, Run, Session,
            },
            lifecycle,
        },
        rlf::plugin::{code, types::Blob},
    },
    engine::{self, Ended, Engine, Fault},
    files::{Refused, normalize},
    host::message,
};

pub(crate) struct Component;

thread_local! {
    /// Made by `init`, and so part of the snapshot.
    static ENGINE: Slot<Option<&'static Engine>> = const { Slot::new(None) };
}

impl lifecycle::Guest for Component {
    fn init(config: String) -> Result<(), Error> {
        let engine = Engine::new().map_err(Error::Internal)?;
        if config.trim() != "{}" {
            engine.configure(&config).map_err(Error::InvalidArguments)?;
        }
        ENGINE.set(Some(engine));
        Ok(())
    }
}

impl interpreter::Guest for Component {
    type Session = Notebook;

    fn languages() -> Vec<Language> {
        vec![Language {
            id: "javascript".to_owned(),
            version: "ES2025 (QuickJS-ng 0.16.2)".to_owned(),
            sessions: true,
        }]
    }

    fn compile(
        language: String,
        name: String,
        source: String,
    ) -> Result<Compiled, code::Exception> {
        let engine = known(&language).and_then(|()| take_engine());
        let engine = engine.map_err(refused)?;
        let compiled = engine.compile(&name, &source);
        ENGINE.set(Some(engine));
        Ok(Compiled {
            data: compiled.map_err(exception)?,
            name,
        })
    }

    fn execute(program: Program) -> Result<Run, Error> {
        known(&program.language)?;
        let engine = take_engine()?;
        let state = engine.state();
        state.seed(program.seed);
        state.files.borrow_mut().limit(program.limits.file_bytes);
        place(engine, &program.files)?;
        state.files.borrow_mut().expect(&program.fetch);
        state.stdin.replace(program.stdin);
        keep_modules(engine, program.modules);
        let ended = engine.execute(&engine::Program {
            code: &program.code,
            arguments: program.arguments,
        });
        let files = fetch(engine, program.fetch);
        Ok(Run {
            outcome: outcome(ended),
            files,
        })
    }
}

pub(crate) struct Notebook {
    engine: &'static Engine,
    cells: Slot<u32>,
}

impl GuestSession for Notebook {
    fn open(
        language: String,
        files: Vec<File>,
        modules: Vec<Compiled>,
        seed: u64,
    ) -> Result<Session, Error> {
        known(&language)?;
        let engine = take_engine()?;
        engine.state().seed(seed);
        place(engine, &files)?;
        keep_modules(engine, modules);
        Ok(Session::new(Self {
            engine,
            cells: Slot::new(0),
        }))
    }

    fn execute(&self, code: String, limits: Limits) -> Result<Cell, Error> {
        if self.engine.has_plugin() {
            let (ended, value) = self.engine.request(&code);
            return Ok(Cell {
                outcome: outcome(ended),
                value,
                displays: Vec::new(),
            });
        }
        self.cells.set(self.cells.get() + 1);
        self.engine
            .state()
            .files
            .borrow_mut()
            .limit(limits.file_bytes);
        let name = format!("/cell-{}.js", self.cells.get());
        let (ended, value, displays) = self.engine.cell(&code, &name);
        let blob = |(media_type, data): (String, String)| Blob {
            media_type,
            data: data.into_bytes(),
        };
        Ok(Cell {
            outcome: outcome(ended),
            value,
            displays: displays.into_iter().map(blob).collect(),
        })
    }

    fn fetch(&self, paths: Vec<String>) -> Vec<File> {
        fetch(self.engine, paths)
    }
}

/// The engine of the snapshot, once; a new engine if that one is taken, as in the second session of an instance.
fn take_engine() -> Result<&'static Engine, Error> {
    match ENGINE.take() {
        Some(engine) => Ok(engine),
        None => Engine::new().map_err(Error::Internal),
    }
}

fn known(language: &str) -> Result<(), Error> {
    if matches!(language, "javascript" | "js" | "node" | "nodejs") {
        return Ok(());
    }
    Err(Error::NotFound(format!(
        "no language `{language}` here: this interpreter runs `javascript`"
    )))
}

/// Turns an error into an exception, where the contract allows only exceptions.
fn refused(error: Error) -> code::Exception {
    let message = message(error);
    code::Exception {
        kind: "Error".to_owned(),
        traceback: format!("Error: {message}\n"),
        message,
    }
}

fn place(engine: &Engine, files: &[File]) -> Result<(), Error> {
    let mut tree = engine.state().files.borrow_mut();
    for file in files {
        if file.path.split('/').any(|segment| segment == "..")
            || file.path.contains('\0')
            || file.path.is_empty()
        {
            return Err(Error::InvalidArguments(format!(
                "file {:?}: a path is relative to the root, with `/` between names and no `..`",
                file.path
            )));
        }
        tree.place(&normalize("/", &file.path), &file.data)
            .map_err(|refused| match refused {
                Refused::Full => Error::Exhausted(format!(
                    "file {:?}: the files are larger than their limit",
                    file.path
                )),
                refused => {
                    Error::InvalidArguments(format!("file {:?}: {}", file.path, refused.code()))
                }
            })?;
    }
    Ok(())
}

fn keep_modules(engine: &Engine, modules: Vec<Compiled>) {
    let modules = modules.into_iter().map(|module| (module.name, module.data));
    engine.state().compiled.borrow_mut().extend(modules);
}

fn fetch(engine: &Engine, paths: Vec<String>) -> Vec<File> {
    let files = engine.state().files.borrow();
    let found = paths.into_iter().filter_map(|path| {
        let data = files.read(&normalize("/", &path)).ok()?.to_vec();
        Some(File { path, data })
    });
    found.collect()
}

fn outcome(ended: Ended) -> Outcome {
    match ended {
        Ended::Completed => Outcome::Completed,
        Ended::Exited(code) => Outcome::Exited(code),
        Ended::Raised(fault) => Outcome::Raised(exception(fault)),
        Ended::Rejected(fault) => Outcome::Rejected(exception(fault)),
    }
}

fn exception(fault: Fault) -> code::Exception {
    code::Exception {
        kind: fault.kind,
        message: fault.message,
        traceback: fault.traceback,
    }
}

mod exports {
    // Generated, as the bindings are.
    #![allow(unsafe_code)]

    use super::Component;

    crate::bindings::export!(Component with_types_in crate::bindings);
}
