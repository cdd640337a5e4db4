"""What an environment's files find while `init` loads them: nothing that a snapshot could not hold is opened."""

import json
import unittest

import driver

QUIET = """\
import glob, io, linecache, logging, os, pathlib, shutil, sys, tempfile, traceback, warnings
from os import listdir, stat
from mcp.server.fastmcp import FastMCP

found = {}
print("printed")
print("err", file=sys.stderr)
logging.warning("logged")
warnings.warn("warned")
os.write(1, b"written\\n")
found["terminal"] = sys.stdout.isatty() or os.isatty(2)
try:
    import nothing_by_this_name
except ImportError:
    traceback.print_exc()
try:
    input()
except EOFError:
    found["input"] = "at its end"
found["exists"] = [pathlib.Path(name).exists() for name in ("/", "/tmp", "tmp", "/usr", "data/x.json")]
found["listed"] = [os.listdir(), os.listdir("/tmp"), listdir("/"), [entry.name for entry in os.scandir("/")]]
found["folders"] = [path.is_dir() for path in pathlib.Path("/").iterdir()], list(os.walk("/")), glob.glob("/*")
found["temporary"] = tempfile.gettempdir()
found["real"] = os.path.realpath("/a/../b"), os.access("/tmp", os.W_OK), os.access("/etc/passwd", os.F_OK)
for name, ask in {
    "open": lambda: open("/etc/passwd"),
    "pathlib": lambda: pathlib.Path("/etc/passwd").read_text(),
    "os.open": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "stat": lambda: stat("/etc"),
    "listdir": lambda: os.listdir("/etc"),
    "remove": lambda: os.remove("/gone"),
    "rename": lambda: os.rename("/gone", "/new"),
    "made below nothing": lambda: os.mkdir("/gone/new"),
    "written below nothing": lambda: open("/gone/new", "w"),
    "chdir": lambda: os.chdir("/usr"),
}.items():
    try:
        ask()
    except FileNotFoundError as error:
        found[name] = os.fspath(error.filename)
os.makedirs("/tmp", exist_ok=True)
shutil.rmtree("/gone", ignore_errors=True)
linecache.checkcache()
mcp = FastMCP(name="Quiet")

@mcp.tool()
def tell() -> dict:
    return found

raise RuntimeError(str(found))
"""

LOUD = """\
from mcp.server.fastmcp import FastMCP
import os

def remember(text):
    with open("log.txt", "a") as log:
        log.write(text)

os.path.exists("x")
remember("first")
os.mkdir("later")
mcp = FastMCP(name="Loud")
"""


class Loading(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.driver = driver.Driver()

    @classmethod
    def tearDownClass(cls):
        cls.driver.close()

    def configure(self, **sources):
        servers = {name: {"source": source, "file": f"{name}.py"} for name, source in sources.items()}
        return self.driver.ask("configure", json.dumps({"environment": {"servers": servers, "scenarios": []}}))

    def test_questions_are_answered_without_asking_the_system(self):
        (case, (_, why)), out, err, _ = self.configure(Quiet=QUIET)
        self.assertEqual((case, out), (1, "printed\nwritten\n"))
        for text in ("err\n", "WARNING:root:logged\n", "UserWarning: warned\n", "ModuleNotFoundError: No module named 'nothing_by_this_name'"):
            self.assertIn(text, err)
        self.assertNotIn("no snapshot", err)
        found = eval(why.partition("RuntimeError: ")[2])
        missing = "/etc/passwd /etc/passwd /etc/passwd /etc /etc /gone /gone /gone/new /gone/new /usr".split()
        kinds = ("open", "pathlib", "os.open", "stat", "listdir", "remove", "rename", "made below nothing", "written below nothing", "chdir")
        self.assertEqual(
            found,
            {
                "terminal": False,
                "input": "at its end",
                "exists": [True, True, True, False, False],
                "listed": [["tmp"], [], ["tmp"], ["tmp"]],
                "folders": ([True], [("/", ["tmp"], []), ("/tmp", [], [])], ["/tmp"]),
                "temporary": found["temporary"],
                "real": ("/b", True, False),
                **dict(zip(kinds, missing, strict=True)),
            },
        )
        self.assertTrue(found["temporary"].endswith("/tmp"), found["temporary"])

    def test_what_reaches_the_system_first_is_told_with_its_line(self):
        (case, result), _, err, _ = self.configure(Aquiet="import mcp.server.fastmcp as m\nmcp = m.FastMCP(name='A')\n", Loud=LOUD)
        self.assertEqual(case, 0)
        self.assertTrue(err.startswith("no snapshot: Loud.py:5 opens or changes files while it is loaded (`open`)"), err)

    def test_what_is_printed_while_files_are_loaded_can_go_to_dev_null(self):
        source = """\
import contextlib, os
from mcp.server.fastmcp import FastMCP
with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
    print("not shown")
mcp = FastMCP(name="A" if os.path.exists(os.devnull) and not os.path.isfile(os.devnull) else "")
"""
        (case, result), out, _, _ = self.configure(Silent=source)
        self.assertEqual((case, out), (0, ""), result)


if __name__ == "__main__":
    unittest.main()
