//! An interpreter that tests of the host can predict exactly: one command a line, each with one effect.
#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::pedantic)] // generated

wit_bindgen::generate!({
    path: "../../../wit",
    world: "interpreter-plugin",
    generate_all,
});

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use exports::rlf::plugin::interpreter::{
    Cell, Compiled, Error, Exception, File, Guest, GuestSession, Language, Limits, Outcome,
    Program, Run, Session,
};
use exports::rlf::plugin::lifecycle;
use rlf::plugin::process;
use rlf::plugin::types::Blob;

struct Toy;

export!(Toy);

impl lifecycle::Guest for Toy {
    fn init(_config: String) -> Result<(), lifecycle::Error> {
        Ok(())
    }
}

fn exception(kind: &str, message: &str) -> Exception {
    Exception {
        kind: kind.to_owned(),
        message: message.to_owned(),
        traceback: format!("{kind}: {message}\n"),
    }
}

/// The state of a running program.
#[derive(Default)]
struct ProgramState {
    arguments: Vec<String>,
    stdin: Vec<u8>,
    modules: Vec<Compiled>,
    variables: BTreeMap<String, String>,
    value: Option<String>,
    displays: Vec<Blob>,
}

fn print(text: &str) {
    process::write(1, format!("{text}\n").as_bytes());
}

impl ProgramState {
    /// Runs one line; returns the outcome if the program ends here.
    fn command(&mut self, line: &str) -> Option<Outcome> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.parse::<u64>().unwrap_or_default();
        match command {
            "" => {}
            "print" => print(rest),
            "warn" => process::write(2, format!("{rest}\n").as_bytes()),
            "arguments" => print(&self.arguments.join("|")),
            "stdin" => process::write(1, &self.stdin),
            "exit" => return Some(Outcome::Exited(rest.parse().unwrap_or_default())),
            "leave" => process::exit(rest.parse().unwrap_or_default()),
            "raise" => {
                let raised = exception("Error", rest);
                process::write(2, raised.traceback.as_bytes());
                return Some(Outcome::Raised(raised));
            }
            "loop" => loop {
                std::hint::black_box(());
            },
            "sleep" => process::sleep(number() * 1_000_000),
            "grow" => {
                let grown = vec![1_u8; usize::try_from(number() << 20).unwrap_or(usize::MAX)];
                std::hint::black_box(&grown);
            }
            "flood" => {
                for _ in 0..number() {
                    process::write(1, &[b'x'; 1024]);
                }
            }
            "trap" => std::process::abort(),
            "write" => {
                let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                if let Err(error) = fs::write(path, text) {
                    print(&error.kind().to_string());
                }
            }
            "read" => match fs::read_to_string(rest) {
                Ok(text) => print(&text),
                Err(error) => print(&error.kind().to_string()),
            },
            "random" => print(&process::random().to_string()),
            "now" => print(&format!(
                "{} {}",
                process::wall_now(),
                process::monotonic_now()
            )),
            "import" => match self.modules.iter().find(|module| module.name == rest) {
                Some(module) => print(&String::from_utf8_lossy(&module.data)),
                None => return Some(Outcome::Raised(exception("ImportError", rest))),
            },
            "set" => {
                let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
                self.variables.insert(name.to_owned(), value.to_owned());
            }
            "get" => self.value = self.variables.get(rest).cloned(),
            "show" => self.displays.push(Blob {
                media_type: "text/plain".to_owned(),
                data: rest.as_bytes().to_vec(),
            }),
            other => return Some(Outcome::Raised(exception("NameError", other))),
        }
        None
    }

    fn run(&mut self, code: &str) -> Outcome {
        let ended = code.lines().find_map(|line| self.command(line));
        ended.unwrap_or(Outcome::Completed)
    }
}

/// Makes the folder of a file. If this fails, writing the file fails too.
fn make_folder(path: &str) {
    if let Some(folder) = Path::new(path).parent() {
        let _ = fs::create_dir_all(folder);
    }
}

fn put(files: Vec<File>) -> Result<(), Error> {
    for file in files {
        let bad = |why: String| Error::InvalidArguments(format!("file {:?}: {why}", file.path));
        if file.path.split('/').any(|name| name == "..") {
            return Err(bad("it leads out".to_owned()));
        }
        make_folder(&file.path);
        fs::write(&file.path, &file.data).map_err(|error| bad(error.to_string()))?;
    }
    Ok(())
}

fn take(paths: Vec<String>) -> Vec<File> {
    let file = |path: String| {
        let data = fs::read(&path).ok()?;
        Some(File { path, data })
    };
    paths.into_iter().filter_map(file).collect()
}

impl Guest for Toy {
    type Session = Notebook;

    fn languages() -> Vec<Language> {
        vec![Language {
            id: "toy".to_owned(),
            version: "1".to_owned(),
            sessions: true,
        }]
    }

    fn compile(_language: String, name: String, source: String) -> Result<Compiled, Exception> {
        if let Some(wrong) = source.strip_prefix('!') {
            return Err(exception("SyntaxError", wrong));
        }
        let mut data = String::new();
        let _ = write!(data, "compiled {source}");
        Ok(Compiled {
            name,
            data: data.into_bytes(),
        })
    }

    fn execute(program: Program) -> Result<Run, Error> {
        put(program.files)?;
        for path in program.fetch.iter().filter(|path| path.starts_with('/')) {
            make_folder(path);
        }
        let mut state = ProgramState {
            arguments: program.arguments,
            stdin: program.stdin,
            modules: program.modules,
            ..ProgramState::default()
        };
        let outcome = match program.code.strip_prefix('!') {
            Some(wrong) => Outcome::Rejected(exception("SyntaxError", wrong)),
            None => state.run(&program.code),
        };
        Ok(Run {
            outcome,
            files: take(program.fetch),
        })
    }
}

struct Notebook(RefCell<ProgramState>);

impl GuestSession for Notebook {
    fn open(
        _language: String,
        files: Vec<File>,
        modules: Vec<Compiled>,
        _seed: u64,
    ) -> Result<Session, Error> {
        put(files)?;
        Ok(Session::new(Self(RefCell::new(ProgramState {
            modules,
            ..ProgramState::default()
        }))))
    }

    fn execute(&self, code: String, _limits: Limits) -> Result<Cell, Error> {
        let mut state = self.0.borrow_mut();
        state.value = None;
        let outcome = state.run(&code);
        Ok(Cell {
            outcome,
            value: state.value.take(),
            displays: std::mem::take(&mut state.displays),
        })
    }

    fn fetch(&self, paths: Vec<String>) -> Vec<File> {
        take(paths)
    }
}
