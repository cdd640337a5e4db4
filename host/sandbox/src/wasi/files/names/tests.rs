//! Tests of paths and names.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode::{
    BadDescriptor, Busy, Exist, InsufficientSpace, Invalid, IsDirectory, NoEntry, NotDirectory,
    NotEmpty, NotPermitted, Quota,
};

use super::super::grant::ScratchFiles;
use super::super::path::Opening;
use super::super::tree::{Instant, ROOT, Tree};

const NOW: Instant = Instant::from_secs(5);
const CREATE: Opening = Opening {
    create: true,
    exclusive: false,
    truncate: false,
    directory: false,
    write: true,
};

/// The names `d/e/f` and `g` are files.
fn tree() -> Tree {
    let mut tree = Tree::new(&ScratchFiles::default(), Instant::from_secs(1));
    tree.create_directory_at(ROOT, "d", NOW).unwrap();
    tree.create_directory_at(ROOT, "d/e", NOW).unwrap();
    tree.open_at(ROOT, "d/e/f", CREATE, NOW).unwrap();
    tree.open_at(ROOT, "g", CREATE, NOW).unwrap();
    tree
}

#[test]
fn no_path_leads_out_of_the_directory_it_starts_in() {
    let mut tree = tree();
    let inner = tree.find(ROOT, "d/e").unwrap();
    for (base, path) in [
        (ROOT, ".."),
        (ROOT, "../g"),
        (ROOT, "d/../../g"),
        (ROOT, "./.././g"),
        (ROOT, "/g"),
        (ROOT, "//"),
        (ROOT, "/etc/passwd"),
        // The place is inside the tree, but not below the handle.
        (inner, "../../g"),
        (inner, ".."),
    ] {
        let error = Err(NotPermitted);
        assert_eq!(tree.find(base, path), error, "{path}");
        assert_eq!(tree.open_at(base, path, CREATE, NOW), error, "{path}");
        assert_eq!(
            tree.rename_at((ROOT, "g"), (base, path), NOW),
            error.map(drop),
            "{path}"
        );
    }
    assert_eq!(tree.find(ROOT, "d/../g"), tree.find(ROOT, "g"));
    assert_eq!(tree.find(ROOT, "d/./e/../e/f"), tree.find(inner, "f"));
    // A path must exist before `..` can lead back.
    assert_eq!(tree.find(ROOT, "nowhere/../g"), Err(NoEntry));
    assert_eq!(tree.find(ROOT, "g/../g"), Err(NotDirectory));
}

#[test]
fn a_trailing_slash_wants_a_directory() {
    let mut tree = tree();
    assert_eq!(tree.find(ROOT, "d/"), tree.find(ROOT, "d"));
    assert_eq!(tree.find(ROOT, "g/"), Err(NotDirectory));
    assert_eq!(tree.find(ROOT, "g/."), Err(NotDirectory));
    assert_eq!(tree.unlink_file_at(ROOT, "g/", NOW), Err(NotDirectory));
    assert_eq!(tree.open_at(ROOT, "new/", CREATE, NOW), Err(IsDirectory));
    assert_eq!(tree.open_at(ROOT, "g/", CREATE, NOW), Err(NotDirectory));
    assert_eq!(
        tree.rename_at((ROOT, "g"), (ROOT, "new/"), NOW),
        Err(NotDirectory)
    );
    assert_eq!(tree.create_directory_at(ROOT, "new/", NOW), Ok(()));
    assert_eq!(
        tree.rename_at((ROOT, "new/"), (ROOT, "newer/"), NOW),
        Ok(())
    );
    assert_eq!(tree.remove_directory_at(ROOT, "newer/", NOW), Ok(()));
}

#[test]
fn opening_does_what_its_flags_say() {
    let mut tree = tree();
    let g = tree.find(ROOT, "g").unwrap();
    tree.write(g, None, b"text", NOW).unwrap();
    let plain = Opening::default();
    let mut open = |path, how| tree.open_at(ROOT, path, how, NOW);
    let exclusive = Opening {
        exclusive: true,
        ..CREATE
    };
    let directory = Opening {
        directory: true,
        ..plain
    };
    let truncate = Opening {
        truncate: true,
        write: true,
        ..plain
    };
    let write = Opening {
        write: true,
        ..plain
    };
    assert_eq!(open("g", CREATE), Ok(g));
    assert_eq!(open("g", exclusive), Err(Exist));
    assert_eq!(open("d", exclusive), Err(Exist));
    assert_eq!(open("g", directory), Err(NotDirectory));
    assert_eq!(open("missing", plain), Err(NoEntry));
    assert_eq!(open("missing/deep", CREATE), Err(NoEntry));
    assert_eq!(open("g/deep", CREATE), Err(NotDirectory));
    assert_eq!(
        open(
            "d",
            Opening {
                create: true,
                ..directory
            }
        ),
        Err(Invalid)
    );
    for how in [CREATE, truncate, write] {
        assert_eq!(open("d", how), Err(IsDirectory), "{how:?}");
        assert_eq!(open(".", how), Err(IsDirectory), "{how:?}");
    }
    assert!(open("d", directory).is_ok() && open(".", plain).is_ok());
    assert!(open("new", exclusive).is_ok());
    assert_eq!(open("g", truncate), Ok(g));
    assert_eq!(tree.stat(g).unwrap().size, 0);
}

#[test]
fn removing_and_creating_want_the_right_kind() {
    let mut tree = tree();
    for (path, refusal) in [("d", IsDirectory), (".", IsDirectory), ("missing", NoEntry)] {
        assert_eq!(tree.unlink_file_at(ROOT, path, NOW), Err(refusal), "{path}");
    }
    for (path, refusal) in [("g", NotDirectory), ("d", NotEmpty), (".", Invalid)] {
        let removed = tree.remove_directory_at(ROOT, path, NOW);
        assert_eq!(removed, Err(refusal), "{path}");
    }
    for path in ["d", "g", "."] {
        let created = tree.create_directory_at(ROOT, path, NOW);
        assert_eq!(created, Err(Exist), "{path}");
    }
}

#[test]
fn moving_keeps_what_is_moved_and_replaces_only_what_may_go() {
    let mut tree = tree();
    let f = tree.find(ROOT, "d/e/f").unwrap();
    let rename = |tree: &mut Tree, old, new| tree.rename_at((ROOT, old), (ROOT, new), NOW);
    assert_eq!(rename(&mut tree, "d", "d/e/d"), Err(Invalid));
    assert_eq!(rename(&mut tree, "g", "d"), Err(IsDirectory));
    assert_eq!(rename(&mut tree, "d", "g"), Err(NotDirectory));
    assert_eq!(rename(&mut tree, "missing", "x"), Err(NoEntry));
    assert_eq!(rename(&mut tree, "d/.", "x"), Err(Busy));
    assert_eq!(rename(&mut tree, "g", "g"), Ok(()));
    tree.create_directory_at(ROOT, "h", NOW).unwrap();
    assert_eq!(rename(&mut tree, "h", "d"), Err(NotEmpty));
    assert_eq!(
        rename(&mut tree, "d/e", "h"),
        Ok(()),
        "over an empty directory"
    );
    assert_eq!(tree.find(ROOT, "h/f"), Ok(f));
    assert_eq!(rename(&mut tree, "g", "h/f"), Ok(()), "over a file");
    assert_ne!(tree.find(ROOT, "h/f"), Ok(f));
    assert_eq!(tree.stat(f), Err(BadDescriptor), "nobody held it");
}

#[test]
fn what_is_open_lives_without_a_name_and_counts() {
    let grant = ScratchFiles {
        bytes: 10,
        entries: 2,
        ..ScratchFiles::default()
    };
    let mut tree = Tree::new(&grant, NOW);
    let open = tree.open_at(ROOT, "open", CREATE, NOW).unwrap();
    tree.open(open);
    tree.write(open, None, &[7; 8], NOW).unwrap();
    tree.unlink_file_at(ROOT, "open", NOW).unwrap();
    assert_eq!(tree.read(open, 0, 99), Ok((&[7; 8][..], true)));
    assert!(!tree.stat(open).unwrap().linked);
    let next = tree.open_at(ROOT, "next", CREATE, NOW).unwrap();
    assert_eq!(tree.write(next, None, &[1; 3], NOW), Err(InsufficientSpace));
    assert_eq!(tree.create_directory_at(ROOT, "d", NOW), Err(Quota));
    tree.close(open);
    assert_eq!(tree.write(next, None, &[1; 10], NOW), Ok(10));
    assert_eq!(tree.create_directory_at(ROOT, "d", NOW), Ok(()));
    // A removed directory takes no new entries.
    let gone = tree.find(ROOT, "d").unwrap();
    tree.open(gone);
    tree.remove_directory_at(ROOT, "d", NOW).unwrap();
    tree.unlink_file_at(ROOT, "next", NOW).unwrap();
    assert_eq!(tree.open_at(gone, "x", CREATE, NOW), Err(NoEntry));
    assert_eq!(tree.next_name(gone, None), Ok(None));
}

#[test]
fn depth_is_limited_and_a_move_cannot_get_round_it() {
    let grant = ScratchFiles {
        depth: 3,
        ..ScratchFiles::default()
    };
    let mut tree = Tree::new(&grant, NOW);
    for path in ["a", "a/b", "a/b/c", "x", "x/y"] {
        tree.create_directory_at(ROOT, path, NOW).unwrap();
    }
    assert_eq!(tree.create_directory_at(ROOT, "a/b/c/d", NOW), Err(Quota));
    assert_eq!(
        tree.rename_at((ROOT, "x"), (ROOT, "a/b/x"), NOW),
        Err(Quota)
    );
    assert_eq!(tree.rename_at((ROOT, "x"), (ROOT, "a/x"), NOW), Ok(()));
    let refused = tree.refused().unwrap();
    assert_eq!(
        (refused.name.as_str(), refused.value, refused.used),
        ("files.depth", 3, 4)
    );
}
