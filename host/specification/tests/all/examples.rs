//! The specifications that ship as examples: they pass the checks, and keep the promises of running.

use std::path::PathBuf;

use rlf_specification::model::Size;
use rlf_specification::{Checked, Format, Program, check_text};

/// The examples by name.
pub(crate) fn all() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/specified/examples");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 3);
    found
}

pub(crate) fn programs() -> Vec<Program> {
    let programs = all().into_iter().map(|(name, text)| {
        let Checked { program, findings } = check_text(&text, Format::Toml);
        let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{name}: {}", shown.join("\n"));
        program.unwrap()
    });
    programs.collect()
}

#[test]
fn the_same_seed_gives_the_same_state_and_it_loads_again() {
    for program in programs() {
        for size in Size::ALL {
            for seed in 0..50 {
                let state = program.open(size, seed).unwrap();
                assert_eq!(state, program.open(size, seed).unwrap());
                let json = program.state_json(&state);
                assert_eq!(program.load(&json).as_ref(), Ok(&state));
                assert_eq!(
                    program
                        .state_json(&program.load(&json).unwrap())
                        .to_string(),
                    json.to_string()
                );
            }
        }
    }
}
