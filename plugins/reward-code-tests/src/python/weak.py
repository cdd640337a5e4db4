"""Runs tests that cannot be taken apart beside the candidate.

The tests' builtins, modules and compiled code are taken before the candidate runs, so that patching finds nothing
that they use; what its functions return is rebuilt from plain data; a verdict carries a word that
only this module was told. All of it lies in one interpreter with the candidate all the same: who
walks the frames above a call can read the word and the tests. That is why such tests are called weak.
"""

import ast
import builtins
import collections
import gc
import io
import os
import sys
import types
from json import loads

MARK = "\x1e"


class _Nowhere(io.RawIOBase):
    """Where output goes that is not the protocol's."""

    def writable(self):
        return True

    def write(self, data):
        return len(data)


def _imported(trees):
    """The modules that tests import, each with a copy of what is in it now."""
    names = {"math"}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    copies = {}
    for name in sorted(names):
        try:
            __import__(name)
        except Exception:
            continue
        copy = types.ModuleType(name)
        copy.__dict__.update(vars(sys.modules[name]))
        copies[name] = copy
    return copies


def _importer(copies, real=__import__):
    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0 and name in copies and (fromlist or "." not in name):
            return copies[name]
        return real(name, globals, locals, fromlist, level)

    return __import__


def _purifier():
    leaves = (type(None), bool, int, float, complex, str, bytes, range, type(...))
    sequences = (list, tuple, set, frozenset)
    known = (bytearray, collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque)
    values = (int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
    # Objects of the standard library may compare as they do; it was there before the candidate.
    standard = {kind for kind in object.__subclasses__() if isinstance(kind, type)}
    kind_of, same, plain_eq, error = type, isinstance, object.__eq__, TypeError

    def purify(value):
        kind = kind_of(value)
        if kind in leaves:
            return value
        if kind in sequences:
            return kind([purify(item) for item in value])
        if kind is dict:
            return {purify(key): purify(item) for key, item in value.items()}
        if kind in known or kind in standard:
            return value
        if same(value, values) or kind.__eq__ is not plain_eq:
            raise error("the candidate returned an object that compares in a way of its own")
        return value

    return purify


def _asked(function, purify):
    def asked(*args, **kwargs):
        return purify(function(*args, **kwargs))

    asked.__name__ = function.__name__
    asked.__doc__ = function.__doc__
    return asked


def _closed(*args, **kwargs):
    raise PermissionError("not while tests run beside the candidate")


def _close_doors():
    """Ways to the tests' frames and objects that no solution needs."""
    sys.settrace = sys.setprofile = sys.breakpointhook = _closed
    for name in ("get_objects", "get_referrers", "get_referents"):
        setattr(gc, name, _closed)
    if hasattr(sys, "monitoring"):
        for name in ("use_tool_id", "register_callback", "set_events", "set_local_events"):
            setattr(sys.monitoring, name, _closed)


def main(write=os.write, leave=os._exit):
    with open("row.json", encoding="utf-8") as file:
        row = loads(file.read())
    os.remove("row.json")
    word = row.pop("word")

    def say(what):
        data = f"\n{MARK}{what}\n".encode("ascii")
        while data:
            data = data[write(1, data):]

    with open("candidate.py", "rb") as file:
        source = file.read()
    prelude, setup, *tests = [ast.parse(text) for text in (row["prelude"], row["setup"], *row["tests"])]
    copies = _imported([prelude, setup, *tests])
    trusted = dict(vars(builtins))
    trusted["__import__"] = _importer(copies)
    ours = {"__builtins__": trusted, "__name__": "__main__"}
    try:
        exec(compile(prelude, "<prelude>", "exec"), ours)
    except Exception:
        pass
    codes = [compile(tree, "<tests>", "exec") for tree in (setup, *tests)]
    purify = _purifier()
    module = types.ModuleType("candidate")
    module.__file__ = "candidate.py"
    sys.modules["candidate"] = module
    sys.stdout = sys.stderr = io.TextIOWrapper(io.BufferedWriter(_Nowhere()), errors="replace")
    _close_doors()
    try:
        exec(compile(source, "candidate.py", "exec"), module.__dict__)
    except BaseException:
        leave(0)
    say("loaded")
    theirs = {
        name: _asked(value, purify) if type(value) is types.FunctionType else value
        for name, value in module.__dict__.items()
        if not name.startswith("__")
    }
    kept = {name: value for name, value in ours.items() if name not in row["entry"]}
    scope = {**theirs, **kept}
    try:
        exec(codes[0], scope)
    except BaseException:
        leave(0)
    for number, code in enumerate(codes[1:]):
        if number not in row["wanted"]:
            continue
        say(f"started {number}")
        try:
            exec(code, scope)
        except BaseException:
            say(f"failed {number}")
        else:
            say(f"passed {number} {word}")
    leave(0)
