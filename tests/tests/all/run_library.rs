//! A run is a library: a Rust program trains exactly as the command line does, bit for bit.

use rlf_tests::{Experiment, component_cache};
use xtask::project::Project;

#[allow(dead_code)] // Its `main` reads a command line.
#[path = "../../../host/run/examples/quickstart.rs"]
mod quickstart;

#[test]
fn a_program_in_rust_trains_the_same_policy_as_the_command_line() {
    let experiment = Experiment::tiny();
    let by_command = experiment.train("by-command", &[]);
    let project = Project::find().expect("tests run inside a checkout");
    let cache = component_cache(&project);
    let settings = [
        format!("output={}", experiment.path("by-library").display()),
        format!("sandbox.cache={}", cache.display()),
    ];
    let config = experiment.path("config.toml");
    let solved = quickstart::quickstart(&config, experiment.host().plugins(), &settings);
    let solved = solved.unwrap_or_else(|error| panic!("{error}"));
    assert!((0.0..=1.0).contains(&solved), "{solved}");
    by_command.assert_same(&experiment.run("by-library"));
}
