//! The memory that a waiting session of a Python environment takes. Sessions share the image of their environment, and each has
//! its own copy of every page that it wrote to.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use serde_json::json;
use xtask::project::Project;

use crate::python::load_environments;
use crate::test_host::{call, observed};

/// Largest number of pages that the session may write to. It writes to about 180 with the portable build of Python, and to
/// half as many with the fast build. It wrote to 577 before everything in the portable build's image was immortal.
const MAX_PAGES: u64 = 300;
const PAGE_KIB: u64 = 4;
/// Smallest size of an interpreter's image.
const MIN_IMAGE_BYTES: u64 = 16 << 20;
/// A text that only this session has, to find its memory.
const TITLE: &str = "The Book of Few Written Pages";

/// Memory of this process without a gap that can be written to.
struct Region {
    start: u64,
    end: u64,
    /// Memory of its own that does not belong to a shared file.
    own_kib: u64,
    /// True if it has a private mapping of an image.
    has_image: bool,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_python_environment_writes_to_few_pages() {
    let project = Project::find().expect("tests run inside a checkout");
    let file = project.root().join("plugins/environments/Library.py");
    let servers = file.display().to_string();
    let (_registry, environments) = tokio::task::block_in_place(|| load_environments(&servers));
    let task = json!({"servers": {"Library": {
        "books": {"b4": {"title": TITLE, "author": "Ana Reyes"}},
        "members": {"m2": {"name": "Ida Holm"}},
        "today": 20,
    }}});
    let mut session = environments
        .open("servers", "test", &task, 7)
        .await
        .expect("the task is a good one");
    let found = call(&mut session, "Library-find_books", json!({"text": "few"})).await;
    assert!(observed(&found).contains(TITLE), "{found:?}");
    let lent = json!({"book_id": "b4", "member_id": "m2"});
    let lent = call(&mut session, "Library-lend", lent).await;
    assert!(observed(&lent).contains("L1"), "{lent:?}");
    let renewed = call(&mut session, "Library-renew", json!({"loan_id": "L1"})).await;
    assert!(observed(&renewed).contains("48"), "{renewed:?}");

    let pages = tokio::task::block_in_place(own_pages);
    let pages = pages.expect("the text is in the memory of an instance");
    assert!(pages > 0);
    assert!(pages <= MAX_PAGES, "the session wrote to {pages} pages");
}

/// Number of pages of its own of the instance that has the text.
fn own_pages() -> Option<u64> {
    let mut memory = File::open("/proc/self/mem").expect("a process can read its memory");
    let holds_text = |region: &Region| {
        let mut bytes = Vec::new();
        memory
            .seek(SeekFrom::Start(region.start))
            .expect("an address");
        // Another test may free the region in the meantime.
        let read = (&mut memory).take(region.end - region.start);
        let is_read = { read }.read_to_end(&mut bytes).is_ok();
        is_read && bytes.windows(TITLE.len()).any(|at| at == TITLE.as_bytes())
    };
    let found = regions()
        .into_iter()
        .filter(|region| region.has_image)
        .find(holds_text);
    found.map(|region| region.own_kib / PAGE_KIB)
}

/// The regions of this process, from the kernel's table of its mappings.
fn regions() -> Vec<Region> {
    let table = fs::read_to_string("/proc/self/smaps").expect("the kernel describes mappings");
    let mut found: Vec<Region> = Vec::new();
    let mut is_writable = false;
    for line in table.lines() {
        if let Some((start, end)) = addresses(line) {
            is_writable = line.contains(" rw-p ");
            let is_image = line.contains("memfd:") && end - start >= MIN_IMAGE_BYTES;
            match found.last_mut() {
                Some(last) if is_writable && last.end == start => {
                    last.end = end;
                    last.has_image |= is_image;
                }
                _ if is_writable => found.push(Region {
                    start,
                    end,
                    own_kib: 0,
                    has_image: is_image,
                }),
                _ => {}
            }
        } else if let (true, Some(own), Some(last)) = (
            is_writable,
            line.strip_prefix("Anonymous:"),
            found.last_mut(),
        ) {
            let kib = own.trim().trim_end_matches(" kB").parse::<u64>();
            last.own_kib += kib.expect("a number of kibibytes");
        }
    }
    found
}

/// The addresses that begin the first line of each mapping.
fn addresses(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?))
}
