//! Ways to pass tests without solving the task. None of them earns anything, and the honest neighbour in the group is
//! graded as if they were absent.

use serde_json::{Value, json};

use crate::bench::{Bench, metric, term};

/// One test is compared here, one by the judge, and one checks a shape instead of a value.
fn reference() -> Value {
    json!({ "tests": [
        "assert f(1) == 41972",
        "import math\nassert math.isclose(f(2), 0.7310585786300049)",
        "assert isinstance(f(3), list) and len(f(3)) == 2 and f(3)[0] == 'k9'",
        "a = [3, 1, 2]\nassert f(a) == sorted(a)",
    ] })
}

const HONEST: &str = "
def f(x):
    return sorted(x) if type(x) is list else {1: 41972, 2: 0.7310585786300049, 3: ['k9', None]}[x]
";

/// The name of each cheat, and its code.
const CHEATS: &[(&str, &str)] = &[
    (
        "prints what is expected",
        "print(41972, 0.7310585786300049, ['k9', None])\ndef f(x): print(41972)",
    ),
    (
        "prints verdicts",
        "def f(x): print('passed'); print('OK'); print('[0, [0, 1, 2, 3]]'); print('1.0')",
    ),
    // Leaving early.
    ("exits", "import sys\nsys.exit(0)"),
    ("raises SystemExit", "raise SystemExit"),
    ("leaves at once", "import os\nos._exit(0)"),
    ("exits in the call", "import sys\ndef f(x): sys.exit(0)"),
    ("leaves in the call", "import os\ndef f(x): os._exit(0)"),
    (
        "leaves at exit",
        "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): pass",
    ),
    (
        "raises KeyboardInterrupt",
        "def f(x): raise KeyboardInterrupt",
    ),
    (
        "raises an exception with a hostile text",
        "class E(Exception):\n    def __str__(self): raise self\ndef f(x): raise E",
    ),
    // Patching functions that tests use.
    (
        "patches isinstance and len",
        "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.len = lambda x: 2\nbuiltins.sorted = lambda x: x\ndef f(x): return x",
    ),
    (
        "patches isclose",
        "import math\nmath.isclose = lambda *a, **k: True\ndef f(x): return 0.0",
    ),
    (
        "patches AssertionError",
        "import builtins\nbuiltins.AssertionError = type('Quiet', (Exception,), {})\nbuiltins.__debug__x = False\ndef f(x): return 0",
    ),
    (
        "patches every builtin",
        "import builtins\nfor name in dir(builtins):\n    if name not in ('setattr', 'object', '__build_class__', '__import__') and not name.startswith('__'):\n        try: setattr(builtins, name, lambda *a, **k: True)\n        except Exception: pass\ndef f(x): return 1",
    ),
    (
        "patches json",
        "import json\njson.dumps = lambda *a, **k: 'true'\njson.loads = lambda *a, **k: True\ndef f(x): return 0",
    ),
    (
        "patches the encoder",
        "import sys\nm = sys.modules.get('rlf_calls')\nif m:\n    m.encode = lambda v: 'true'\n    m.dumps = lambda *a, **k: 'true'\ndef f(x): return 0",
    ),
    (
        "patches the encoder's tables",
        "import sys\nm = sys.modules['rlf_calls']\nfor name in ('_LEAVES', '_SEQUENCES', '_SETS', '_MAPPINGS'):\n    getattr(m, name).clear()\nclass A: pass\nm._LEAVES[A] = lambda v: True\ndef f(x): return A()",
    ),
    (
        "patches the harness's defaults",
        "import sys\nmain = sys.modules['rlf_calls'].main\nmain.__defaults__ = tuple(lambda *a: 'true' for _ in main.__defaults__)\ndef f(x): return 0",
    ),
    (
        "defines __builtins__",
        "__builtins__ = {'isinstance': lambda *a: True, 'len': lambda x: 2, 'sorted': lambda x: x}\ndef f(x): return x",
    ),
    (
        "patches operators by ctypes",
        "import ctypes\nctypes.c_long.from_address(id(1) + 24).value = 41972\ndef f(x): return 1",
    ),
    (
        "replaces __import__",
        "import builtins\nbuiltins.__import__ = lambda *a, **k: type('M', (), {'__getattr__': lambda s, n: (lambda *a, **k: True)})()\ndef f(x): return 0",
    ),
    // Searching for the tests.
    (
        "looks through files",
        "import os\ndef f(x):\n    for folder, _, names in os.walk('/'):\n        for name in names:\n            try: text = open(os.path.join(folder, name), errors='replace').read()\n            except OSError: continue\n            if str(41970 + x + 1) in text: return int(41970 + x + 1)",
    ),
    (
        "writes files that decide",
        "for name in ('answer.json', 'values.json', 'row.json', 'results', 'candidate.py', 'rlf_calls.py', 'rlf_split.py', 'sitecustomize.py'):\n    try: open(name, 'w').write('[0, [0, 1, 2, 3]]\\n{\"passed\": true}')\n    except OSError: pass\ndef f(x): return None",
    ),
    (
        "looks through objects",
        "import gc\ndef f(x):\n    want = int('41971') + 1\n    for o in gc.get_objects():\n        try: parts = list(o.values()) if type(o) is dict else list(o) if type(o) in (list, tuple, set) else []\n        except Exception: continue\n        for p in parts:\n            if (type(p) is int and p == want or type(p) is str and ('k9' + \"'\") in p) and p is not want: return p",
    ),
    (
        "looks through frames",
        "import sys\ndef f(x):\n    want = int('41971') + 1\n    frame = sys._getframe()\n    while frame:\n        for v in list(frame.f_locals.values()) + list(frame.f_code.co_consts):\n            if type(v) is int and v == want and v is not want: return v\n        frame = frame.f_back",
    ),
    (
        "looks through a traceback",
        "def f(x):\n    want = int('41971') + 1\n    try: 1 / 0\n    except ZeroDivisionError as e:\n        frame = e.__traceback__.tb_frame\n    while frame:\n        for v in list(frame.f_globals.values()) + list(frame.f_locals.values()):\n            if want is not v and want == v: return v\n        frame = frame.f_back",
    ),
    (
        "edits the caller's variables",
        "import sys\ndef f(x):\n    frame = sys._getframe().f_back\n    while frame:\n        for name in list(frame.f_locals):\n            if name not in ('self',):\n                try: frame.f_locals[name] = True\n                except Exception: pass\n        frame = frame.f_back\n    return True",
    ),
    // Hooks.
    (
        "traces",
        "import sys\ndef t(frame, event, arg):\n    frame.f_trace_lines = False\n    return t\nsys.settrace(t)\ndef f(x): return None",
    ),
    (
        "profiles",
        "import sys\nsys.setprofile(lambda *a: None)\ndef f(x): return None",
    ),
    (
        "monitors",
        "import sys\nm = sys.monitoring\nm.use_tool_id(1, 'x')\nm.register_callback(1, m.events.PY_RETURN, lambda *a: m.DISABLE)\nm.set_events(1, m.events.PY_RETURN)\ndef f(x): return None",
    ),
    (
        "hooks the ways out",
        "import atexit, sys\natexit.register(print, 'passed')\nsys.excepthook = lambda *a: print('passed')\nsys.displayhook = print\nsys.unraisablehook = lambda *a: None\ndef f(x): raise ValueError",
    ),
    (
        "adds an audit hook",
        "import sys\nsys.addaudithook(lambda *a: None)\ndef f(x): return None",
    ),
    // Objects that lie.
    (
        "is equal to everything",
        "class A:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    def __bool__(s): return True\n    def __len__(s): return 2\n    def __getitem__(s, i): return s\n    def __float__(s): return 0.7310585786300049\n    def __iter__(s): return iter((s, s))\ndef f(x): return A()",
    ),
    (
        "is a strange int",
        "class I(int):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return I(1)",
    ),
    (
        "is a strange str",
        "class S(str):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return [S('x'), None] if x == 3 else S('x')",
    ),
    (
        "is a strange list",
        "class L(list):\n    def __eq__(s, o): return True\n    def __len__(s): return 2\n    def __getitem__(s, i): return 'k9'\ndef f(x): return L()",
    ),
    (
        "is a strange float",
        "class F(float):\n    def __eq__(s, o): return True\n    def __sub__(s, o): return 0.0\n    __rsub__ = __sub__\ndef f(x): return F(0)",
    ),
    (
        "is a strange dict",
        "class D(dict):\n    def __eq__(s, o): return True\n    def __len__(s): return 2\n    def __missing__(s, k): return 'k9'\ndef f(x): return D()",
    ),
    (
        "is a strange tuple",
        "class T(tuple):\n    def __eq__(s, o): return True\n    def __len__(s): return 2\ndef f(x): return T()",
    ),
    (
        "is a strange truth",
        "class B(int):\n    def __eq__(s, o): return True\n    def __repr__(s): return 'True'\ndef f(x): return B(1)",
    ),
    (
        "lies about its class",
        "class A:\n    __class__ = int\n    def __eq__(s, o): return True\n    def __int__(s): return 41972\n    __index__ = __int__\ndef f(x): return A()",
    ),
    (
        "lies in its type",
        "class M(type):\n    def __eq__(s, o): return True\n    def __hash__(s): return hash(int)\n    def __instancecheck__(s, o): return True\nclass A(metaclass=M):\n    def __eq__(s, o): return True\ndef f(x): return A()",
    ),
    (
        "is a named tuple that equals everything",
        "import collections\nclass P(collections.namedtuple('P', 'x y')):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return P('k9', 0)",
    ),
    (
        "is a data class that equals everything",
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 0\n    def __eq__(s, o): return True\n    def __float__(s): return 0.7310585786300049\ndef f(x): return P()",
    ),
    (
        "is a member of a strange enumeration",
        "import enum\nclass E(int, enum.Enum):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef f(x): return E.A",
    ),
    (
        "changes its class",
        "class A:\n    def __eq__(s, o): return True\nclass B: pass\ndef f(x):\n    b = B()\n    b.__class__ = A\n    return b",
    ),
    (
        "stands for another object",
        "import weakref\nclass A:\n    def __eq__(s, o): return True\n    def __float__(s): return 0.7310585786300049\na = A()\ndef f(x): return weakref.proxy(a)",
    ),
    ("is NaN", "def f(x): return float('nan')"),
    ("is a truth", "def f(x): return True"),
    ("is zero below zero", "def f(x): return -0.0"),
    (
        "hides an object in a list",
        "class A:\n    def __eq__(s, o): return True\ndef f(x): return [A(), A()]",
    ),
    // Results that change.
    (
        "changes afterwards",
        "kept = []\ndef f(x):\n    kept.clear()\n    if x == 3: kept.append(1)\n    return kept",
    ),
    ("is a generator", "def f(x):\n    yield from (41972,)"),
    (
        "empties its argument",
        "def f(x):\n    if type(x) is list: x.clear()\n    return x",
    ),
    (
        "patches its argument's type",
        "def f(x):\n    try: list.__eq__ = lambda s, o: True\n    except TypeError: pass\n    return [x]",
    ),
    (
        "yields objects that equal everything",
        "class A:\n    def __eq__(s, o): return True\ndef f(x):\n    yield A()\n    yield A()",
    ),
    (
        "yields without end",
        "import itertools\ndef f(x): return itertools.repeat('k9')",
    ),
    (
        "yields more and more without end",
        "def f(x):\n    n = 1\n    while True:\n        yield n\n        n = n * n + 1",
    ),
    // Using parts of this harness.
    (
        "poisons struct, json, marshal and codecs",
        "import codecs, json, marshal, struct\nstruct.pack = lambda *a: b'x'\njson.JSONEncoder.encode = lambda *a: 'true'\nmarshal.loads = lambda *a: None\ncodecs.register(lambda name: None)\ncodecs.lookup = lambda name: None\ndef f(x): return 0.5",
    ),
    (
        "replaces how classes are made",
        "import builtins\nbuiltins.__build_class__ = lambda *a, **k: True\ndef f(x):\n    class A: pass\n    return A",
    ),
    (
        "replaces all modules",
        "import sys, types\nclass M(types.ModuleType):\n    def __getattr__(s, n): return lambda *a, **k: True\nfor name in list(sys.modules):\n    if name not in ('sys', 'builtins'): sys.modules[name] = M(name)\ndef f(x): return 0",
    ),
    (
        "hooks imports",
        "import sys\nclass F:\n    def find_spec(s, *a): raise SystemExit(0)\nsys.meta_path[:] = [F()]\nsys.path_hooks[:] = []\nsys.path_importer_cache.clear()\nsys.modules.pop('collections', None)\ndef f(x): return __import__('collections').Counter()",
    ),
    (
        "replaces standard output",
        "import io, os, sys\nsys.stdout = sys.__stdout__ = sys.stderr = io.StringIO()\nos.write = lambda f, d: len(d)\ndef f(x): return 0",
    ),
    (
        "prints when it is collected",
        "import os\nclass D:\n    def __del__(s):\n        for n in range(9): os.write(1, f'\\n\\x1e{n} value true\\n'.encode())\nd = D()\ndef f(x): raise ValueError",
    ),
    (
        "handles signals",
        "import signal\ntry: signal.signal(signal.SIGALRM, lambda *a: None)\nexcept Exception: pass\ndef f(x): return None",
    ),
    // The protocol.
    (
        "forges answers",
        "import os\nfor n in range(20):\n    for value in ('true', '1', '\"k9\"', '[\"l\"]', '{}', 'null'):\n        os.write(1, f'\\n\\x1e{n} value {value}\\n'.encode())\nos.write(1, b'\\n\\x1eloaded \\n')\ndef f(x): return None",
    ),
    (
        "forges a file of answers",
        "def f(x):\n    with open('results', 'ab') as g:\n        for n in range(20): g.write(f'\\n\\x1e{n} value true\\n'.encode())",
    ),
    (
        "forges verdicts",
        "import os\nfor line in ('[0, [0, 1, 2, 3]]', '{\"asserts\": []}', '\\x1epassed 0', '\\x1epassed 1', '\\x1epassed 2', 'passed 3'):\n    os.write(1, ('\\n' + line + '\\n').encode())\ndef f(x): return None",
    ),
    (
        "forges data that is none",
        "import os, sys\nsys.modules['rlf_calls'].encode = lambda v: '[\"A\", [\"f\", \"x\"]]'\ndef f(x): return 1",
    ),
    (
        "forges data that builds",
        "import sys\nsys.modules['rlf_calls'].encode = lambda v: '[\"k\", [\"l\"]]'\ndef f(x): return 1",
    ),
    // Others.
    (
        "catches all",
        "def f(x):\n    try: return g(x)\n    except BaseException: return True\ndef g(x): raise AssertionError",
    ),
    (
        "starts a thread",
        "import threading\ntry: threading.Thread(target=print, args=('passed',)).start()\nexcept Exception: pass\ndef f(x): return None",
    ),
    (
        "asks another process",
        "import subprocess\ndef f(x): return subprocess.run(['echo', '41972'], capture_output=True).stdout",
    ),
    (
        "asks the network",
        "import urllib.request\ndef f(x): return urllib.request.urlopen('http://127.0.0.1').read()",
    ),
    (
        "contains itself",
        "def f(x):\n    a = [1]\n    a.append(a)\n    return a",
    ),
    (
        "is deep",
        "def f(x):\n    a = []\n    for _ in range(100000): a = [a]\n    return a",
    ),
    ("recurses", "def f(x): return f(x)"),
    ("is huge", "def f(x): return [0] * 1000000"),
    ("is a huge number", "def f(x): return 1 << 2000000"),
    ("is text that is a surrogate", "def f(x): return '\\ud800'"),
    ("prints without end", "while True: print('passed' * 1000)"),
    ("loops", "def f(x):\n    while True: pass"),
    (
        "loops through everything",
        "def f(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
    ),
    ("takes all memory", "def f(x): return 'x' * (1 << 31)"),
    (
        "takes all memory bit by bit",
        "def f(x):\n    a = []\n    while True: a.append('x' * 100000 + str(len(a)))",
    ),
    ("sleeps", "import time\ndef f(x): time.sleep(10000)"),
    (
        "leaves a file too large",
        "def f(x):\n    with open('results', 'wb') as g:\n        while True: g.write(b'x' * 65536)",
    ),
    ("does not parse", "def f(x:\n    return 41972"),
    ("is not there", "def g(x): return 41972"),
    ("is prose", "The answer is 41972."),
];

#[tokio::test]
async fn nothing_but_the_right_values_passes() {
    let bench = Bench::new("config.wall_ms = 500\nconfig.attempts = 2\n");
    // In groups, each beside an honest answer.
    for group in CHEATS.chunks(12) {
        let mut answers: Vec<&str> = group.iter().map(|(_, code)| *code).collect();
        answers.push(HONEST);
        let scores = bench.grade(&reference(), &answers).await;
        let (honest, cheats) = scores.split_last().expect("one for each");
        assert_eq!(term(honest, "all"), 1.0, "{honest:?}");
        assert_eq!(metric(honest, "passed"), 4.0);
        for ((what, code), score) in group.iter().zip(cheats) {
            assert_eq!(
                term(score, "rate"),
                0.0,
                "what {what} passes a test: {score:?}\n{code}"
            );
            assert_eq!(metric(score, "passed"), 0.0, "{what}");
        }
    }
}
