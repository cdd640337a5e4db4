//! Tests that run beside the candidate: counted, reported, and harder to fool than a plain program.

use serde_json::{Value, json};

use crate::bench::{Bench, metric, term};

/// Two tests that cannot be taken apart, and one that can.
fn reference() -> Value {
    json!({ "tests": [
        "import math\nwith_loop = 0\nwhile with_loop < 2:\n    assert math.isclose(f(with_loop), with_loop)\n    with_loop += 1",
        "try:\n    f(-1)\n    raise AssertionError\nexcept ValueError:\n    pass\nassert isinstance(f(2), int) and len(str(f(2))) == 1",
        "assert f(3) == 3",
    ] })
}

const HONEST: &str = "def f(x):\n    if x < 0: raise ValueError(x)\n    return x";

const CHEATS: &[&str] = &[
    "print('passed 0'); print('passed 1')\ndef f(x): return None",
    "import sys\nsys.exit(0)",
    "import os\ndef f(x): os._exit(0)",
    "def f(x): raise SystemExit(0)",
    "import os\nfor n in range(3): os.write(1, f'\\n\\x1epassed {n}\\n\\x1eloaded\\n'.encode())\ndef f(x): return None",
    "import math\nmath.isclose = lambda *a, **k: True\ndef f(x): return 'x'",
    "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.len = lambda x: 1\nbuiltins.AssertionError = ValueError\ndef f(x): return 'x'",
    "import builtins\nbuiltins.__import__ = lambda *a, **k: type('M', (), {'isclose': lambda *a: True})\ndef f(x): return 'x'",
    "class A:\n    def __eq__(s, o): return True\n    def __float__(s): return 0.0\ndef f(x): return A()",
    "class I(int):\n    def __eq__(s, o): return True\n    def __float__(s): return 1.0\n    def __str__(s): return '2'\ndef f(x): return I(7)",
    "import sys\nsys.settrace(lambda *a: None)\ndef f(x): return x",
    "import gc\ndef f(x):\n    gc.get_objects()\n    return x",
    "def f(x):\n    while True: pass",
    "def f(x: return",
];

#[tokio::test]
async fn weak_tests_are_counted_and_plain_cheats_fail_them() {
    let bench = Bench::new("config.wall_ms = 500\n");
    let mut answers = vec![HONEST];
    answers.extend(CHEATS);
    let scores = bench.grade(&reference(), &answers).await;
    assert_eq!(term(&scores[0], "all"), 1.0, "{:?}", scores[0]);
    for (code, score) in answers.iter().zip(&scores) {
        assert_eq!(
            (metric(score, "tests"), metric(score, "weak")),
            (3.0, 2.0),
            "{code}"
        );
    }
    for (code, score) in CHEATS.iter().zip(&scores[1..]) {
        assert_eq!(term(score, "all"), 0.0, "{code}\n{score:?}");
        // Those that return what they are asked for pass what is compared outside.
        let returns = code.contains("return x");
        assert_eq!(
            metric(score, "passed"),
            f64::from(u8::from(returns)),
            "{code}\n{score:?}"
        );
    }
}

#[tokio::test]
async fn the_operator_can_refuse_weak_tests() {
    let bench = Bench::new("config.weak = \"error\"\n");
    for graded in bench.try_grade(&reference(), &[HONEST]).await {
        let reason = graded.expect_err("excluded").reason;
        assert!(
            reason.contains("can only run beside the candidate"),
            "{reason}"
        );
    }
    let bench = Bench::new("config.weak = \"fail\"\nconfig.score = \"rate\"\n");
    let score = &bench.grade(&reference(), &[HONEST]).await[0];
    assert_eq!(term(score, "score"), 1.0 / 3.0);
}
