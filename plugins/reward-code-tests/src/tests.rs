//! Tests without an interpreter, and tests that use the machine's `python3` instead; these report if it is missing.
//! Candidates that cheat are graded through the host, in `tests/tests/code_tests`.

mod forms;
mod natively;
mod rows;
