"""How programs end: under the driver as under the machine's own python3, whose `Py_FinalizeEx` the driver follows."""

import re
import subprocess
import sys
import tempfile
import unittest

import driver

FAST = """\
import os, sys
from io import BytesIO, IOBase

class FastIO(IOBase):
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.write = self.buffer.write

    def flush(self):
        os.write(self._fd, self.buffer.getvalue())
        self.buffer.truncate(0), self.buffer.seek(0)

class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.write = lambda s: self.buffer.write(s.encode("ascii"))

sys.stdout = IOWrapper(sys.stdout)
"""
"""The template of competition programs."""

TOLD = """\
import sys

class Told:
    def __init__(self, name):
        self.name, self.real, self.count = name, getattr(sys, "__" + name + "__"), 0

    def write(self, text):
        self.real.write(text)

    def flush(self):
        self.count += 1
        say(f"{self.name} is flushed, {self.count}")
        self.real.flush()

def say(text):
    sys.__stdout__.write(text + "\\n")

"""
"""Streams that tell when they are flushed, by a global function."""

FAILING = """\
import sys

class Failing:
    def __init__(self, real):
        self.real = real

    def write(self, text):
        self.real.write(text)

    def flush(self):
        raise ValueError("not flushed")

    def __repr__(self):
        return "<failing>"

"""
BOTH = TOLD + "sys.stdout, sys.stderr = Told('stdout'), Told('stderr')\n"

PROGRAMS = {
    "fast output": FAST + "print('out')\n",
    "fast output, exit": FAST + "print('out')\nsys.exit(3)\n",
    "fast output, exit with a text": FAST + "print('out')\nsys.exit('text')\n",
    "fast output, exception": FAST + "print('out')\n1 / 0\n",
    "fast output on standard error": FAST.replace("stdout", "stderr") + "print('err', file=sys.stderr)\n",
    "fast output on standard error, exception": FAST.replace("stdout", "stderr") + "print('err', file=sys.stderr)\n1 / 0\n",
    "fast output from an exit function": FAST + "import atexit\natexit.register(print, 'last')\nprint('out')\n",
    "flushes": BOTH,
    "flushes, exit": BOTH + "sys.exit(2)\n",
    "flushes, exit with a text": BOTH + "sys.exit('text')\n",
    "flushes, exception": BOTH + "1 / 0\n",
    "flushes and exit functions": BOTH + "import atexit\natexit.register(say, 'exit function')\n",
    "flushes, what main named ends afterwards": BOTH + "class D:\n    def __del__(self):\n        say('gone')\nd = D()\n",
    "flush fails": FAILING + "sys.stdout = Failing(sys.stdout)\nprint('out')\n",
    "flush fails, exit": FAILING + "sys.stdout = Failing(sys.stdout)\nprint('out')\nsys.exit(3)\n",
    "flush fails, exception": FAILING + "sys.stdout = Failing(sys.stdout)\nprint('out')\n1 / 0\n",
    "flush of standard error fails": FAILING + "sys.stderr = Failing(sys.stderr)\nprint('err', file=sys.stderr)\n",
    "flush of standard error fails, exception": FAILING + "sys.stderr = Failing(sys.stderr)\n1 / 0\n",
    "both flushes fail": FAILING + "sys.stdout, sys.stderr = Failing(sys.stdout), Failing(sys.stderr)\nprint(1)\n",
    "flush fails and a hook sees it": FAILING
    + "sys.unraisablehook = lambda seen: print('seen', seen.exc_value, file=sys.__stderr__)\nsys.stdout = Failing(sys.stdout)\n",
    "flush exits": "import sys\nclass S:\n    write = print\n    def flush(self):\n        sys.exit(4)\nsys.stdout = S()\nS.__repr__ = lambda s: 'S'\n",
    "detached": "import sys\nprint('kept', end='')\nkept = sys.stdout.detach()\n",
    "detached standard error": "import sys\nkept = sys.stderr.detach()\n",
    "closed": "import sys\nprint('out')\nsys.stdout.close()\n",
    "no stream": "import sys\nsys.stdout = None\n",
    "neither stream": "import sys\nsys.stdout = sys.stderr = None\n",
    "deleted": "import sys\ndel sys.stdout\n",
    "a number as stream": "import sys\nsys.stdout = 5\n",
    "a stream without `closed`": "import sys\nclass S:\n    def write(self, text): sys.__stdout__.write(text)\n    def flush(self): say('flushed')\ndef say(text): sys.__stdout__.write(text)\nsys.stdout = S()\n",
    "a stream that says it is closed": "import sys\nclass S:\n    closed = True\n    def flush(self): sys.__stdout__.write('flushed')\nsys.stdout = S()\n",
    "text without a newline": "print('a', end='')\n",
    "text without a newline, through a wrapper": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint('a', end='')\n",
    "a wrapper of the descriptor": "import io, sys\nout = io.TextIOWrapper(io.FileIO(1, 'w', closefd=False))\nout.write('a')\n",
    "`__del__` prints to the real stream": "import io, sys\nclass D:\n    def __del__(self):\n        print('gone')\nd = D()\nsys.stdout = io.StringIO()\n",
    "`__del__` of the stream": "import sys\nclass S:\n    def flush(self): pass\n    def __del__(self):\n        sys.__stdout__.write('stream gone')\nsys.stdout = S()\n",
    "`__del__` prints to standard error": "import io, sys\nclass D:\n    def __del__(self):\n        print('gone', file=sys.stderr)\nd = D()\nsys.stderr = io.StringIO()\n",
    "`__del__` raises": "class D:\n    def __del__(self):\n        1 / 0\n    def __repr__(self): return 'D'\nd = D()\n",
    "`__del__` of a cycle": "class D:\n    def __del__(self):\n        print('gone')\nd = D()\nd.d = d\n",
    "weak references": "import weakref\nclass A: pass\na = A()\nr = weakref.ref(a, lambda _: print('gone'))\n",
    "finalizers": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\n",
    "a finalizer, exit functions and `__del__`": "import atexit, weakref\nclass A:\n    def __del__(self):\n        print('gone')\na = A()\natexit.register(print, 'first')\nweakref.finalize(a, print, 'finalized')\natexit.register(print, 'last')\n",
    "an exit function that fails": "import atexit\ndef f():\n    raise ValueError('f')\natexit.register(f)\natexit.register(print, 'before')\n",
    "an exit function that exits": "import atexit, sys\ndef f():\n    sys.exit(5)\natexit.register(f)\natexit.register(print, 'before')\n",
    "an exit function that registers": "import atexit\natexit.register(lambda: atexit.register(print, 'inner'))\n",
    "threads' exit functions": "import atexit, threading\natexit.register(print, 'exit function')\nthreading._register_atexit(print, 'of threads')\n",
    "a threads' exit function that fails": "import threading\ndef f():\n    raise ValueError('f')\nthreading._register_atexit(f)\n",
    "an executor that nobody shut down": "import atexit\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor()\natexit.register(lambda: print(pool._shutdown))\n",
    "generators are closed": "def g():\n    try:\n        yield\n    finally:\n        print('closed')\nx = g()\nnext(x)\n",
    "logging's buffers": "import logging.handlers, sys\nout = logging.StreamHandler(sys.stdout)\nh = logging.handlers.MemoryHandler(10, target=out)\nlogging.getLogger().addHandler(h)\nlogging.warning('kept')\n",
    "a hook": "import sys\nsys.excepthook = lambda *seen: print('hook', seen[1])\n1 / 0\n",
    "a hook that exits": "import sys\nsys.excepthook = lambda *seen: sys.exit(5)\n1 / 0\n",
    "a hook that fails": "import sys\ndef hook(*seen):\n    raise ValueError('hook')\nsys.excepthook = hook\n1 / 0\n",
    "a hook that is none": "import sys\nsys.excepthook = None\n1 / 0\n",
    "no hook": "import sys\ndel sys.excepthook\n1 / 0\n",
    "an exit in an exit": "import sys\ntry:\n    sys.exit(1)\nfinally:\n    sys.exit(2)\n",
    "an exit with a list": "raise SystemExit([1])\n",
    "an exit with an object that cannot be shown": "class A:\n    def __str__(self):\n        1 / 0\nraise SystemExit(A())\n",
}

if sys.version_info < (3, 13):
    # It also flushes standard error after a traceback.
    del PROGRAMS["flushes, exception"]

VARIES = re.compile("0x[0-9a-f]{8,}|(?m:^    .*\n)")
"""Addresses; and lines of source, which what nobody can catch is shown without, as the program is no file."""


class Ends(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.driver = driver.Driver()

    @classmethod
    def tearDownClass(cls):
        cls.driver.close()

    def test_programs_end_as_under_python3(self):
        for name, code in PROGRAMS.items():
            with self.subTest(name):
                self.assertEqual(self.under_driver(code), under_python3(code))

    def under_driver(self, code):
        result, out, err, status = self.driver.execute(code)
        if result is not None:
            self.assertEqual(result[0], 0, result)
            outcome, *rest = result[1][0]
            status = rest[0] if outcome == 1 else int(outcome > 1)
        return status, out, VARIES.sub("", err)


def under_python3(code):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/main.py", "w", encoding="utf-8") as file:
            file.write(code)
        ran = subprocess.run(
            [sys.executable, "main.py"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={"LANG": "C.UTF-8"}
        )
    # The driver shows a program's path as it was given.
    return ran.returncode, ran.stdout, VARIES.sub("", ran.stderr).replace(f"{folder}/", "")


if __name__ == "__main__":
    unittest.main()
