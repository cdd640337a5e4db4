//! Snapshots of one component share compiled code, and each keeps only the image of its memory. The results are those of
//! a component that is compiled whole, and a damaged part is compiled again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guest::{Load, component, run, sandbox, sandbox_with, try_load, with_init};
use rlf_sandbox::{InitMode, Limits, Sandbox, SandboxConfig, Template};

/// Pages of the memory, and bytes that `init` fills, so many that the image of the memory is kept by itself.
const PAGES: u64 = 40;
const FILLED: u64 = 2 << 20;

/// Its `init` fills memory with the first byte of the configuration.
fn guest() -> Vec<u8> {
    let module = format!(
        r#"(memory (export "memory") {PAGES} {most})
        (func (export "init") (param i32 i32) (result i32)
            (memory.fill (i32.const 65536) (i32.load8_u (local.get 0)) (i32.const {FILLED}))
            (i32.const 0))
        (func (export "first") (result i32)
            (local $was i32)
            (local.set $was (i32.load8_u (i32.const 70000)))
            (i32.store8 (i32.const 70000) (i32.const 1))
            (local.get $was))
        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))"#,
        most = PAGES + 2,
    );
    let exports = r#"(func (export "first") (result u32) (canon lift (core func $i "first")))
        (func (export "grow") (param "pages" u32) (result s32) (canon lift (core func $i "grow")))"#;
    component(&with_init("", &module, "", exports))
}

fn with_cache(folder: &Path) -> Sandbox {
    sandbox_with(&SandboxConfig {
        instances: Some(2),
        cache: Some(folder.to_owned()),
        ..SandboxConfig::default()
    })
}

fn load(sandbox: &Sandbox, config_json: &str) -> Template {
    let settings = Load {
        config_json,
        ..Load::default()
    };
    let template = try_load(sandbox, &guest(), &settings).unwrap();
    assert_eq!(*template.init(), InitMode::Snapshot);
    template
}

/// Checks that every call starts from the memory that `init` left for this configuration, with the limits of that memory.
fn assert_right(template: &Template, config_json: &str) {
    let first = u32::from(config_json.as_bytes()[0]);
    for _ in 0..3 {
        let report = run::<_, u32>(template, "first", ());
        assert_eq!(report.outcome, Ok(first));
        assert_eq!(report.memory_peak, PAGES << 16);
    }
    let grown = |pages: u32| run::<_, i32>(template, "grow", (pages,)).outcome.unwrap();
    assert_eq!((grown(2), grown(3)), (PAGES as i32, -1));
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == "cwasm"))
        .collect();
    found.sort();
    found
}

/// True for each of two that came from the cache: the prepared component, and its code.
fn came_from_cache(template: &Template) -> (bool, bool) {
    let made = template.preparation();
    (made.from_cache, made.code_from_cache)
}

#[test]
fn another_configuration_costs_the_cache_only_its_memory() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    let first = load(&with_cache(&folder), "1");
    assert_eq!(came_from_cache(&first), (false, false));
    // The code of calls, the component that `init` ran in, and the image.
    let before = entries(&folder);
    assert_eq!(before.len(), 3);
    let sandbox = with_cache(&folder);
    for config_json in ["2", "3"] {
        let next = load(&sandbox, config_json);
        assert_eq!(came_from_cache(&next), (false, true));
        assert_right(&next, config_json);
    }
    let after = entries(&folder);
    let mut added = after.iter().filter(|path| !before.contains(path));
    assert_eq!(after.len(), 5);
    assert!(added.all(|path| fs::metadata(path).unwrap().len() > FILLED));
    for config_json in ["1", "2", "3"] {
        let again = load(&with_cache(&folder), config_json);
        assert_eq!(came_from_cache(&again), (true, true));
        assert_right(&again, config_json);
    }
}

#[test]
fn a_snapshot_that_changed_more_than_memory_has_code_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    let sandbox = with_cache(&root.path().join("cache"));
    load(&sandbox, "1");
    // A longer configuration moves the guest's allocator further, whose place is a global.
    let long = "1234567890";
    let other = load(&sandbox, long);
    assert_eq!(came_from_cache(&other), (false, false));
    assert_right(&other, long);
    let short = load(&sandbox, "2");
    assert_eq!(came_from_cache(&short), (false, false));
    assert_right(&short, "2");
}

#[test]
fn results_are_the_same_without_a_cache() {
    let sandbox = sandbox();
    for config_json in ["1", "2", "1"] {
        let template = load(&sandbox, config_json);
        assert_eq!(came_from_cache(&template), (false, false));
        assert_right(&template, config_json);
    }
}

#[test]
fn a_process_that_ends_soon_maps_code_and_image() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), "1");
    let short_lived = sandbox_with(&SandboxConfig {
        instances: Some(2),
        cache: Some(folder),
        is_short_lived: true,
        ..SandboxConfig::default()
    });
    for (config_json, is_cached) in [("1", true), ("2", false)] {
        let template = load(&short_lived, config_json);
        assert_eq!(came_from_cache(&template), (is_cached, true));
        assert_right(&template, config_json);
    }
}

#[test]
fn each_part_with_a_flipped_byte_is_refused_and_made_again() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), "1");
    let parts = entries(&folder);
    let mut refused = 0;
    for part in &parts {
        let mut bytes = fs::read(part).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(part, &bytes).unwrap();
        let template = load(&with_cache(&folder), "1");
        // The code of `init` is not needed for what is prepared already.
        refused += usize::from(!template.preparation().from_cache);
        assert_right(&template, "1");
        // Now all three are needed.
        let other = load(&with_cache(&folder), "2");
        assert!(!other.preparation().from_cache);
        assert_right(&other, "2");
        fs::remove_file(
            entries(&folder)
                .iter()
                .find(|path| !parts.contains(path))
                .unwrap(),
        )
        .unwrap();
        let again = load(&with_cache(&folder), "1");
        assert_eq!(came_from_cache(&again), (true, true));
        assert_ne!(fs::read(part).unwrap(), bytes, "it was replaced");
    }
    assert_eq!(refused, 2);
}

#[test]
fn code_that_another_process_removed_is_made_again_and_loaded_snapshots_work_on() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    let loaded = load(&with_cache(&folder), "1");
    for part in entries(&folder) {
        fs::remove_file(&part).unwrap();
        assert_right(&loaded, "1");
        let again = load(&with_cache(&folder), "1");
        assert_right(&again, "1");
        let other = load(&with_cache(&folder), "2");
        assert_right(&other, "2");
    }
}

#[test]
fn memory_that_a_snapshot_begins_with_counts_against_the_limit() {
    let limits = Limits {
        memory_bytes: (PAGES << 16) - 1,
        ..Limits::default()
    };
    let small = Load {
        config_json: "1",
        limits,
        ..Load::default()
    };
    let root = tempfile::tempdir().unwrap();
    let sandbox = with_cache(&root.path().join("cache"));
    load(&sandbox, "1");
    let template = try_load(&sandbox, &guest(), &small).unwrap();
    assert!(template.preparation().from_cache);
    let report = run::<_, u32>(&template, "first", ());
    assert!(report.outcome.is_err(), "{:?}", report.outcome);
}
