//! Each candidate has its own budget, and a test that never ends fails only that test.

use serde_json::json;

use crate::bench::{Bench, metric, term};

#[tokio::test]
async fn a_call_that_never_ends_costs_its_own_test_alone() {
    let bench = Bench::new("config.wall_ms = 300\nconfig.score = \"rate\"\n");
    let tests: Vec<String> = (0..6).map(|x| format!("assert f({x}) == {x}")).collect();
    let reference = json!({ "tests": tests });
    let scores = bench
        .grade(
            &reference,
            &[
                "def f(x):\n    while x == 2: pass\n    return x",
                "import os\ndef f(x):\n    if x in (1, 4): os._exit(0)\n    return x",
                "def f(x):\n    while x in (1, 2, 3): pass\n    return x",
                "while True: pass",
                "def f(x): return x",
            ],
        )
        .await;
    let rates: Vec<f64> = scores.iter().map(|score| term(score, "score")).collect();
    // The third candidate uses its three programs on three loops.
    assert_eq!(rates, [5.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0, 0.0, 1.0]);
    assert_eq!(metric(&scores[0], "timed_out"), 1.0);
    assert_eq!(metric(&scores[1], "exited"), 2.0);
    assert_eq!(metric(&scores[2], "timed_out"), 3.0);
    assert_eq!(metric(&scores[2], "unreached"), 2.0);
    assert_eq!(metric(&scores[3], "timed_out"), 6.0);
    let programs: Vec<f64> = scores
        .iter()
        .map(|score| metric(score, "programs"))
        .collect();
    assert_eq!(programs, [2.0, 3.0, 3.0, 1.0, 1.0]);
}

#[tokio::test]
async fn what_was_answered_before_a_flood_or_a_crash_stands() {
    let bench = Bench::new("config.wall_ms = 500\nconfig.attempts = 1\n");
    let reference = json!({ "tests": ["assert f(0) == 0", "assert f(1) == 1"] });
    let scores = bench
        .grade(
            &reference,
            &[
                "import os\ndef f(x):\n    while x: os.write(1, b'x' * 4096)\n    return x",
                "def f(x):\n    a = [0]\n    while x: a += a\n    return x",
                "def f(x):\n    if x: f(x)\n    return x",
            ],
        )
        .await;
    for score in &scores {
        assert_eq!(metric(score, "passed"), 1.0, "{score:?}");
    }
}

#[tokio::test]
async fn large_values_are_compared_whole() {
    let bench = Bench::new("");
    let reference = json!([
        "assert f(30000) == list(range(30000))",
        "assert f(3) == [0, 1, 2]"
    ]);
    let scores = bench
        .grade(
            &reference,
            &[
                "def f(n): return list(range(n))",
                "def f(n): return list(range(n - 1)) + [n - 1 if n < 9 else 0]",
            ],
        )
        .await;
    assert_eq!(term(&scores[0], "rate"), 1.0, "{:?}", scores[0]);
    assert_eq!(term(&scores[1], "rate"), 0.5, "{:?}", scores[1]);
}

#[tokio::test]
async fn a_group_that_needs_more_programs_than_allowed_is_told_what_to_raise() {
    let bench = Bench::new("config.programs = 5\n");
    let reference = json!(["assert f(1) == 1"]);
    let fits = bench
        .try_grade(&reference, &["def f(x): return x"; 2])
        .await;
    assert!(fits.iter().all(Result::is_ok), "{fits:?}");
    for graded in bench
        .try_grade(&reference, &["def f(x): return x"; 3])
        .await
    {
        let reason = graded.expect_err("three too many").reason;
        assert!(reason.contains("a group of 3 needs 6 programs"), "{reason}");
        assert!(reason.contains("nested_calls"), "{reason}");
    }
    let bench = Bench::new("limits.nested_calls = 2\n");
    for graded in bench
        .try_grade(&reference, &["def f(x): return x"; 2])
        .await
    {
        let reason = graded.expect_err("the host allows two").reason;
        assert!(reason.contains("nested_calls"), "{reason}");
    }
}
