//! A tool whose `init` does forbidden things, for tests of the host.
//!
//! ```toml
//! [plugins.bad-init.config]
//! does = "print"   # "open", "panic", "exit", "loop", "grow" or "sleep"
//! ```
//!
//! Handles do not survive a snapshot, but the C library remembers them: if `init` printed or opened a file, later
//! calls that do the same must find working handles.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Seek, Write};
use std::time::Duration;

use rlf_plugin::{plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Misbehaviour {
    /// Prints on both streams.
    Print,
    /// Makes a file in `/work` and keeps it open.
    Open,
    /// Panics.
    Panic,
    /// Leaves by `exit(0)`.
    Exit,
    /// Never ends.
    Loop,
    /// Takes memory without end.
    Grow,
    /// Sleeps for a year.
    Sleep,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    does: Misbehaviour,
}

struct State {
    file: Option<RefCell<File>>,
}

fn init(config: Config) -> Result<State, String> {
    let mut file = None;
    match config.does {
        Misbehaviour::Print => {
            println!("printed by init");
            eprintln!("an error printed by init");
        }
        Misbehaviour::Open => {
            let options = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open("/work/init.txt");
            let mut opened = options.map_err(|error| error.to_string())?;
            opened
                .write_all(b"written by init")
                .map_err(|error| error.to_string())?;
            file = Some(RefCell::new(opened));
        }
        Misbehaviour::Panic => panic!("a panic in init"),
        Misbehaviour::Exit => std::process::exit(0),
        Misbehaviour::Loop => loop {
            black_box(());
        },
        Misbehaviour::Grow => {
            let mut kept = Vec::new();
            loop {
                kept.push(black_box(vec![1_u8; 1 << 16]));
            }
        }
        Misbehaviour::Sleep => std::thread::sleep(Duration::from_hours(24 * 365)),
    }
    Ok(State { file })
}

#[derive(Deserialize, JsonSchema)]
struct Words {
    /// Printed
    text: String,
}

/// Prints, and panics.
#[tool]
fn print_and_panic(Words { text }: Words) -> String {
    println!("{text}");
    let _ = std::io::stdout().flush();
    panic!("{text}");
}

/// Prints, and returns what it printed.
#[tool]
fn print_and_return(Words { text }: Words) -> String {
    println!("{text}");
    text
}

/// Reads the file that `init` left open, and makes another.
#[tool]
fn read_and_open(state: &State) -> String {
    let Some(file) = &state.file else {
        return "init opened nothing".to_owned();
    };
    let mut file = file.borrow_mut();
    let mut text = String::new();
    let done = file
        .rewind()
        .and_then(|()| file.read_to_string(&mut text))
        .and_then(|_| fs::write("/work/call.txt", "written by a call"))
        .and_then(|()| fs::read_to_string("/work/call.txt"));
    match done {
        Ok(own) => format!("{text}; {own}"),
        Err(error) => error.to_string(),
    }
}

plugin!(init: init, tools: [print_and_panic, print_and_return, read_and_open]);
