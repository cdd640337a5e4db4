//! A compiled component is loaded from the cache only if the entry is exactly as it was written. After any difference
//! it is compiled again.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::guest::{Load, component, run, sandbox_with, try_load, with_init};
use rlf_sandbox::{InitMode, Sandbox, SandboxConfig, Template};

const MODULE: &str = r#"(memory (export "memory") 1)
    (func (export "init") (param i32 i32) (result i32) (i32.store (i32.const 100) (i32.const 41)) (i32.const 0))
    (func (export "run") (result i32) (i32.add (i32.const 1) (i32.load (i32.const 100))))"#;
const EXPORT: &str = r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#;

fn with_cache(folder: &Path) -> Sandbox {
    sandbox_with(&SandboxConfig {
        instances: Some(2),
        cache: Some(folder.to_owned()),
        ..SandboxConfig::default()
    })
}

fn load(sandbox: &Sandbox, load: &Load<'_>) -> Template {
    let template = try_load(
        sandbox,
        &component(&with_init("", MODULE, "", EXPORT)),
        load,
    )
    .unwrap();
    assert_eq!(run::<_, u32>(&template, "run", ()).outcome, Ok(42));
    assert_eq!(*template.init(), InitMode::Snapshot);
    template
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "cwasm")
    });
    found.sort();
    found
}

#[test]
fn the_second_load_compiles_and_initialises_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("deep/cache");
    let first = load(&with_cache(&folder), &Load::default());
    assert!(!first.preparation().from_cache);
    let second = load(&with_cache(&folder), &Load::default());
    assert!(second.preparation().from_cache);
    assert_eq!(
        second.preparation().prepared_bytes,
        first.preparation().prepared_bytes
    );
    assert_eq!(
        fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(
        fs::metadata(folder.join("key"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert_eq!(
        fs::metadata(&entries(&folder)[0])
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
}

#[test]
fn another_configuration_or_other_data_is_another_entry() {
    let root = tempfile::tempdir().unwrap();
    let sandbox = with_cache(&root.path().join("cache"));
    fs::write(root.path().join("data"), "one").unwrap();
    let data = [("d", root.path().join("data"))];
    let fresh = |settings: &Load<'_>| !load(&sandbox, settings).preparation().from_cache;
    assert!(fresh(&Load::default()));
    assert!(fresh(&Load {
        config_json: r#"{"a":1}"#,
        ..Load::default()
    }));
    assert!(fresh(&Load {
        data: &data,
        ..Load::default()
    }));
    assert!(!fresh(&Load {
        data: &data,
        ..Load::default()
    }));
    fs::write(root.path().join("data"), "two").unwrap();
    assert!(fresh(&Load {
        data: &data,
        ..Load::default()
    }));
    assert!(!fresh(&Load::default()));
}

#[test]
fn an_entry_with_one_byte_flipped_is_refused_and_made_again() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &Load::default());
    let entry = entries(&folder).remove(0);
    let good = fs::read(&entry).unwrap();
    // Damage in the code, the authentication, the header and at the end; then a shortened and an empty file.
    for at in [0, 31, 32, 40, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&entry, bad).unwrap();
        assert!(
            !load(&with_cache(&folder), &Load::default())
                .preparation()
                .from_cache,
            "byte {at}"
        );
        assert!(
            load(&with_cache(&folder), &Load::default())
                .preparation()
                .from_cache,
            "replaced after byte {at}"
        );
    }
    for length in [0, 10, 33, good.len() - 1] {
        fs::write(&entry, &good[..length]).unwrap();
        assert!(
            !load(&with_cache(&folder), &Load::default())
                .preparation()
                .from_cache,
            "cut at {length}"
        );
    }
}

#[test]
fn an_entry_under_another_name_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    let sandbox = with_cache(&folder);
    load(&sandbox, &Load::default());
    let first = entries(&folder).remove(0);
    load(
        &sandbox,
        &Load {
            config_json: r#"{"a":1}"#,
            ..Load::default()
        },
    );
    let second = entries(&folder)
        .into_iter()
        .find(|path| *path != first)
        .unwrap();
    fs::copy(&first, &second).unwrap();
    assert!(
        !load(
            &sandbox,
            &Load {
                config_json: r#"{"a":1}"#,
                ..Load::default()
            }
        )
        .preparation()
        .from_cache
    );
}

#[test]
fn an_entry_made_under_another_key_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (ours, theirs) = (root.path().join("ours"), root.path().join("theirs"));
    load(&with_cache(&theirs), &Load::default());
    drop(with_cache(&ours));
    let entry = entries(&theirs).remove(0);
    fs::copy(&entry, ours.join(entry.file_name().unwrap())).unwrap();
    assert!(
        !load(&with_cache(&ours), &Load::default())
            .preparation()
            .from_cache
    );
}

#[test]
fn a_folder_that_others_can_enter_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("open");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let sandbox = with_cache(&folder);
    assert!(
        sandbox.describe().contains("chmod 700"),
        "{}",
        sandbox.describe()
    );
    assert!(!load(&sandbox, &Load::default()).preparation().from_cache);
    assert!(!load(&sandbox, &Load::default()).preparation().from_cache);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_folder_whose_key_was_cut_off_is_not_used_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    drop(with_cache(&folder));
    let key = fs::File::options().write(true).open(folder.join("key"));
    key.unwrap().set_len(5).unwrap();
    let sandbox = with_cache(&folder);
    assert!(
        sandbox
            .describe()
            .contains("its `key` is too short; remove the folder"),
        "{}",
        sandbox.describe()
    );
    assert!(!load(&sandbox, &Load::default()).preparation().from_cache);
}

#[test]
fn two_at_once_make_one_cache() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| load(&with_cache(&folder), &Load::default()));
        }
    });
    assert_eq!(entries(&folder).len(), 1);
    assert!(
        load(&with_cache(&folder), &Load::default())
            .preparation()
            .from_cache
    );
    let left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// A sandbox of a process that ends soon.
fn short_lived(folder: &Path) -> Sandbox {
    sandbox_with(&SandboxConfig {
        instances: Some(2),
        cache: Some(folder.to_owned()),
        is_short_lived: true,
        ..SandboxConfig::default()
    })
}

#[test]
fn a_loaded_component_does_not_see_what_is_written_to_its_entry() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &Load::default());
    let entry = &entries(&folder)[0];
    let length = fs::metadata(entry).unwrap().len() as usize;
    let writer = fs::File::options().write(true).open(entry).unwrap();
    // While the entry is open for writing there is no lease on it, so it is copied for a process that ends soon, too.
    let sandboxes = [with_cache(&folder), short_lived(&folder)];
    let loaded = sandboxes.map(|sandbox| load(&sandbox, &Load::default()));
    writer.write_all_at(&vec![0; length], 0).unwrap();
    writer.set_len(0).unwrap();
    for template in loaded {
        assert!(template.preparation().from_cache);
        assert_eq!(run::<_, u32>(&template, "run", ()).outcome, Ok(42));
    }
}

#[test]
fn a_process_that_maps_an_entry_is_ended_before_anyone_writes_to_it() {
    const NAME: &str = "cache::a_process_that_maps_an_entry_is_ended_before_anyone_writes_to_it";
    const FOLDER: &str = "RLF_TEST_CACHE_FOLDER";
    if let Some(folder) = env::var_os(FOLDER) {
        // The process that is ended: this test, started again.
        let loaded = load(&short_lived(Path::new(&folder)), &Load::default());
        assert!(loaded.preparation().from_cache);
        println!("loaded");
        loop {
            assert_eq!(run::<_, u32>(&loaded, "run", ()).outcome, Ok(42));
        }
    }
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &Load::default());
    let entry = &entries(&folder)[0];
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(FOLDER, &folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("loaded")));
    let leases = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = format!(":{} ", fs::metadata(entry).unwrap().ino());
    if !(leases.lines()).any(|line| line.contains("LEASE") && line.contains(&inode)) {
        eprintln!(
            "skipped: the system gives no leases on files in {}",
            root.path().display()
        );
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    // Reading, replacing and removing it change nothing for the process.
    let mapped = root.path().join("mapped");
    fs::hard_link(entry, &mapped).unwrap();
    let copy = root.path().join("copy");
    fs::write(&copy, fs::read(entry).unwrap()).unwrap();
    fs::rename(&copy, entry).unwrap();
    fs::remove_file(entry).unwrap();
    assert_eq!(child.try_wait().unwrap(), None);
    fs::File::options().write(true).open(&mapped).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

/// A sandbox whose cache has room for this many bytes.
fn with_room(folder: &Path, cache_bytes: u64) -> Sandbox {
    sandbox_with(&SandboxConfig {
        instances: Some(2),
        cache: Some(folder.to_owned()),
        cache_bytes,
        ..SandboxConfig::default()
    })
}

fn configured(config_json: &str) -> Load<'_> {
    Load {
        config_json,
        ..Load::default()
    }
}

#[test]
fn entries_that_were_not_used_for_longest_make_room() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &configured("1"));
    let one = fs::metadata(&entries(&folder)[0]).unwrap().len();
    let room = 2 * one + one / 2;
    let sandbox = with_room(&folder, room);
    let is_kept = |config_json| {
        load(&sandbox, &configured(config_json))
            .preparation()
            .from_cache
    };
    assert!(!is_kept("2"));
    // It was used after the second, so the second is removed.
    assert!(is_kept("1"));
    assert!(!is_kept("3"));
    assert_eq!(entries(&folder).len(), 2);
    assert!(is_kept("1"));
    assert!(is_kept("3"));
    assert!(!is_kept("2"));
    for config_json in ["4", "5", "6", "7"] {
        assert!(!is_kept(config_json));
        let sizes = entries(&folder);
        let sizes = sizes.iter().map(|path| fs::metadata(path).unwrap().len());
        assert!(sizes.sum::<u64>() <= room);
    }
}

#[test]
fn an_entry_that_alone_is_too_large_is_not_kept_and_makes_no_other_go() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &configured("1"));
    let before = entries(&folder);
    for room in [0, 1_000] {
        let sandbox = with_room(&folder, room);
        assert!(!load(&sandbox, &configured("2")).preparation().from_cache);
        assert_eq!(entries(&folder), before);
        assert!(load(&sandbox, &configured("1")).preparation().from_cache);
    }
}

#[test]
fn an_entry_that_another_process_removed_is_made_again_and_a_loaded_one_works_on() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &Load::default());
    let sandbox = with_cache(&folder);
    let loaded = load(&sandbox, &Load::default());
    assert!(loaded.preparation().from_cache);
    fs::remove_file(&entries(&folder)[0]).unwrap();
    assert_eq!(run::<_, u32>(&loaded, "run", ()).outcome, Ok(42));
    assert!(!load(&sandbox, &Load::default()).preparation().from_cache);
    assert!(load(&sandbox, &Load::default()).preparation().from_cache);
}

#[test]
fn what_a_process_left_half_written_goes_once_it_is_old() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("cache");
    load(&with_cache(&folder), &configured("1"));
    let (old, new) = (folder.join(".new-1-0"), folder.join(".new-2-0"));
    for path in [&old, &new] {
        fs::write(path, "half of it").unwrap();
    }
    let yesterday = SystemTime::now() - Duration::from_hours(24);
    let file = fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(yesterday).unwrap();
    load(&with_cache(&folder), &configured("2"));
    assert!(!old.exists() && new.exists());
}
