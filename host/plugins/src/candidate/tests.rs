use std::fs;

use super::*;

/// An empty component with a custom section of this name.
fn component(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    let header = b"\0asm\x0d\0\x01\0";
    [&header[..], &[0, length + 1, length], name.as_bytes()].concat()
}

fn read_all(directory: &Path) -> Vec<Result<Candidate, Problem>> {
    let read = |place: &Place| {
        Candidate::read(place, &place.name, |_| {
            panic!("{place:?} is no source file")
        })
    };
    let places = discovery::places(directory).unwrap();
    places.iter().map(read).collect()
}

fn stem(candidate: &Candidate) -> String {
    let stem = candidate.files.path.file_stem().unwrap();
    stem.to_str().unwrap().to_owned()
}

#[test]
fn folders_and_bare_components_are_found_in_sorted_order() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for folder in ["zeta", "alpha", "empty", ".hidden"] {
        fs::create_dir(at(folder)).unwrap();
    }
    fs::write(at("zeta/plugin.toml"), "description = \"z\"\n").unwrap();
    fs::write(at("zeta/zeta.wasm"), component("zeta")).unwrap();
    fs::write(at("zeta/other.wasm"), component("other")).unwrap();
    fs::write(at("alpha/only.wasm"), component("only")).unwrap();
    fs::write(at("middle.wasm"), component("middle")).unwrap();
    fs::write(at(".hidden/plugin.toml"), "").unwrap();
    fs::write(at("README.md"), "").unwrap();
    let found: Vec<(String, String)> = read_all(root.path())
        .into_iter()
        .map(|found| found.unwrap())
        .map(|found| (stem(&found), found.info().hash))
        .collect();
    let expected =
        [("alpha", "only"), ("middle", "middle"), ("zeta", "zeta")].map(|(name, code)| {
            let hash = blake3::hash(&component(code)).to_hex().to_string();
            (name.to_owned(), hash)
        });
    assert_eq!(found, expected);
}

#[test]
fn a_folder_that_is_wrong_says_so_and_the_rest_is_read() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for folder in ["a", "b", "c", "d", "d2", "e f"] {
        fs::create_dir(at(folder)).unwrap();
    }
    fs::write(at("a/plugin.toml"), "").unwrap();
    fs::write(at("b/plugin.toml"), "component = \"../a/x.wasm\"\n").unwrap();
    fs::write(at("c/x.wasm"), "").unwrap();
    fs::write(at("c/y.wasm"), "").unwrap();
    fs::write(at("d/plugin.toml"), "knid = \"tool\"\n").unwrap();
    fs::write(at("d2/plugin.toml"), "name = \"d3\"\n").unwrap();
    fs::write(at("e f/x.wasm"), "").unwrap();
    fs::write(at("good.wasm"), component("good")).unwrap();
    let found: Vec<String> = read_all(root.path())
        .into_iter()
        .map(|found| match found {
            Ok(candidate) => stem(&candidate),
            Err(problem) => problem
                .what
                .replace(&root.path().display().to_string(), "."),
        })
        .collect();
    assert_eq!(
        found,
        [
            "there is no .wasm file, and no .py or .js file with the folder's name",
            "`component = \"../a/x.wasm\"` is not a file name",
            "there are several components: x.wasm, y.wasm",
            "./d/plugin.toml:1:1: unknown key `knid`; did you mean `kind`?",
            "`name = \"d3\"`, but the folder is called \"d2\"",
            "\"e f\" cannot name a plugin",
            "good",
        ]
    );
}

#[cfg(unix)]
#[test]
fn symlinks_that_leave_the_directory_are_refused() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("plugin")).unwrap();
    fs::write(outside.path().join("plugin/plugin.toml"), "").unwrap();
    fs::write(outside.path().join("plugin/x.wasm"), component("secret")).unwrap();
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("file")).unwrap();
    symlink(outside.path().join("plugin/x.wasm"), at("file/file.wasm")).unwrap();
    symlink(outside.path().join("plugin"), at("folder")).unwrap();
    fs::create_dir(at("manifest")).unwrap();
    symlink(
        outside.path().join("plugin/plugin.toml"),
        at("manifest/plugin.toml"),
    )
    .unwrap();
    fs::write(at("manifest/manifest.wasm"), component("x")).unwrap();
    // A link inside the directory is fine.
    fs::write(at("real.wasm"), component("real")).unwrap();
    symlink("real.wasm", at("same.wasm")).unwrap();
    let mut names = Vec::new();
    for found in read_all(root.path()) {
        match found {
            Ok(candidate) => names.push(stem(&candidate)),
            Err(problem) => {
                assert_eq!(problem.kind, ProblemKind::File, "{problem}");
                assert!(
                    problem.what.contains("leads outside the plugin directory"),
                    "{problem}"
                );
                names.push(format!("refused {}", problem.label()));
            }
        }
    }
    assert_eq!(
        names,
        [
            "refused file",
            "refused folder",
            "refused manifest",
            "real",
            "same"
        ]
    );
}

#[test]
fn files_that_are_too_large_are_refused_unread() {
    let root = tempfile::tempdir().unwrap();
    fs::File::create(root.path().join("huge.wasm"))
        .unwrap()
        .set_len(600 << 20)
        .unwrap();
    fs::create_dir(root.path().join("long")).unwrap();
    fs::write(root.path().join("long/plugin.toml"), "#".repeat(70_000)).unwrap();
    let problems: Vec<String> = read_all(root.path())
        .into_iter()
        .map(|found| found.unwrap_err().what)
        .collect();
    assert_eq!(
        problems,
        [
            "it has 629145600 bytes or more; at most 536870912 are read",
            "it has 70000 bytes or more; at most 65536 are read",
        ]
    );
}
