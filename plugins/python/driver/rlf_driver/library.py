"""The standard library inside the snapshot: much of it imported, all of it importable, its sources at hand.

A run has no library on any file system. What programs use most is imported when the snapshot is made and costs a run
nothing; every other module is kept as marshalled code. Sources are kept compressed, for tracebacks through the library,
`inspect.getsource` and `help`, and for a program that removes an imported module and imports it again.
"""

from .sound import __builtins__  # isort: skip

import atexit
import importlib
import importlib.abc
import importlib.machinery
import marshal
import os
import sys
import time
import warnings
import zlib

PRELOADED = """
abc argparse array ast asyncio base64 binascii bisect builtins calendar cmath codecs collections collections.abc
concurrent.futures configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis doctest
email.message encodings.aliases encodings.ascii encodings.latin_1 encodings.utf_8 encodings.utf_8_sig encodings.utf_16
encodings.utf_32 encodings.cp1252 encodings.idna encodings.cp437 encodings.unicode_escape encodings.raw_unicode_escape
encodings.hex_codec encodings.rot_13 enum errno fnmatch fractions functools gc getpass glob graphlib gzip hashlib heapq
hmac html html.parser importlib.util inspect io ipaddress itertools json keyword linecache locale logging math mimetypes
numbers operator opcode optparse os os.path pathlib pickle pkgutil platform posixpath pprint queue random re reprlib
sched secrets selectors shelve shlex shutil signal socket stat statistics string stringprep struct subprocess sys
sysconfig tempfile textwrap threading time timeit token tokenize traceback tracemalloc types typing unicodedata unittest
unittest.mock urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo
_strptime _pydecimal _pydatetime
""".split()
"""Imported for the snapshot. What a build lacks is left out."""

SKIPPED = {
    "__pycache__", "config", "curses", "dbm", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test",
    "tests", "tkinter", "turtledemo", "venv",
}
"""Folders of the library that no program in a sandbox has a use for."""

_WITHHELD = {}
"""Imported modules that are put in order for a run only when it imports them, each with the function that does it."""
_seed = [0]


class Library(importlib.abc.InspectLoader):
    """Finds and loads what lies in the snapshot."""

    def __init__(self):
        self.codes = {}
        """File, whether it is a package, and marshalled code, which a module lacks that the snapshot has imported."""
        self.sources = {}

    def find_spec(self, name, path=None, target=None):
        entry = self.codes.get(name)
        if entry is None:
            return None
        file, is_package, _ = entry
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations.append(os.path.dirname(file))
        return spec

    def is_package(self, name):
        return self._entry(name)[1]

    def get_code(self, name):
        file, _, code = self._entry(name)
        return compile(self.get_source(name), file, "exec", dont_inherit=True) if code is None else marshal.loads(code)

    def get_source(self, name):
        try:
            return zlib.decompress(self.sources[name]).decode()
        except KeyError:
            raise ImportError(f"there is no source of {name}", name=name) from None

    def _entry(self, name):
        try:
            return self.codes[name]
        except KeyError:
            raise ImportError(f"no module named {name!r} in the library", name=name) from None

    def collect(self, root, packages=None):
        """Takes in every module below `root`, or of the packages that are named: the source of all, the code of those that
        are not imported."""
        for name, file, is_package in modules_below(root, ""):
            if packages is not None and name.partition(".")[0] not in packages:
                continue
            with open(file, "rb") as opened:
                data = opened.read()
            try:
                source = importlib.util.decode_source(data)
                code = None if name in sys.modules else compile(source, file, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                # A file that is an example of broken source.
                continue
            self.sources[name] = zlib.compress(source.encode(), 9)
            self.codes[name] = file, is_package, None if code is None else marshal.dumps(code)

    def adopt(self, root):
        """Becomes the loader of the modules that came from files below `root`, which are about to go."""
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if spec is None or not (spec.origin or "").startswith(root) or name not in self.sources:
                continue
            spec.loader = module.__loader__ = self
            spec.cached = None
            if hasattr(module, "__cached__"):
                del module.__cached__


def modules_below(folder, prefix):
    """Name, file and whether it is a package, of every module below `folder`, in an order of their own."""
    for entry in sorted(os.listdir(folder)):
        path = folder + "/" + entry
        if entry.endswith(".py"):
            name = entry[:-3]
            is_package = name == "__init__" and bool(prefix)
            if is_package:
                name = prefix[:-1]
            elif name.startswith(("_sysconfigdata", "__")) and not (name == "__main__" and prefix):
                continue
            else:
                name = prefix + name
            yield name, path, is_package
        elif "." not in entry and entry not in SKIPPED and os.path.exists(path + "/__init__.py"):
            yield from modules_below(path, prefix + entry + ".")


class Withheld:
    """Finds modules that are imported already but have something to do when a run begins to use them, so that the
    runs that never do are spared it: `random` is seeded by the run's seed."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in _WITHHELD:
            return None
        return importlib.machinery.ModuleSpec(name, cls, origin=_WITHHELD[name][0].__file__)

    @staticmethod
    def create_module(spec):
        module = _WITHHELD[spec.name][0]
        # A module that is present keeps its origin.
        spec.loader_state = module.__spec__
        return module

    @classmethod
    def exec_module(cls, module):
        name = module.__spec__.name
        module.__spec__ = module.__spec__.loader_state
        _WITHHELD[name][1](module, _seed[0])


def begin_random(module, seed):
    """Seeds `random` for a run."""
    module.seed(seed)


def begin_logging(module, seed):
    """Lets `logging` begin with the run, and end with it."""
    now = time.time_ns()
    module._startTime = now if sys.version_info >= (3, 13) else now / 1e9
    atexit.register(module.shutdown)


def import_random(module, seed):
    """Seeds `random` for a run that uses it through another module."""
    importlib.import_module("random")


def withhold(begin):
    """Decides what `Withheld` gives back. `begin` maps further modules to functions that put them in order, given the module
    and the run's seed. What draws from `random` on its own account counts in."""
    random = sys.modules["random"]
    begin = {"random": begin_random, "logging": begin_logging} | begin
    for name, module in list(sys.modules.items()):
        if name not in begin and getattr(module, "__dict__", {}).get("random") is random:
            begin[name] = import_random
    for name, function in begin.items():
        _WITHHELD[name] = sys.modules[name], function
    random.seed(0)


def withdraw(seed):
    """Takes what is withheld out of `sys.modules`, whoever imported it; `seed` is the run's."""
    _seed[0] = seed
    for name in _WITHHELD:
        sys.modules.pop(name, None)


def load(root):
    """Imports, collects and adopts the library: what lies below the folder `root`, or in an archive, which is a finder that
    has collected it. Returns the names that this build has not."""
    missing = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PRELOADED:
            try:
                importlib.import_module(name)
            except ImportError:
                missing.append(name)
        if isinstance(root, str):
            library = Library()
            library.collect(root.rstrip("/"))
            library.adopt(root.rstrip("/"))
        else:
            library = root
            library.adopt()
    sys.meta_path.insert(0, library)
    return missing
