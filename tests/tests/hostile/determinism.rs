//! The same component, config, data, seed and arguments give the same bytes: alone, in company, in another sandbox.

use std::sync::LazyLock;

use proptest::prelude::*;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::turn::TurnContext;
use serde_json::{Value, json};

use crate::test_host::{Plan, TestHost};
use rlf_stub_plugins::Beside;

/// Computes numbers from the arguments' bytes in every way in which processors differ: the bits of a NaN, fused or
/// separate multiplication, minima of zeros and NaNs, conversions out of range. Returns them mixed, in hexadecimal.
const NUMBERS: &str = "
    (local.set $seed (i64.xor (local.get $seed) (call $mix
        (v128.load (local.get $arguments)) (v128.load offset=16 (local.get $arguments))
        (v128.load offset=32 (local.get $arguments)))))
    (local.set $attempt (i32.const 16))
    (loop $digit
      (local.set $attempt (i32.sub (local.get $attempt) (i32.const 1)))
      (i32.store8 (i32.add (i32.const 3072) (local.get $attempt))
        (i32.add (i32.const 97) (i32.wrap_i64 (i64.and (local.get $seed) (i64.const 15)))))
      (local.set $seed (i64.shr_u (local.get $seed) (i64.const 4)))
      (br_if $digit (local.get $attempt)))
    (call $text (i32.const 3072) (i32.const 16))";

const MIX: &str = "
    (func $fold (param $sum i64) (param $v v128) (result i64)
      (i64.add (i64.mul (local.get $sum) (i64.const 6364136223846793005))
        (i64.xor (i64x2.extract_lane 0 (local.get $v)) (i64.rotl (i64x2.extract_lane 1 (local.get $v)) (i64.const 17)))))
    (func $mix (param $a v128) (param $b v128) (param $c v128) (result i64)
      (local $sum i64)
      (local.set $sum (call $fold (local.get $sum) (f32x4.relaxed_madd (local.get $a) (local.get $b) (local.get $c))))
      (local.set $sum (call $fold (local.get $sum) (f64x2.relaxed_nmadd (local.get $a) (local.get $b) (local.get $c))))
      (local.set $sum (call $fold (local.get $sum) (f32x4.relaxed_min (local.get $a) (local.get $b))))
      (local.set $sum (call $fold (local.get $sum) (f64x2.relaxed_max (local.get $a) (local.get $c))))
      (local.set $sum (call $fold (local.get $sum) (i32x4.relaxed_trunc_f32x4_s (local.get $a))))
      (local.set $sum (call $fold (local.get $sum) (i32x4.relaxed_trunc_f64x2_u_zero (local.get $b))))
      (local.set $sum (call $fold (local.get $sum) (i8x16.relaxed_swizzle (local.get $a) (local.get $b))))
      (local.set $sum (call $fold (local.get $sum) (i16x8.relaxed_q15mulr_s (local.get $a) (local.get $b))))
      (local.set $sum (call $fold (local.get $sum) (i16x8.relaxed_dot_i8x16_i7x16_s (local.get $a) (local.get $b))))
      (local.set $sum (call $fold (local.get $sum)
        (i32x4.relaxed_laneselect (local.get $a) (local.get $b) (local.get $c))))
      (local.set $sum (call $fold (local.get $sum) (f32x4.sqrt (f32x4.neg (f32x4.abs (local.get $a))))))
      (local.set $sum (call $fold (local.get $sum) (f64x2.div (local.get $a) (local.get $b))))
      (local.set $sum (i64.add (local.get $sum) (i64.reinterpret_f64
        (f64.add (f64x2.extract_lane 0 (local.get $a)) (f64.div (f64.const 0) (f64.const 0))))))
      (local.get $sum))";

fn host() -> TestHost {
    let beside = Beside {
        module: MIX,
        ..Beside::default()
    };
    Plan::new()
        .guest("misbehave")
        .stub("numbers", &beside, &[("numbers", NUMBERS)])
        .open()
}

static ONE: LazyLock<TestHost> = LazyLock::new(host);
static OTHER: LazyLock<TestHost> = LazyLock::new(host);

/// The results of all these calls of a turn, as bytes.
fn outcomes(host: &TestHost, seed: u64, calls: Vec<ToolCall>) -> Vec<String> {
    let context = TurnContext {
        trajectory_id: "t".into(),
        turn: 3,
        seed,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime
        .block_on(host.tools.invoke(calls, &context))
        .into_iter()
        .map(|outcome| {
            assert_eq!(outcome.ended, Ended::Ok, "{outcome:?}");
            serde_json::to_string(&outcome.observation).expect("an observation is JSON")
        })
        .collect()
}

fn any_call() -> impl Strategy<Value = (String, Value)> {
    let text = any::<String>();
    prop_oneof![
        4 => prop::collection::vec(any::<char>(), 48..80).prop_map(|text| {
            ("numbers".to_owned(), json!({"a": text.into_iter().collect::<String>()}))
        }),
        1 => text.prop_map(|text| ("echo".to_owned(), json!({ "text": text }))),
        1 => Just(("read_clock".to_owned(), json!({}))),
        1 => Just(("read_random".to_owned(), json!({}))),
        1 => (0_u64..9_000).prop_map(|ms| ("sleep".to_owned(), json!({"milliseconds": ms}))),
        1 => Just(("grow_memory".to_owned(), json!({"megabytes": 200}))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_same_calls_give_the_same_bytes(
        seed: u64, calls in prop::collection::vec(any_call(), 1..12),
    ) {
        let calls: Vec<ToolCall> = calls
            .into_iter()
            .enumerate()
            .map(|(n, (name, arguments))| ToolCall { call_id: format!("t/3/{n}"), name, arguments })
            .collect();
        let together = outcomes(&ONE, seed, calls.clone());
        prop_assert_eq!(&outcomes(&OTHER, seed, calls.clone()), &together, "in another sandbox");
        let alone: Vec<String> = calls
            .into_iter()
            .rev()
            .flat_map(|call| outcomes(&ONE, seed, vec![call]))
            .collect();
        let forwards: Vec<String> = alone.into_iter().rev().collect();
        prop_assert_eq!(forwards, together, "alone and in another order");
    }
}

#[test]
fn the_numbers_do_depend_on_what_they_are_made_of() {
    let of = |seed, text: &str| {
        let call = ToolCall {
            call_id: "t/3/0".into(),
            name: "numbers".into(),
            arguments: json!({ "a": text }),
        };
        outcomes(&ONE, seed, vec![call]).remove(0)
    };
    let (one, other) = (
        "a".repeat(60),
        format!("{}b{}", "a".repeat(20), "a".repeat(39)),
    );
    assert_ne!(of(1, &one), of(1, &other));
    assert_ne!(of(1, &one), of(2, &one));
}
