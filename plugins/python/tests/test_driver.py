"""What the driver answers, beside what programs print."""

import unittest

import driver

COMPLETED, EXITED, RAISED, REJECTED = range(4)
INVALID_ARGUMENTS, NOT_FOUND, _, EXHAUSTED = range(4)


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = driver.Driver()

    @classmethod
    def tearDownClass(cls):
        cls.driver.close()

    def outcome(self, code, **given):
        result, *_ = self.driver.execute(code, **given)
        self.assertEqual(result[0], 0, result)
        return result[1][0]

    def error(self, **given):
        result, out, *_ = self.driver.execute("print('ran')", **given)
        self.assertEqual((result[0], out), (1, ""))
        return result[1]

    def test_a_program_that_ends_completed(self):
        self.assertEqual(self.outcome("x = 1"), [COMPLETED])

    def test_an_exit_has_its_status(self):
        for code, status in (
            ("import sys; sys.exit()", 0),
            ("raise SystemExit(7)", 7),
            ("raise SystemExit(-1)", -1),
            ("raise SystemExit(2**32 + 5)", 5),
            ("raise SystemExit(2**70)", -1),
            ("raise SystemExit('text')", 1),
            ("raise SystemExit(True)", 1),
            ("class E(SystemExit): pass\nraise E(4)", 4),
        ):
            self.assertEqual(self.outcome(code), [EXITED, status], code)

    def test_an_exception_is_described_and_shown(self):
        result, _, err, _ = self.driver.execute("def f():\n    raise KeyError('k')\n\n\nf()\n")
        case, (kind, message, traceback) = result[1][0]
        self.assertEqual((case, kind, message), (RAISED, "KeyError", "'k'"))
        self.assertEqual(traceback, err)
        self.assertEqual(traceback.count("File "), 2, traceback)

    def test_a_failed_import_says_what_is_there(self):
        for code, said in (
            ("import numpy_of_nobody.linalg", "The sandbox has the standard library and the program's own files. Nothing can be installed.\n"),
            ("import sys; sys.modules['_tkinter'] = None; import _tkinter", ""),
            ("import sys; sys.meta_path.clear(); import idlelib", "The sandbox does not have 'idlelib' of the standard library.\n"),
            ("import json.nothing", ""),
            ("import sys; del sys.stdlib_module_names; sys.meta_path.clear(); import idlelib", "The sandbox does not have 'idlelib' of the standard library.\n"),
            ("class ModuleNotFoundError(ModuleNotFoundError): name = property(lambda self: 1 / 0)\nraise ModuleNotFoundError('own')", ""),
            ("raise ModuleNotFoundError('own')", ""),
        ):
            result, _, err, _ = self.driver.execute(code)
            case, (kind, message, traceback) = result[1][0]
            self.assertEqual((case, kind), (RAISED, "ModuleNotFoundError"), code)
            self.assertEqual(traceback, err)
            self.assertEqual(traceback.partition(message + "\n")[2], said, traceback)

    def test_what_does_not_compile_is_rejected_and_nothing_runs(self):
        result, out, err, _ = self.driver.execute("print(1)\nx = = 2\n")
        case, (kind, _, traceback) = result[1][0]
        self.assertEqual((case, kind, out), (REJECTED, "SyntaxError", ""))
        self.assertEqual(traceback, err)
        self.assertTrue(err.startswith('  File "main.py", line 2\n    x = = 2\n'), err)

    def test_a_syntax_error_while_running_is_raised(self):
        self.assertEqual(self.outcome("exec('x = = 2')")[0], RAISED)

    def test_a_null_byte_and_a_deep_source_are_rejected(self):
        for code in ("x = '\0'", "(" * 1000 + ")" * 1000):
            self.assertEqual(self.outcome(code)[0], REJECTED)

    def test_exceptions_that_cannot_be_shown_are_described(self):
        kind, message, traceback = self.outcome("class E(Exception):\n    def __str__(self): 1 / 0\nraise E")[1]
        self.assertEqual((kind, message), ("E", "<exception str() failed>"))
        self.assertIn("E: <exception str() failed>", traceback)

    def test_text_that_is_no_utf_8_is_escaped(self):
        self.assertEqual(self.outcome("raise ValueError('\\ud800')")[1][1], "\\ud800")

    def test_the_first_argument_names_the_program(self):
        result, _, err, _ = self.driver.execute("1 / 0", arguments=["dir/tool.py", "x"])
        self.assertIn('File "dir/tool.py", line 1', err)

    def test_a_program_from_standard_input_is_called_so(self):
        code = "import sys\nprint(sys.argv, __file__)\n1 / 0\n"
        result, out, err, _ = self.driver.execute(code, arguments=["-", "x"])
        self.assertEqual(out, "['-', 'x'] <stdin>\n")
        self.assertIn('File "<stdin>", line 3, in <module>', err)
        _, _, err, _ = self.driver.execute("x = = 2", arguments=["-"])
        self.assertTrue(err.startswith('  File "<stdin>", line 1\n'), err)

    def test_what_the_library_keeps_of_a_program_ends_all_the_same(self):
        code = "import sys\nclass D:\n    def __del__(self): print('end')\nd = D()\nsys.excepthook = lambda *a: None\n"
        result, out, *_ = self.driver.execute(code)
        self.assertEqual((result[1][0], out), ([COMPLETED], "end\n"))

    def test_what_a_program_patches_does_not_reach_the_driver(self):
        code = """\
import atexit, builtins, gc, linecache, marshal, os, sys, traceback, types
def broken(*arguments, **keywords):
    raise RuntimeError("patched")
class Broken:
    __getattr__ = __call__ = broken
for module in (os, gc, atexit, linecache, marshal, traceback, types):
    for name in list(vars(module)):
        if not name.startswith("__"):
            setattr(module, name, Broken())
sys.settrace(broken)
sys.setprofile(None)
sys.setrecursionlimit(60)
sys.excepthook = None
for name in ("compile", "exec", "eval", "print", "open", "len", "list", "isinstance", "type", "str", "getattr", "repr"):
    setattr(builtins, name, broken)
raise ValueError("the end")
"""
        result, *_ = self.driver.execute(code, fetch=["missing"])
        self.assertIsNotNone(result)
        self.assertEqual(result[1][0][0], RAISED)

    def test_files_come_in_and_go_out(self):
        code = "open('out/b', 'wb').write(open('out/a', 'rb').read() * 2)"
        result, *_ = self.driver.execute(code, files={"out/a": b"\x00\xff"}, fetch=["out/b", "/out/./a", "out", "none"])
        files = {path: driver.data(content) for path, content in result[1][1]}
        self.assertEqual(files, {"out/b": b"\x00\xff" * 2, "/out/./a": b"\x00\xff"})

    def test_the_folder_of_an_absolute_path_to_fetch_is_there(self):
        # The tests' root is the folder in which the program starts.
        code = "import os\nopen('mnt/data/x', 'w').write('hi')\nos.mkdir('own')"
        result, *_ = self.driver.execute(code, fetch=["/mnt/data/x", "own/y", "/given/z"], files={"given": b""})
        self.assertEqual(result[1][0], [COMPLETED])
        self.assertEqual({path: driver.data(content) for path, content in result[1][1]}, {"/mnt/data/x": b"hi"})

    def test_a_path_that_cannot_be_is_an_invalid_argument(self):
        for path in ("../x", "a/../../x", "a/..", "x\0", "", "/", "a/", "a/."):
            for given in ({"files": {path: b""}}, {"fetch": [path]}):
                case, message = self.error(**given)
                self.assertEqual(case, INVALID_ARGUMENTS, given)
                self.assertIn("path", message)

    def test_a_file_in_the_way_of_a_folder_is_an_invalid_argument(self):
        case, message = self.error(files={"a": b"", "a/b": b""})
        self.assertEqual(case, INVALID_ARGUMENTS)
        self.assertIn("'a/b'", message)

    def test_files_beyond_their_limit_are_exhausted(self):
        limits = [0, 0, 0, 5]
        self.assertEqual(self.error(files={"a": b"123", "b": b"456"}, limits=limits), [EXHAUSTED, "the files have more than 5 bytes"])
        self.assertEqual(self.outcome("pass", files={"a": b"123", "b": b"45"}, limits=limits), [COMPLETED])

    def test_another_language_is_not_found(self):
        self.assertEqual(self.error(language="cobol"), [NOT_FOUND, "there is no language 'cobol' here, only 'python'"])

    def test_a_module_is_imported_by_its_name_before_any_other(self):
        result, out, err, _ = self.driver.execute(
            "import sys\nsys.path.insert(0, 'folder')\nimport helper, pkg.deep\nprint(helper.__name__, pkg.deep.x, helper.f.__module__)\nhelper.f()",
            modules={"helper": "def f():\n    raise ValueError('m')\n", "pkg.deep": "x = 5\n"},
            files={"folder/helper.py": b"1 / 0"},
        )
        self.assertEqual(out, "helper 5 helper\n", err)
        self.assertIn("  File \"helper.py\", line 2, in f\n    raise ValueError('m')\n", err)

    def test_a_module_with_a_standard_name_takes_its_place(self):
        result, out, *_ = self.driver.execute("import json\nprint(json.x)", modules={"json": "x = 'mine'\n"})
        self.assertEqual(out, "mine\n")

    def test_a_module_that_does_not_compile_says_why(self):
        for name, source, kind in (("m", "x = (", "SyntaxError"), ("no-name", "", "SyntaxError")):
            (case, exception), *_ = self.driver.ask("compile", "python", name, source)
            self.assertEqual((case, exception[0]), (1, kind))
        self.assertIn("'no-name' is no name", exception[1])

    def test_compiling_runs_nothing(self):
        (case, _), out, *_ = self.driver.ask("compile", "python", "m", "print('ran')")
        self.assertEqual((case, out), (0, ""))

    def test_random_begins_with_the_seed_whoever_imports_it(self):
        code = "import statistics\nimport random\nprint(random.random())"
        for seed, first in ((0, "0.8444218515250481"), (7, "0.32383276483316237"), (2**64 - 1, None)):
            outs = [self.driver.execute(code, seed=seed)[1].strip() for _ in range(2)]
            self.assertEqual(outs[0], outs[1])
            self.assertIn(first, (None, outs[0]))
        result, out, *_ = self.driver.execute("import m\nimport random\nprint(m.x != random.random())", modules={"m": "import random\nx = random.random()"})
        self.assertEqual(out, "True\n")

    def test_output_leaves_at_every_newline(self):
        result, out, err, status = self.driver.execute(
            "import os, signal, sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('pending', end='')\nos.kill(os.getpid(), signal.SIGKILL)"
        )
        self.assertEqual((result, out, err, status), (None, "one\n", "two\n", -9))

    def test_an_exit_at_once_keeps_what_was_printed(self):
        result, out, _, status = self.driver.execute("import os\nprint('kept', end='')\nos._exit(300)")
        self.assertEqual((result, out, status), (None, "kept", 300 & 0xFF))

    def test_a_closed_stream_ends_nothing(self):
        self.assertEqual(self.outcome("import sys\nsys.stdout.close()\nsys.stderr.close()"), [COMPLETED])
        self.assertEqual(self.outcome("import sys\nsys.stdout = sys.stderr = None\n1 / 0")[0], RAISED)
        self.assertEqual(self.outcome("import sys\ndel sys.stdout, sys.stderr, sys.excepthook\n1 / 0")[0], RAISED)

    def test_a_hook_that_fails_is_shown_with_the_original(self):
        _, _, err, _ = self.driver.execute("import sys\ndef hook(*a):\n    1 / 0\nsys.excepthook = hook\nraise ValueError('v')")
        self.assertRegex(err, "(?s)Error in sys.excepthook:.*ZeroDivisionError.*Original exception was:.*ValueError: v")

    def test_sessions_take_files_and_refuse_what_cannot_be(self):
        result, *_ = self.driver.session([], files={"../x": b""})
        self.assertEqual(result[:1] + result[1][:1], [1, INVALID_ARGUMENTS])


if __name__ == "__main__":
    unittest.main()
