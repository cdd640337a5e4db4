//! No file name of a request leaves the program's root.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    #[cfg(fuzzing)]
    if let Some(path) = rlf_serve::fuzzing::path(name) {
        assert!(!path.is_empty() && !path.contains('\0'));
        assert!(
            path.split('/')
                .all(|segment| !matches!(segment, "" | "." | ".."))
        );
    }
    #[cfg(not(fuzzing))]
    let _ = name;
});
