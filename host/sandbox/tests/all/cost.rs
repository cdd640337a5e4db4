//! The cost of an instance can be measured, and the measurement leaves nothing behind.

use std::time::Duration;

use crate::guest::{assert_unharmed, block_on, load, plain, sandbox};
use rlf_sandbox::{Ending, Limits};

/// A component that writes to this many of its 80 pages of 64 KiB when it is instantiated.
fn writer(pages: u32) -> String {
    plain(
        &format!(
            r"(memory 80)
            (func $write (local $at i32)
                (loop $next
                    (memory.fill (local.get $at) (i32.const 7) (i32.const 65536))
                    (local.set $at (i32.add (local.get $at) (i32.const 65536)))
                    (br_if $next (i32.lt_u (local.get $at) (i32.const {})))))
            (start $write)",
            pages << 16
        ),
        "",
    )
}

#[test]
fn an_instance_costs_the_memory_that_it_begins_with_and_what_it_writes() {
    let sandbox = sandbox();
    let cost = |pages| {
        let template = load(&sandbox, &writer(pages), Limits::default());
        block_on(template.instance_cost(Duration::from_millis(5))).unwrap()
    };
    let cost = cost(64);
    assert!(
        cost.measured >= 1 && cost.median > Duration::ZERO,
        "{cost:?}"
    );
    assert_eq!(cost.memory_bytes, 80 << 16);
    // The amount is that of the whole process, so other tests change it.
    assert!(cost.own_bytes.is_some(), "Linux says");
    assert_unharmed(&sandbox);
}

#[test]
fn what_cannot_be_made_says_why() {
    let sandbox = sandbox();
    let text = plain("(func $broken unreachable) (start $broken)", "");
    let template = load(&sandbox, &text, Limits::default());
    let stopped = block_on(template.instance_cost(Duration::ZERO)).unwrap_err();
    assert_eq!(stopped.ended, Ending::Trap);
    assert_unharmed(&sandbox);
}
