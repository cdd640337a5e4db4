//! Tasks made from chains of tools: what is kept can be solved from its text, what is broken is found, and the same
//! seed gives the same bytes.

#[path = "tasks/broken.rs"]
mod broken;
#[path = "tasks/described.rs"]
mod described;
#[path = "tasks/folder.rs"]
mod folder;
#[path = "tasks/inventory.rs"]
mod inventory;
#[path = "tasks/made.rs"]
mod made;
#[path = "tasks/outputs.rs"]
mod outputs;
#[path = "tasks/rejected.rs"]
mod rejected;
#[path = "tasks/rewritten.rs"]
mod rewritten;

use std::path::PathBuf;

use rlf_forge::compose::compose;
use rlf_forge::tasks::check::{Checked, check};
use rlf_forge::tasks::{
    Folder, Made, Maker, Manifest, Rejection, Suite, TaskOptions, TaskRecord, make,
};
use rlf_specification::{Format, Program, check_text};

fn program(text: &str) -> Program {
    let checked = check_text(text, Format::Toml);
    checked
        .program
        .unwrap_or_else(|| panic!("{}", checked.findings[0]))
}

/// The shipped examples.
fn examples() -> Suite {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/specified/examples");
    let names = ["Clinic", "LendingLibrary", "Warehouse"];
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        (program(&text), "other".to_owned())
    };
    Suite::from_programs(names.iter().map(|name| read(name)).collect()).unwrap()
}

/// Composed environments.
fn composed(count: usize) -> Suite {
    let all = compose(11, count).environments;
    let programs = all.into_iter().map(|environment| {
        let text = toml::to_string(&environment.specification).unwrap();
        (program(&text), environment.domain)
    });
    Suite::from_programs(programs.collect()).unwrap()
}

fn options(count: usize) -> TaskOptions {
    TaskOptions {
        count,
        seed: 5,
        ..TaskOptions::default()
    }
}

/// Makes tasks in a folder.
fn make_in(folder: &Folder, suite: &Suite, options: &TaskOptions) -> Made {
    folder.begin(&Manifest::new(suite, options, false)).unwrap();
    make(&Maker::new(suite, options), folder, None, |_| {}).unwrap()
}

/// Makes tasks and keeps nothing on disk.
fn made(suite: &Suite, options: &TaskOptions) -> Made {
    let folder = tempfile::tempdir().unwrap();
    make_in(&Folder::new(folder.path()), suite, options)
}

/// Checks a task as `forge tasks` does by default.
fn checked(suite: &Suite, task: &TaskRecord) -> Result<Checked, Rejection> {
    let options = TaskOptions {
        seed: 1,
        ..TaskOptions::default()
    };
    checked_with(suite, task, &options)
}

/// Checks a task with these options.
fn checked_with(
    suite: &Suite,
    task: &TaskRecord,
    options: &TaskOptions,
) -> Result<Checked, Rejection> {
    let maker = Maker::new(suite, options);
    let graph = maker.graph(task.servers.keys()).unwrap();
    check(suite, &graph, task, options)
}
