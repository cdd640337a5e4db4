//! Every body of a request is accepted or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    #[cfg(fuzzing)]
    {
        rlf_serve::fuzzing::run_code(body);
        rlf_serve::fuzzing::run_jupyter(body);
    }
    #[cfg(not(fuzzing))]
    let _ = body;
});
