//! The promises of specifications, one module for each.

#[path = "all/examples.rs"]
mod examples;
#[path = "all/findings.rs"]
mod findings;
#[path = "all/limits.rs"]
mod limits;
#[path = "all/mutants.rs"]
mod mutants;
#[path = "all/mutation.rs"]
mod mutation;
#[path = "all/python.rs"]
mod python;
#[path = "all/running.rs"]
mod running;
#[path = "all/sound.rs"]
mod sound;
