//! Tools that break a guest's rules. The host's tests call them to show that the host survives.
//!
//! Each tool is named after its action. `echo` and `delay` behave: they count calls and spin, to show that every call
//! has a fresh instance and that order and timing of calls change nothing.

mod count;
mod files;
mod output;
mod resources;
mod time;
mod traces;

use rlf_plugin::plugin;

use count::{delay, echo};
use files::{abuse_files, escape_files, read_data, use_files};
use output::{
    deep_result, flood_log, flood_output, huge_result, invalid_metric, invalid_result, print,
    print_bytes, refuse, say,
};
use resources::{exhaust_memory, exit, grow_memory, panic, recurse, trap};
use time::{r#loop, read_clock, read_random, sleep};
use traces::leave_traces;

plugin!(tools: [
    r#loop,
    sleep,
    grow_memory,
    exhaust_memory,
    flood_output,
    flood_log,
    trap,
    panic,
    exit,
    recurse,
    huge_result,
    invalid_result,
    invalid_metric,
    print,
    read_clock,
    read_random,
    echo,
    delay,
    use_files,
    abuse_files,
    escape_files,
    read_data,
    print_bytes,
    deep_result,
    say,
    refuse,
    leave_traces,
]);
