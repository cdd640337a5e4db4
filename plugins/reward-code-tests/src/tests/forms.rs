//! Forms of tests: which are split, which stay weak, and which errors a row can have.

use rlf_plugin::execute::Report;
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{error_message, testing};

use super::natively::{grade, grade_both, grade_with, metric, python};

/// Tests, code that passes, code that must not, the number of tests, and the number of weak ones.
type Form = (&'static str, &'static str, &'static str, usize, usize);

const FORMS: &[Form] = &[
    (
        "assert f(3) == 5",
        "def f(x): return x + 2",
        "def f(x): return x + 1",
        1,
        0,
    ),
    (
        "assert 5 == f(3)",
        "def f(x): return 5.0",
        "def f(x): return '5'",
        1,
        0,
    ),
    (
        "assert f(3) != 5",
        "def f(x): return 4",
        "def f(x): return 5",
        1,
        0,
    ),
    (
        "assert f(3)\nassert not f(0)",
        "def f(x): return x",
        "def f(x): return 1",
        2,
        0,
    ),
    (
        "assert f('a1')\nassert not f('b')\nassert f('a2') and not f('') or f('a3')",
        "import re\ndef f(x): return re.match('a.', x)",
        "import re\ndef f(x): return re.search('[ab]', x)",
        3,
        0,
    ),
    (
        "x = f(2)\nassert x\nassert not not x",
        "class A:\n    def __eq__(self, other): return True\ndef f(x): return A()",
        "class A:\n    def __bool__(self): return False\ndef f(x): return A()",
        2,
        0,
    ),
    (
        "assert (f(1) or 3) == 3",
        "def f(x): return []",
        "def f(x): return 4",
        1,
        0,
    ),
    (
        "assert f(1) is None",
        "def f(x): pass",
        "def f(x): return 0",
        1,
        0,
    ),
    (
        "assert f(1) is True",
        "def f(x): return x == 1",
        "def f(x): return 1",
        1,
        0,
    ),
    (
        "assert f(1) < 2 <= f(2)",
        "def f(x): return x",
        "def f(x): return 1",
        1,
        0,
    ),
    (
        "assert f(1) in (1, 2)",
        "def f(x): return 2",
        "def f(x): return 3",
        1,
        0,
    ),
    (
        "assert isinstance(f(1), int)",
        "def f(x): return 2",
        "def f(x): return 2.0",
        1,
        0,
    ),
    (
        "import math\nassert math.isclose(f(1), 0.3, rel_tol=1e-9)",
        "def f(x): return 0.1 + 0.2",
        "def f(x): return 0.31",
        1,
        0,
    ),
    (
        "assert abs(f(1) - 0.3) < 1e-6",
        "def f(x): return 0.3000001",
        "def f(x): return 0.31",
        1,
        0,
    ),
    (
        "assert math.floor(f(1)) == 2",
        "def f(x): return 2.5",
        "def f(x): return 3.5",
        1,
        0,
    ),
    (
        "assert sorted(f(2)) == [0, 1]",
        "def f(n): yield from range(n)",
        "def f(n): return range(3)",
        1,
        0,
    ),
    (
        "assert set(f(2)) == {0, 1}",
        "def f(n): return [0, 1, 0]",
        "def f(n): return [0]",
        1,
        0,
    ),
    (
        "assert str(f()) == '1/2'",
        "import fractions\ndef f(): return fractions.Fraction(1, 2)",
        "def f(): return 0.5",
        1,
        0,
    ),
    (
        "assert f() == {'a': 1}",
        "import collections\ndef f(): return collections.Counter('a')",
        "def f(): return {'a': 2}",
        1,
        0,
    ),
    (
        "from collections import Counter\nassert f() == Counter('ab')",
        "def f(): return {'b': 1, 'a': 1}",
        "def f(): return {'a': 1}",
        1,
        0,
    ),
    (
        "from decimal import Decimal\nassert f() == Decimal('0.5')",
        "def f(): return 0.5",
        "def f(): return 0.25",
        1,
        0,
    ),
    (
        "assert f(1).startswith('a') and f(1)[-1] == 'c'",
        "def f(x): return 'abc'",
        "def f(x): return 'ab'",
        1,
        0,
    ),
    (
        "expected = [1, 2]\nr = f(3)\nassert r == expected, 'no'",
        "def f(x): return [1, 2]",
        "def f(x): return (1, 2)",
        1,
        0,
    ),
    (
        "r = f(3)\nok = r == 5\nassert ok",
        "def f(x): return 5",
        "def f(x): return 6",
        1,
        0,
    ),
    (
        "l = [2, 1]\nf(l)\nassert l == [1, 2]",
        "def f(l): l.sort()",
        "def f(l): return sorted(l)",
        1,
        0,
    ),
    (
        "for a, b in [(1, 2), (2, 3)]:\n    assert f(a) == b",
        "def f(x): return x + 1",
        "def f(x): return 2",
        2,
        0,
    ),
    (
        "assert all(f(x) == x + 1 for x in range(3))",
        "def f(x): return x + 1",
        "def f(x): return 1",
        1,
        0,
    ),
    (
        "assert [f(x) for x in range(3)] == [1, 2, 3]",
        "def f(x): return x + 1",
        "def f(x): return 1",
        1,
        0,
    ),
    (
        "def eq(a, b):\n    assert a == b\neq(f(1), 2)\neq(3, f(2))",
        "def f(x): return x + 1",
        "def f(x): return 2",
        2,
        0,
    ),
    (
        "def check(c):\n    for i in range(2):\n        assert c(i) == i\ncheck(f)",
        "def f(x): return x",
        "def f(x): return 0",
        2,
        0,
    ),
    (
        "def double(x):\n    return 2 * x\nassert f(double, 4) == 8",
        "def f(g, x): return g(x)",
        "def f(g, x): return x",
        1,
        0,
    ),
    (
        "assert f(lambda x: x + 1, 4) == 5",
        "def f(g, x): return g(x)",
        "def f(g, x): return x",
        1,
        0,
    ),
    (
        "assert sum(10, 15) == 6",
        "def sum(a, b): return 6",
        "def sum(a, b): return a + b",
        1,
        0,
    ),
    (
        "assert Solution().index(3) == 1",
        "class Solution:\n    def index(self, x): return 1",
        "class Solution:\n    def index(self, x): return 2",
        1,
        0,
    ),
    (
        "s = Stack()\ns.push(1)\nassert s.pop() == 1\nassert s.size == 0",
        "class Stack:\n    def __init__(s): s.l = []\n    def push(s, x): s.l.append(x)\n    def pop(s): return s.l.pop()\n    size = property(lambda s: len(s.l))",
        "class Stack:\n    size = 0\n    def push(s, x): pass\n    def pop(s): return 0",
        2,
        0,
    ),
    (
        "a = [2, 1]\nassert f(a) == sorted(a)",
        "def f(a): return sorted(a)",
        "def f(a):\n    a.clear()\n    return a",
        1,
        0,
    ),
    // Methods with the names of those of lists and dictionaries.
    (
        "c = Cache(1)\nc.put(1, 2)\nassert c.get(1) == 2\nc.update(1, 3)\nassert c.get(1) == 3\nassert c.index(3) == 1",
        "class Cache:\n    def __init__(s, n): s.d = {}\n    def put(s, k, v): s.d[k] = v\n    update = put\n    def get(s, k): return s.d[k]\n    def index(s, v): return [k for k in s.d if s.d[k] == v][0]",
        "class Cache(dict):\n    def __init__(s, n): pass\n    def put(s, k, v): pass\n    def get(s, k): return 9\n    def index(s, v): return 9",
        3,
        0,
    ),
    // A part that is not evaluated may raise.
    (
        "assert f(1) == 1 or f(2) == 2",
        "def f(x): return 1 // (2 - x)",
        "def f(x): return 2 // (2 - x)",
        1,
        0,
    ),
    (
        "assert f(1) == 2 if len('a') else f(0) == 1",
        "def f(x): return 2 // x",
        "def f(x): return 1 // x",
        1,
        0,
    ),
    (
        "assert f(1) == 1 and f(2) == 2",
        "def f(x): return x",
        "def f(x): return 1 // (2 - x)",
        1,
        0,
    ),
    (
        "import asyncio\nassert asyncio.run(f(1)) == 2",
        "async def f(x): return x + 1",
        "async def f(x): return x",
        1,
        0,
    ),
    (
        "assert ','.join(f(3)) == 'a,a,a'",
        "def f(n):\n    for _ in range(n): yield 'a'",
        "def f(n):\n    while True: yield 'a'",
        1,
        0,
    ),
    // No part can be split off.
    (
        "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
        "def f(x): raise ValueError",
        "def f(x): return 1",
        1,
        1,
    ),
    (
        "i = 0\nwhile i < 3:\n    assert f(i) == i\n    i += 1",
        "def f(x): return x",
        "def f(x): return 0",
        1,
        1,
    ),
    (
        "def apply(g):\n    return g(1)\nassert apply(f) == 2",
        "def f(x): return x + 1",
        "def f(x): return x",
        1,
        1,
    ),
    (
        "for x in f(3):\n    assert x < 3\nassert len(f(3)) == 3",
        "def f(n): return list(range(n))",
        "def f(n): return [4]",
        1,
        1,
    ),
    (
        "a = [2, 1]\nk = f(a)\nassert k == 2 and a == [1, 2]",
        "def f(a):\n    a.sort()\n    return 2",
        "def f(a): return 2",
        1,
        1,
    ),
    (
        "import math\nassert f(1) == 1\nfor x in f(2), f(3):\n    assert math.isclose(x, 1)",
        "def f(x): return 1",
        "def f(x): return x",
        2,
        1,
    ),
];

#[test]
fn every_form_passes_right_code_and_fails_wrong_code() {
    if !python() {
        return;
    }
    for (tests, right, wrong, count, weak) in FORMS {
        let reference = json!({ "tests": tests });
        let [right, wrong] = grade_both(reference, [right, wrong]);
        assert_eq!(right.get("all"), Some(1.0), "{tests}\n{right:?}");
        assert_eq!(metric(&right, "tests"), *count as f64, "{tests}");
        assert_eq!(metric(&right, "weak"), *weak as f64, "{tests}");
        assert_eq!(wrong.get("all"), Some(0.0), "{tests}\n{wrong:?}");
    }
}

#[test]
fn a_row_that_no_candidate_could_pass_excludes_instead_of_scoring() {
    if !python() {
        return;
    }
    for (tests, said) in [
        ("assert f(1) == 1 / 0", "ZeroDivisionError"),
        ("assert f(1 == 1", "does not parse"),
        ("x = 1", "asks nothing of the candidate"),
        (
            "assert f(1) == 1\nassert 1 == 2",
            "fails without any candidate",
        ),
    ] {
        let error = grade(json!({ "tests": [tests] }), "def f(x): return 1").unwrap_err();
        assert!(error_message(&error).contains(said), "{tests}: {error:?}");
    }
}

#[test]
fn weak_tests_are_the_operators_choice() {
    if !python() {
        return;
    }
    let reference =
        || json!({ "tests": ["assert f(1) == 1", "while True:\n    assert f(2) == 2\n    break"] });
    let code = "def f(x): return x";
    let score =
        |weak: &str| grade_with(json!({ "code": "answer", "weak": weak }), reference(), code);
    assert_eq!(score("run").unwrap().get("rate"), Some(1.0));
    assert_eq!(score("fail").unwrap().get("rate"), Some(0.5));
    let error = score("error").unwrap_err();
    assert!(
        error_message(&error).contains("assertions inside a While"),
        "{error:?}"
    );
}

/// Searches all inputs of the programs that run a candidate for data that they must not contain.
#[test]
fn what_is_expected_never_enters_the_candidates_interpreter() {
    if !python() {
        return;
    }
    for (tests, secret) in [
        ("assert f(3) == 'xyzzy'", "xyzzy"),
        (
            "expected = 'xyzzy'\nr = f(3)\nok = r == expected\nassert ok",
            "xyzzy",
        ),
        (
            "def check(c):\n    for i, o in [(1, 'xyzzy'), (2, 'b')]:\n        assert c(i) == o\ncheck(f)",
            "xyzzy",
        ),
        (
            "def same(a, b):\n    assert a == b\nsame(f(3), 'xyzzy')",
            "xyzzy",
        ),
        ("assert f(3).startswith('xyzzy')", "xyzzy"),
        ("assert abs(f(3) - 123454321) < 1", "123454321"),
        (
            "assert all(f(i) == o for i, o in [(1, 123454321)])",
            "123454321",
        ),
        ("assert f(3) in {'xyzzy', 'b'}", "xyzzy"),
    ] {
        let mut seen = 0;
        python();
        let real = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let kept = real.clone();
        testing::execute_with(move |program| {
            kept.borrow_mut().push(program.clone());
            Ok(super::natively::execute(program))
        });
        let score = grade(json!({ "tests": tests }), "def f(x): return None").unwrap();
        assert_eq!(metric(&score, "weak"), 0.0, "{tests}");
        for program in real.borrow().iter() {
            if !program.files.iter().any(|file| file.path == "candidate.py") {
                continue;
            }
            seen += 1;
            let mut text = program.code.clone() + &program.arguments.join("\n");
            let data = program.files.iter().map(|file| &file.data);
            for data in data.chain(program.modules.iter().map(|module| &module.data)) {
                text.push_str(&String::from_utf8_lossy(data));
            }
            assert!(!text.contains(secret), "{tests}");
        }
        assert!(seen > 0, "{tests}: no program ran the candidate");
    }
}

#[test]
fn rows_of_every_data_set_are_graded() {
    if !python() {
        return;
    }
    let humaneval = json!({
        "entry_point": "f", "prompt": "import math\n\ndef f(x):\n    \"\"\"Floor.\"\"\"\n",
        "test": "def check(candidate):\n    assert candidate(1.5) == 1\n    assert candidate(-1.5) == -2\n",
    });
    let calls =
        json!({ "fn_name": "add", "inputs": [[1, 2], [[1], [2]]], "outputs": [[3], [1, 2]] });
    let streams = json!({ "inputs": ["1 2\n", "3 4"], "outputs": ["3", "7\n"] });
    for (reference, code, rate) in [
        (humaneval.clone(), "    return math.floor(x)", 1.0),
        (
            humaneval.clone(),
            "def f(x):\n    return math.floor(x)",
            1.0,
        ),
        (humaneval, "    return int(x)", 0.5),
        (calls.clone(), "def add(a, b): return a + b", 1.0),
        (
            calls.clone(),
            "class Solution:\n    def add(self, a, b): return a + b",
            1.0,
        ),
        (
            calls.clone(),
            "def add(a, b): return tuple(a) + tuple(b) if type(a) is list else 3",
            1.0,
        ),
        (calls, "def add(a, b): return 3", 0.5),
        (
            streams.clone(),
            "print(sum(map(int, input().split())))",
            1.0,
        ),
        (streams, "print(3)", 0.5),
    ] as [(Value, &str, f64); 9]
    {
        let score = grade(reference, code).unwrap();
        assert_eq!(score.get("rate"), Some(rate), "{code}\n{score:?}");
    }
}

#[test]
fn an_answer_without_code_scores_nothing_and_runs_nothing() {
    testing::execute_with(|program| panic!("ran {}", program.code));
    let score = grade(json!(["assert f(1) == 1"]), "  ").unwrap();
    assert_eq!(
        (score.get("all"), score.get("extracted")),
        (Some(0.0), Some(0.0))
    );
}

#[test]
fn a_group_that_needs_more_programs_than_it_may_run_says_so() {
    testing::execute_with(|program| panic!("ran {}", program.code));
    let streams = json!({ "inputs": ["1", "2"], "outputs": ["1", "2"] });
    let error = grade_with(json!({ "programs": 1 }), streams, "print(input())").unwrap_err();
    let text = error_message(&error);
    assert!(
        text.contains("needs 2 programs") && text.contains("nested_calls"),
        "{text}"
    );
}

#[test]
fn a_row_that_is_too_large_for_a_program_excludes_and_names_the_key() {
    testing::execute_with(|_| {
        let text =
            "code, input, files and modules have 9 bytes; 8 are allowed (programs.file_bytes)";
        Err(rlf_plugin::Error::Exhausted(text.to_owned()))
    });
    let streams = json!({ "inputs": ["1"], "outputs": ["1"] });
    let error = grade(streams, "print(input())").unwrap_err();
    let text = error_message(&error);
    assert!(
        text.contains("raise `file_bytes` in [plugins.INTERPRETER.programs]"),
        "{text}"
    );
}

#[test]
fn a_program_whose_numpy_has_narrow_integers_is_counted() {
    testing::execute_with(|program| {
        let mut report = Report::printed("1\n");
        if program.code.contains("numpy") {
            report.stderr.head =
                b"note: numpy's default integers have 32 bits here and ..\n".to_vec();
        }
        Ok(report)
    });
    let streams = json!({ "inputs": ["1"], "outputs": ["1"] });
    for (code, narrow) in [("import numpy", 1.0), ("print(1)", 0.0)] {
        let score = grade(streams.clone(), code).unwrap();
        assert_eq!(metric(&score, "narrow_integers"), narrow, "{code}");
        assert_eq!(metric(&score, "passed"), 1.0, "{code}");
    }
}
