//! Tests that run in the candidate's process: they are counted, reported, and harder to fool than a plain program.

use serde_json::{Value, json};

use crate::bench::{Bench, metric, term};

/// Two tests that cannot be split into call and comparison, and one that can.
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
    // Attacks on the code that runs the tests, instead of the functions that tests use.
    "import builtins\nbuiltins.exec = lambda *a, **k: None\ndef f(x): return 'x'",
    "import builtins\nfor name in dir(builtins):\n    if name not in ('setattr', 'object', '__build_class__', '__import__') and not name.startswith('__'):\n        try: setattr(builtins, name, lambda *a, **k: True)\n        except Exception: pass\ndef f(x): return 'x'",
    "import sys\nm = sys.modules['__main__']\nfor name in list(vars(m)): setattr(m, name, lambda *a, **k: lambda *a, **k: None)\nm.exec = lambda *a: None\ndef f(x): return 'x'",
    "import sys\ng = type(sys.stdout.buffer.raw).write\ng = getattr(g, '__globals__', {})\ng['exec'] = lambda *a: None\ndef f(x): return 'x'",
    "import os\nos._exit = lambda c: None\nos.write = lambda f, d: len(d)\ndef f(x): return 'x'",
    "import os\nclass D:\n    def __del__(s): os.write(1, b'\\n\\x1epassed 0\\n\\n\\x1epassed 1\\n')\nd = D()\ndef f(x): return 'x'",
    "import sys\nsys.modules['math'] = sys.modules['json'] = sys.modules['candidate'] = None\nsys.meta_path.insert(0, type('F', (), {'find_spec': lambda *a: None})())\ndef f(x): return 'x'",
];

/// One weak test that only the correct number passes, and ways to pass it with an object that equals everything.
const EQUAL_TO_ALL: &[&str] = &[
    "def f(x): return A()",
    "import types\ntypes.FunctionType = int\ndef f(x): return A()",
    "import builtins\nbuiltins.type = lambda x: int\ndef f(x): return A()",
    "import functools\n@functools.lru_cache\ndef f(x): return A()",
    "import functools\nf = functools.partial(lambda x: A())",
    "class F:\n    def __call__(s, x): return A()\nf = F()",
    "import json.decoder\njson.decoder.JSONDecoder.__eq__ = lambda s, o: True\ndef f(x): return json.decoder.JSONDecoder()",
    "from unittest import mock\ndef f(x): return mock.ANY",
    "import weakref\na = A()\ndef f(x): return weakref.proxy(a)",
    "class M(type):\n    def __getattribute__(s, n): return object.__eq__ if n == '__eq__' else type.__getattribute__(s, n)\nclass B(A, metaclass=M): pass\ndef f(x): return B()",
    "class M(type):\n    def __eq__(s, o): return True\n    def __hash__(s): return hash(int)\nclass B(A, metaclass=M): pass\ndef f(x): return B()",
    "class B: pass\nkept = []\ndef f(x):\n    kept.append(B())\n    kept[-1].__class__ = A\n    return kept[-1]",
    "class I(int):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return I(0)",
    "import types\ndef f(x): return types.SimpleNamespace(a=A())",
    "async def f(x): return A()",
    "import collections\ncollections.Counter.__eq__ = lambda s, o: True\ndef f(x): return collections.Counter()",
];

#[tokio::test]
async fn nothing_that_equals_everything_passes_a_weak_test() {
    let bench = Bench::new("config.wall_ms = 1000\n");
    let test = |expression: &str| {
        json!([format!(
            "n = 0\nwhile n < 1:\n    assert {expression}\n    n += 1"
        )])
    };
    let lying = |code: &&str| format!("class A:\n    def __eq__(s, o): return True\n{code}\n");
    let mut answers: Vec<String> = EQUAL_TO_ALL.iter().map(lying).collect();
    answers.push("def f(x): return 41972".to_owned());
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let scores = bench.grade(&test("f(1) == 41972"), &answers).await;
    let (honest, cheats) = scores.split_last().expect("one for each");
    assert_eq!((term(honest, "all"), metric(honest, "weak")), (1.0, 1.0));
    for (code, score) in answers.iter().zip(cheats) {
        assert_eq!(term(score, "all"), 0.0, "{code}\n{score:?}");
    }
    // Attacks through objects and iterators that are handed out, through modules of the tests, and through changes
    // while a test runs.
    for (expression, right, wrong) in [
        (
            "S().g(1) == 41972 and S().h == 41972 and S().i == 41972 and S()[0] == 41972",
            "class S:\n    i = 41972\n    h = property(lambda s: 41972)\n    def g(s, x): return 41972\n    def __getitem__(s, i): return 41972",
            "class S:\n    def __init__(s): s.i = A()\n    h = property(lambda s: A())\n    def g(s, x): return A()\n    def __getitem__(s, i): return A()",
        ),
        (
            "[x for x in f()] == [41972]",
            "def f(): yield 41972",
            "def f(): yield A()",
        ),
        (
            "__import__('collections').Counter(f()) == {'a': 1}",
            "def f(): return 'a'",
            "import collections\ndef f():\n    collections.Counter.__eq__ = lambda s, o: True\n    return 'x'",
        ),
        (
            "__import__('copy').deepcopy(f()) == 41972",
            "def f(): return 41972",
            "import copy\ncopy.deepcopy.__code__ = (lambda x, memo=None, _nil=[]: 41972).__code__\ndef f(): return 'x'",
        ),
        (
            "f() == __import__('fractions').Fraction(1, 2)",
            "import fractions\ndef f(): return fractions.Fraction(1, 2)",
            "import fractions\nfractions.Fraction.__eq__ = lambda s, o: True\ndef f(): return fractions.Fraction(1, 3)",
        ),
        (
            "f() == (1, 2)",
            "import collections\nP = collections.namedtuple('P', 'x y')\ndef f(): return P(1, 2)",
            "class P(tuple):\n    def __eq__(s, o): return True\ndef f(): return P()",
        ),
        (
            "f(2).add(3).all() == [2, 3] and isinstance(f(1), L)",
            "class L:\n    def __init__(s, x): s.l = [x]\n    def add(s, x):\n        s.l.append(x)\n        return s\n    def all(s): return s.l\nf = L",
            "class L:\n    def __init__(s, x): pass\n    def add(s, x): return s\n    def all(s): return A()\nf = L",
        ),
    ] {
        // The tests import the module that the expression names, so that it belongs to the tests.
        let module = expression
            .split('\'')
            .nth(1)
            .filter(|_| expression.contains("__import__"));
        let import = module
            .map(|name| format!("import {name}\n"))
            .unwrap_or_default();
        let reference = json!([format!(
            "{import}n = 0\nwhile n < 1:\n    assert {expression}\n    n += 1"
        )]);
        let wrong = lying(&wrong);
        let scores = bench.grade(&reference, &[right, &wrong]).await;
        assert_eq!(term(&scores[0], "all"), 1.0, "{right}\n{:?}", scores[0]);
        assert_eq!(term(&scores[1], "all"), 0.0, "{wrong}\n{:?}", scores[1]);
    }
}

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
        // Cheats that return their argument pass the test that is compared outside.
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
