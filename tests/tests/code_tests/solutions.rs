//! Correct code passes in every form of row, and values that are equal in Python are equal here.

use serde_json::{Value, json};

use crate::bench::{Bench, metric, term};

#[tokio::test]
async fn rows_of_every_data_set_are_graded() {
    let bench = Bench::new("");
    let humaneval = json!({
        "task_id": "X/0", "entry_point": "floor_of",
        "prompt": "import math\nfrom typing import List\n\ndef floor_of(x: float) -> List[int]:\n    \"\"\"Floor.\"\"\"\n",
        "test": "METADATA = {'author': 'x'}\n\ndef check(candidate):\n    assert candidate(1.5) == [1]\n    assert candidate(-1.5) == [-2], 'no'\n",
    });
    let calls =
        json!({ "fn_name": "add", "inputs": ["1\n2", "[1]\n[2]"], "outputs": ["3", "[1, 2]"] });
    let streams = json!({ "inputs": ["1 2\n", "3 4"], "outputs": ["3", "7\n"] });
    let mbpp = json!({
        "test_setup_code": "root = Node(1)\nroot.left = Node(2)", "test_imports": ["import math"],
        "test_list": ["assert depth(root) == math.floor(2.5)", "assert depth(Node(3)) == 1"],
        "challenge_test_list": [],
    });
    let node = "class Node:\n    def __init__(self, v):\n        self.left = self.right = None\n";
    let depth = format!(
        "{node}def depth(n):\n    return 0 if n is None else 1 + max(depth(n.left), depth(n.right))\n"
    );
    let cases: [(&Value, &str, f64); 13] = [
        (&humaneval, "    return [math.floor(x)]", 1.0),
        (
            &humaneval,
            "def floor_of(x: float) -> List[int]:\n    return [math.floor(x)]",
            1.0,
        ),
        (&humaneval, "    return [int(x)]", 0.5),
        (&calls, "def add(a, b): return a + b", 1.0),
        (
            &calls,
            "class Solution:\n    def add(self, a, b): return a + b",
            1.0,
        ),
        (&calls, "def add(a, b): return 3", 0.5),
        (&streams, "print(sum(map(int, input().split())))", 1.0),
        (
            &streams,
            "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))\nsys.exit()",
            1.0,
        ),
        (
            &streams,
            "a, b = map(int, open(0).read().split())\nprint(a + b, end='')",
            1.0,
        ),
        (&streams, "if __name__ == '__main__':\n    print(3)", 0.5),
        (&streams, "print(3)\nraise SystemExit(1)", 0.0),
        (&mbpp, &depth, 1.0),
        (&mbpp, node, 0.0),
    ];
    for (reference, code, rate) in cases {
        let score = &bench.grade(reference, &[code]).await[0];
        assert_eq!(term(score, "rate"), rate, "{code}\n{score:?}");
    }
}

/// An assertion, the value that `f` returns, and the result of both in one program in Python 3.11.
const JUDGED: &[(&str, &str, bool)] = &[
    ("assert f() == 1", "True", true),
    ("assert f() == 1", "1.0", true),
    ("assert f() == True", "1", true),
    ("assert f() == 1", "'1'", false),
    ("assert f() == 'a'", "b'a'", false),
    ("assert f() == b'a'", "bytearray(b'a')", true),
    ("assert f() == [1, 2]", "(1, 2)", false),
    ("assert f() == [1, 2]", "(x for x in (1, 2))", false),
    ("assert f() == [0, 1]", "range(2)", false),
    ("assert f() == range(0, 4, 2)", "range(0, 3, 2)", true),
    ("assert list(f()) == [0, 1]", "range(2)", true),
    ("assert list(f()) == [0, 1]", "map(int, '01')", true),
    ("assert f() == {1, 2}", "frozenset([2, 1.0])", true),
    ("assert f() == {'a', 'b'}", "{'b': 0, 'a': 1}.keys()", true),
    (
        "assert f() == {'a': 1, 'b': [2]}",
        "{'b': [2.0], 'a': True}",
        true,
    ),
    (
        "assert f() == {'a': 1}",
        "__import__('collections').OrderedDict(a=1)",
        true,
    ),
    (
        "assert f() == {'a': 1}",
        "__import__('collections').defaultdict(int, a=1)",
        true,
    ),
    (
        "assert f() == [1, 2]",
        "__import__('collections').deque([1, 2])",
        false,
    ),
    (
        "from collections import deque\nassert f() == deque([1, 2])",
        "__import__('collections').deque([1, 2])",
        true,
    ),
    (
        "from collections import OrderedDict as O\nassert f() == O(a=1, b=2)",
        "__import__('collections').OrderedDict(b=2, a=1)",
        false,
    ),
    ("assert f() == 10**30", "10.0**30", false),
    ("assert f() == 2**70", "2.0**70", true),
    ("assert f() == 0.3", "0.1 + 0.2", false),
    (
        "assert f() == 0.5",
        "__import__('fractions').Fraction(1, 2)",
        true,
    ),
    ("assert f() == 0", "-0.0", true),
    ("assert f() == float('inf')", "1e999", true),
    ("assert f() == float('nan')", "float('nan')", false),
    ("assert f() != f()", "float('nan')", true),
    ("assert f() == (1+0j)", "1", true),
    ("assert f() is None", "None", true),
    ("assert f() is None", "0", false),
    ("assert f() is True", "1", false),
    ("assert not f()", "[]", true),
    ("assert f()", "[0]", true),
    ("assert f() == '\\ud800'", "chr(0xd800)", true),
    ("assert f() < 2", "'1'", false),
    ("assert sorted(f()) == [1, 2]", "{2, 1}", true),
    ("assert f() in ([1], [2])", "[2]", true),
    ("assert len(f()) == 3", "'abc'", true),
    ("assert f()[1] == 'b'", "'abc'", true),
    ("assert f()['k'] == 1", "{'k': 1}", true),
    (
        "assert f().year == 2020",
        "__import__('datetime').date(2020, 1, 2)",
        true,
    ),
    (
        "from datetime import date\nassert f() == date(2020, 1, 2)",
        "__import__('datetime').date(2020, 1, 2)",
        true,
    ),
    ("assert f() == ...", "...", true),
    // Types that extend plain data and compare like it.
    (
        "assert f() == (1, 2)",
        "__import__('collections').namedtuple('P', 'x y')(1, 2)",
        true,
    ),
    (
        "assert f() == [1, 2]",
        "__import__('collections').namedtuple('P', 'x y')(1, 2)",
        false,
    ),
    (
        "assert f() == 1",
        "__import__('enum').IntEnum('E', 'A').A",
        true,
    ),
    (
        "assert f() == [True, 1, 1.0]",
        "[type('I', (int,), {})(1), 1.0, True]",
        true,
    ),
    (
        "assert f() == {'a': 1}",
        "type('D', (dict,), {'__missing__': lambda s, k: 1})(a=1)",
        true,
    ),
    (
        "assert f() == {'a': 1}",
        "type('D', (dict,), {'__missing__': lambda s, k: 1})(b=1)",
        false,
    ),
    (
        "assert f() == {'a': 1}",
        "__import__('types').MappingProxyType({'a': 1})",
        true,
    ),
    ("assert f() == {('a', 1)}", "{'a': 1}.items()", true),
    // Instances of two classes are never equal.
    (
        "from dataclasses import make_dataclass\nP = make_dataclass('P', ['x'])\nassert f() == P(1)",
        "__import__('dataclasses').make_dataclass('P', ['x'])(1)",
        false,
    ),
    // Iterators are read once.
    ("assert ''.join(f()) == 'ab'", "(x for x in 'ab')", true),
    (
        "assert sorted(f(), reverse=True) == [2, 1]",
        "map(int, '12')",
        true,
    ),
    (
        "assert sorted(f(), reverse=True) == [2, 1]",
        "{0: 1, 1: 2}.values()",
        true,
    ),
    ("assert 3 in f()", "iter([1, 2])", false),
    (
        "from itertools import islice\nassert list(islice(f(), 2)) == [0, 1]",
        "__import__('itertools').count()",
        true,
    ),
    (
        "assert max(f(), default=0) == 3",
        "__import__('itertools').count()",
        false,
    ),
    ("assert f() == 1 or g() == 1", "1", true),
    ("assert f() == 1 or g() == 1", "2", false),
];

#[tokio::test]
async fn what_python_calls_equal_is_equal() {
    let bench = Bench::new("");
    for (tests, value, holds) in JUDGED {
        let code = format!("def f():\n    return {value}\n");
        let score = &bench.grade(&json!([tests]), &[&code]).await[0];
        assert_eq!(
            term(score, "all"),
            f64::from(u8::from(*holds)),
            "{tests} with {value}\n{score:?}"
        );
        assert_eq!(metric(score, "weak"), 0.0, "{tests}");
    }
}

#[tokio::test]
async fn code_is_found_in_the_answer() {
    let bench = Bench::new("config.code = \"last-block\"\n");
    let right = "Thoughts.\n```python\ndef f(x): return 0\n```\nBetter:\n```python\ndef f(x): return x\n```\nDone.";
    let scores = bench
        .grade(
            &json!(["assert f(1) == 1"]),
            &[
                right,
                "def f(x): return x",
                "I do not know.",
                "```python\ndef f(x:\n```",
                "",
            ],
        )
        .await;
    let terms = |name: &str| -> Vec<f64> { scores.iter().map(|score| term(score, name)).collect() };
    assert_eq!(terms("all"), [1.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(terms("extracted"), [1.0, 1.0, 0.0, 1.0, 0.0]);
}

#[tokio::test]
async fn a_bad_row_excludes_and_says_why() {
    let bench = Bench::new("");
    for (reference, said) in [
        (json!({ "answer": 1 }), "the reference has the keys"),
        (json!(["assert f(1) == g(]"]), "does not parse"),
        (
            json!(["assert f(1) == [][0]"]),
            "fails without any candidate: IndexError",
        ),
    ] {
        for graded in bench
            .try_grade(&reference, &["def f(x): return 1", "x"])
            .await
        {
            let excluded = graded.expect_err("no candidate could pass");
            assert!(excluded.reason.contains(said), "{}", excluded.reason);
        }
    }
}
