//! Without a grant there are no files. Granted files belong to one call, are bounded, are the same in every run, and
//! cannot be left.

use std::fs;
use std::path::PathBuf;

use rlf_sandbox::{
    BoxFuture, CallReport, CallSpec, Ending, InitMode, Limits, Sandbox, SandboxConfig,
    ScratchFiles, Template,
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::file_guest::{CREATE, FileGuest, READ, guest};
use crate::guest::{
    Load, MEMORY, assert_unharmed, block_on, component, run, sandbox, sandbox_with, try_load,
    with_init,
};

fn scratch(sandbox: &Sandbox, files: ScratchFiles) -> Template {
    let load = Load {
        files: Some(files),
        ..Load::default()
    };
    try_load(sandbox, &component(&guest()), &load).unwrap_or_else(|error| panic!("{error}"))
}

/// One call, in which the guest receives several requests.
fn call<R: Send + 'static>(
    template: &Template,
    body: impl for<'a> FnOnce(FileGuest<'a>) -> BoxFuture<'a, wasmtime::Result<R>> + Send + 'static,
) -> CallReport<R> {
    block_on(template.call(CallSpec::default(), move |store, instance| {
        body(FileGuest { store, instance })
    }))
}

#[test]
fn without_a_grant_nothing_is_preopened() {
    let sandbox = sandbox();
    let template = try_load(&sandbox, &component(&guest()), &Load::default()).unwrap();
    let report = call(&template, |mut guest| {
        Box::pin(async move { guest.ask::<_, i64>("preopened", ()).await })
    });
    assert_eq!(report.outcome, Ok(-1));
    assert_unharmed(&sandbox);
}

#[test]
fn a_scratch_directory_is_where_the_grant_says_and_gives_back_what_is_written() {
    let sandbox = sandbox();
    for at in ["/work", "/data/in", "/"] {
        let template = scratch(
            &sandbox,
            ScratchFiles {
                at: at.into(),
                ..ScratchFiles::default()
            },
        );
        let report = call(&template, |mut guest| {
            Box::pin(async move {
                let found: String = guest.ask("preopened-at", ()).await?;
                let root = guest.root().await?;
                let file = guest.open(root, "notes.txt", CREATE).await?.unwrap();
                assert_eq!(
                    guest
                        .number("write", (file, 3_u64, b"two".to_vec()))
                        .await?,
                    Ok(3)
                );
                assert_eq!(
                    guest.number("append", (file, b"three".to_vec())).await?,
                    Ok(0)
                );
                let again = guest.open(root, "./notes.txt", READ).await?.unwrap();
                let read: Vec<u8> = guest.ask("read", (again, 1_000_u64, 0_u64)).await?;
                Ok((found, read))
            })
        });
        assert_eq!(
            report.outcome,
            Ok((at.to_owned(), b"\0\0\0twothree".to_vec()))
        );
    }
    assert_unharmed(&sandbox);
}

#[test]
fn two_calls_never_see_each_others_files() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    for _ in 0..3 {
        let report = call(&template, |mut guest| {
            Box::pin(async move {
                let root = guest.root().await?;
                let before = guest.list(root).await?;
                guest.save(root, "mine", b"secret").await?.unwrap();
                Ok(before)
            })
        });
        assert_eq!(report.outcome, Ok(vec![]));
    }
    assert_unharmed(&sandbox);
}

#[test]
fn more_bytes_than_granted_are_an_ordinary_error_and_the_call_goes_on() {
    let sandbox = sandbox();
    let template = scratch(
        &sandbox,
        ScratchFiles {
            bytes: 100,
            ..ScratchFiles::default()
        },
    );
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            let small = guest.open(root, "small", CREATE).await?.unwrap();
            let written = guest.number("append", (small, vec![1_u8; 60])).await?;
            let full = guest.save(root, "big", &[1; 41]).await?;
            guest.number("resize", (small, 59_u64)).await?.unwrap();
            let then = guest.save(root, "big", &[1; 41]).await?;
            Ok((written, full, then))
        })
    });
    let full = Err(ErrorCode::InsufficientSpace);
    assert_eq!(report.outcome, Ok((Ok(0), full, Ok(0))));
    let refused = report.files.refused.unwrap();
    assert_eq!(
        (refused.name.as_str(), refused.value, refused.used),
        ("files.bytes", 100, 101)
    );
    assert_unharmed(&sandbox);
}

#[test]
fn a_sparse_file_of_a_terabyte_is_refused() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            let file = guest.open(root, "sparse", CREATE).await?.unwrap();
            let far = 1_u64 << 40;
            let written = guest.number("write", (file, far, b"x".to_vec())).await?;
            let resized = guest.number("resize", (file, far)).await?;
            let full = guest.open(root, "full", CREATE).await?.unwrap();
            guest.number("resize", (full, 16_u64 << 20)).await?.unwrap();
            let appended = guest.save(root, "one more byte", b"x").await?;
            let beyond = guest
                .number("write", (file, u64::MAX, b"x".to_vec()))
                .await?;
            Ok([written, resized, appended, beyond])
        })
    });
    let space = Err(ErrorCode::InsufficientSpace);
    assert_eq!(
        report.outcome,
        Ok([space, space, space, Err(ErrorCode::FileTooLarge)])
    );
    assert_eq!(report.files.refused.unwrap().used, (16 << 20) + 1);
    assert_unharmed(&sandbox);
}

#[test]
fn of_a_million_files_the_granted_number_is_made() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            let filled = guest.number("fill", (root, 1_000_000_u32)).await?;
            let made = guest.list(root).await?.len();
            let directory = guest.path("make", root, "directory").await?;
            Ok((filled, made, directory))
        })
    });
    let quota = Err(ErrorCode::Quota);
    assert_eq!(report.outcome, Ok((quota, 1_000, quota)));
    let refused = report.files.refused.unwrap();
    assert_eq!(
        (refused.name.as_str(), refused.value, refused.used),
        ("files.entries", 1_000, 1_001)
    );
    assert_unharmed(&sandbox);
}

#[test]
fn a_thousand_directories_in_each_other_are_refused() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let mut here = guest.root().await?;
            for depth in 0..1_000 {
                if let Err(error) = guest.path("make", here, "d").await? {
                    return Ok((depth, error));
                }
                here = guest.open(here, "d", READ).await?.unwrap();
            }
            wasmtime::bail!("it never ends")
        })
    });
    assert_eq!(report.outcome, Ok((16, ErrorCode::Quota)));
    assert_unharmed(&sandbox);
}

#[test]
fn a_million_open_files_end_the_call_at_the_limit_on_handles() {
    let sandbox = sandbox();
    let load = Load {
        files: Some(ScratchFiles::default()),
        limits: Limits {
            resources: 50,
            ..Limits::default()
        },
        ..Load::default()
    };
    let template = try_load(&sandbox, &component(&guest()), &load).unwrap();
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            loop {
                guest.open(root, "f", CREATE).await?.unwrap();
            }
            #[allow(unreachable_code)] // the type of the block
            Ok(())
        })
    });
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::MemoryLimit);
    assert_eq!(stopped.limit.unwrap().name, "resources");
    assert_unharmed(&sandbox);
}

#[test]
fn no_path_leads_out_of_the_directory() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            guest.path("make", root, "d").await?.unwrap();
            let inner = guest.open(root, "d", READ).await?.unwrap();
            for (base, path) in [
                (root, "/etc/passwd"),
                (root, "/"),
                (root, ".."),
                (root, "../etc/passwd"),
                (root, "d/../../etc/passwd"),
                (root, "./d/./../.."),
                (inner, ".."),
                (inner, "../mine"),
            ] {
                for how in [CREATE, READ] {
                    let opened = guest.open(base, path, how).await?;
                    assert_eq!(opened, Err(ErrorCode::NotPermitted), "{path}");
                }
                for function in ["make", "unlink", "rmdir"] {
                    let done = guest.path(function, base, path).await?;
                    assert_eq!(done, Err(ErrorCode::NotPermitted), "{function} {path}");
                }
            }
            // No link to such a path can be created either.
            let link = ("/etc/passwd".to_owned(), "link".to_owned());
            let linked = guest.number("symlink", (root, link.0, link.1)).await?;
            assert_eq!(linked, Err(ErrorCode::NotPermitted));
            // On Unix a backslash is an ordinary character.
            assert_eq!(
                guest.open(root, "..\\x", READ).await?,
                Err(ErrorCode::NoEntry)
            );
            let long = guest.open(root, &"n".repeat(256), CREATE).await?;
            assert_eq!(long, Err(ErrorCode::NameTooLong));
            guest.list(root).await
        })
    });
    assert_eq!(report.outcome, Ok(vec!["d".to_owned()]));
    assert_unharmed(&sandbox);
}

#[test]
fn listings_are_sorted_and_follow_changes() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            for name in ["b", "\u{e9}", "a", "B", "10", "9"] {
                guest.open(root, name, CREATE).await?.unwrap();
            }
            guest.path("make", root, "aa").await?.unwrap();
            guest.path("unlink", root, "b").await?.unwrap();
            guest.list(root).await
        })
    });
    let names = report.outcome.unwrap();
    assert_eq!(names, ["10", "9", "B", "a", "aa", "\u{e9}"]);
    assert_unharmed(&sandbox);
}

#[test]
fn times_are_virtual_and_the_same_in_every_run() {
    let sandbox = sandbox();
    let template = scratch(&sandbox, ScratchFiles::default());
    let times = || {
        let report = call(&template, |mut guest| {
            Box::pin(async move {
                let root = guest.root().await?;
                let mut times = vec![guest.number("modified", (root,)).await?.unwrap()];
                for name in ["a", "b"] {
                    let file = guest.open(root, name, CREATE).await?.unwrap();
                    guest
                        .number("append", (file, b"x".to_vec()))
                        .await?
                        .unwrap();
                    times.push(guest.number("modified", (file,)).await?.unwrap());
                }
                times.push(guest.number("modified", (root,)).await?.unwrap());
                Ok(times)
            })
        });
        report.outcome.unwrap()
    };
    // 2024-01-01, and a microsecond for every change: open, write, open, write.
    let start = 1_704_067_200_000_000_000;
    let expected = [start, start + 2_000, start + 4_000, start + 3_000];
    assert_eq!(times(), expected);
    assert_eq!(times(), expected);
    assert_unharmed(&sandbox);
}

fn writes_outputs(template: &Template, then_trap: bool) -> CallReport<()> {
    call(template, move |mut guest| {
        Box::pin(async move {
            let root = guest.root().await?;
            guest.path("make", root, "plots").await?.unwrap();
            guest.path("make", root, "plots/deep").await?.unwrap();
            for path in [
                "report.txt",
                "plots/b",
                "plots/a",
                "plots/deep/c",
                "scratch",
            ] {
                guest.save(root, path, path.as_bytes()).await?.unwrap();
            }
            if then_trap {
                // Reading without the right traps in this guest.
                let file = guest.open(root, "scratch", (0, 2)).await?.unwrap();
                guest
                    .ask::<_, Vec<u8>>("read", (file, 1_u64, 0_u64))
                    .await?;
            }
            Ok(())
        })
    })
}

#[test]
fn the_outputs_of_the_grant_come_back_sorted() {
    let sandbox = sandbox();
    let kept = |outputs: &[&str]| {
        let outputs = outputs.iter().map(|&output| output.to_owned()).collect();
        let template = scratch(
            &sandbox,
            ScratchFiles {
                outputs,
                ..ScratchFiles::default()
            },
        );
        let report = writes_outputs(&template, false);
        assert_eq!(report.outcome, Ok(()));
        for (path, content) in &report.files.outputs {
            assert_eq!(path.as_bytes(), content);
        }
        report.files.outputs.into_keys().collect::<Vec<_>>()
    };
    let plots = ["plots/a", "plots/b", "plots/deep/c", "report.txt"];
    assert_eq!(kept(&["report.txt", "plots/", "missing"]), plots);
    assert_eq!(kept(&["/"]), [&plots[..], &["scratch"]].concat());
    assert!(kept(&[]).is_empty());
    assert_unharmed(&sandbox);
}

#[test]
fn a_call_that_fails_leaves_no_outputs() {
    let sandbox = sandbox();
    let files = ScratchFiles {
        outputs: vec!["/".into()],
        ..ScratchFiles::default()
    };
    let report = writes_outputs(&scratch(&sandbox, files), true);
    assert_eq!(report.outcome.unwrap_err().ended, Ending::Trap);
    assert!(report.files.outputs.is_empty());
    assert_unharmed(&sandbox);
}

#[test]
fn writes_to_a_directory_of_the_host_are_counted() {
    let sandbox = sandbox();
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("open")).unwrap();
    fs::write(root.path().join("secret"), "secret").unwrap();
    fs::write(root.path().join("open/old"), "old").unwrap();
    let load = Load {
        host_directory: Some(root.path().join("open")),
        ..Load::default()
    };
    let template = try_load(&sandbox, &component(&guest()), &load).unwrap();
    let report = call(&template, |mut guest| {
        Box::pin(async move {
            let at: String = guest.ask("preopened-at", ()).await?;
            let root = guest.root().await?;
            // Reading and refused operations are not counted.
            let old = guest.open(root, "old", READ).await?.unwrap();
            let old: Vec<u8> = guest.ask("read", (old, 100_u64, 0_u64)).await?;
            let escape = guest.open(root, "../secret", READ).await?;
            guest.save(root, "new", b"12345").await?.unwrap();
            guest.path("make", root, "d").await?.unwrap();
            let file = guest.open(root, "d/f", CREATE).await?.unwrap();
            guest
                .number("write", (file, 0_u64, b"123".to_vec()))
                .await?
                .unwrap();
            guest.path("unlink", root, "old").await?.unwrap();
            Ok((at, old, escape.is_err()))
        })
    });
    assert_eq!(
        report.outcome,
        Ok(("/host".to_owned(), b"old".to_vec(), true))
    );
    // Two files and a directory created, two files written, one removed.
    assert_eq!(
        (report.files.host_writes, report.files.host_bytes_written),
        (6, 8)
    );
    assert_eq!(fs::read(root.path().join("open/new")).unwrap(), b"12345");
    assert!(!root.path().join("open/old").exists());
    assert_unharmed(&sandbox);
}

#[test]
fn a_host_directory_that_has_gone_makes_the_call_unavailable() {
    let sandbox = sandbox();
    let root = tempfile::tempdir().unwrap();
    let open = root.path().join("open");
    fs::create_dir(&open).unwrap();
    let load = Load {
        host_directory: Some(open.clone()),
        ..Load::default()
    };
    let template = try_load(&sandbox, &component(&guest()), &load).unwrap();
    fs::remove_dir(&open).unwrap();
    let report = call(&template, |mut guest| {
        Box::pin(async move { guest.ask::<_, i64>("preopened", ()).await })
    });
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::Unavailable);
    assert!(!stopped.reason.contains('/'), "{}", stopped.reason);
    assert_unharmed(&sandbox);
}

#[test]
fn grants_that_cannot_be_kept_refuse_the_plugin() {
    let sandbox = sandbox();
    let refusal = |files: Option<ScratchFiles>, host_directory: Option<PathBuf>| {
        let load = Load {
            files,
            host_directory,
            ..Load::default()
        };
        try_load(&sandbox, &component(&guest()), &load)
            .err()
            .unwrap()
            .to_string()
    };
    let relative = ScratchFiles {
        at: "work".into(),
        ..ScratchFiles::default()
    };
    assert_eq!(
        refusal(Some(relative), None),
        "files: at = \"work\" is no absolute path of plain names; write one such as \"/work\""
    );
    assert_eq!(
        refusal(None, Some("/nowhere/at/all".into())),
        "files: the host directory /nowhere/at/all is not there or is no directory; correct its path"
    );
    assert_eq!(
        refusal(Some(ScratchFiles::default()), Some("/".into())),
        "files: a scratch directory and a host directory are both granted; keep one of them"
    );
}

/// A component whose `init` asks for the preopened directories.
fn looks_in_init() -> String {
    let imports = r#"
        (import "wasi:filesystem/types@0.2.0" (instance $types (export "descriptor" (type (sub resource)))))
        (alias export $types "descriptor" (type $descriptor))
        (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
            (alias outer 1 $descriptor (type $outer))
            (export "descriptor" (type $d (eq $outer)))
            (export "get-directories" (func (result (list (tuple (own $d) string)))))))
        (core func $directories (canon lower (func $preopens "get-directories") (memory $mem) (realloc $realloc)))"#;
    let module = r#"(import "h" "directories" (func $directories (param i32)))
        (memory (export "memory") 1)
        (func (export "init") (param i32 i32) (result i32)
            (call $directories (i32.const 16))
            (i32.store (i32.const 100) (i32.const 7))
            (i32.const 0))
        (func (export "kept") (result i32) (i32.load (i32.const 100)))"#;
    with_init(
        &format!("{MEMORY} {imports}"),
        module,
        r#"(with "h" (instance (export "directories" (func $directories))))"#,
        r#"(func (export "kept") (result u32) (canon lift (core func $i "kept")))"#,
    )
}

#[test]
fn an_init_that_looks_for_files_runs_in_every_call_where_there_are_any() {
    let sandbox = sandbox();
    let bytes = component(&looks_in_init());
    let directory = tempfile::tempdir().unwrap();
    for (files, host_directory, why) in [
        (None, None, None),
        (
            Some(ScratchFiles::default()),
            None,
            Some("handles do not survive a snapshot"),
        ),
        (
            None,
            Some(directory.path().to_owned()),
            Some("a directory of the host is granted"),
        ),
    ] {
        let load = Load {
            files,
            host_directory,
            ..Load::default()
        };
        let template = try_load(&sandbox, &bytes, &load).unwrap();
        match (template.init(), why) {
            (InitMode::Snapshot, None) => {}
            (InitMode::PerCall { reason }, Some(why)) => assert!(reason.contains(why), "{reason}"),
            (init, why) => panic!("{init:?}, but {why:?}"),
        }
        assert_eq!(run::<_, u32>(&template, "kept", ()).outcome, Ok(7));
    }
    assert_unharmed(&sandbox);
}

#[test]
fn a_snapshot_made_under_one_grant_is_not_taken_from_the_cache_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(8),
        cache: Some(folder.path().join("cache")),
        ..SandboxConfig::default()
    });
    let bytes = component(&looks_in_init());
    let from_cache = |files: Option<ScratchFiles>| {
        let load = Load {
            files,
            ..Load::default()
        };
        let template = try_load(&sandbox, &bytes, &load).unwrap();
        template.preparation().from_cache
    };
    let with = |outputs: &[&str], bytes| ScratchFiles {
        bytes,
        outputs: outputs.iter().map(|&output| output.to_owned()).collect(),
        ..ScratchFiles::default()
    };
    assert!(!from_cache(None));
    assert!(!from_cache(Some(with(&[], 10))));
    assert!(!from_cache(Some(with(&[], 11))));
    // The grant of outputs, which are kept after a call, does not change the snapshot.
    assert!(from_cache(Some(with(&["/"], 10))));
    assert!(from_cache(None));
}
