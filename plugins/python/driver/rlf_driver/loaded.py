"""Images that have loaded files: their sessions answer requests to these files, and run no programs.

There are two forms, by the key of `init`'s configuration: `environment`, files of environments, which `rlf_environment`
loads, and `plugin`, one file of tools or rewards, which `rlf_file` loads. Both packages, and what such files import, are
imported and warm in the snapshot, where no program finds them. A cell is then a request: the name of a function of the
package, and its arguments. The cell's value is the function's answer.
"""

from .sound import __builtins__  # isort: skip

import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import typing

from . import files, init_files, library, report, run, streams
from .wit import COMPLETED, INVALID_ARGUMENTS, RAISED, Refused

_FORMS = {"plugin": "rlf_file", "environment": "rlf_environment"}
"""The package that loads files, by the key of the configuration that has them. The second imports the first's."""

_PYDANTIC = ("annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection")
"""pydantic and what it imports. A build without its compiled part has none of them."""

_PACKAGES = ("mcp", "rlf", *_FORMS.values(), *_PYDANTIC)
NO_SNAPSHOT = "no snapshot: "
"""Begins the line that says what stands in the way of a snapshot."""

_ANSWER = '{"answer":'

_packages = library.Library()
_kept = []
"""Modules that are imported in the snapshot, by their names: for each form of files, those that its package needs."""
_loaded = []
"""The package that has loaded files."""


class Kept:
    """Finds what is kept. All that one package needs comes back together, when the first of it is imported."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_ours = name.partition(".")[0] in _PACKAGES and any(name in modules for modules in _kept)
        return importlib.machinery.ModuleSpec(name, cls) if is_ours else None

    @staticmethod
    def create_module(spec):
        modules = next(modules for modules in _kept if spec.name in modules)
        sys.modules.update(modules)
        module = modules[spec.name]
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module):
        module.__spec__ = module.__spec__.loader_state


def _forms():
    """The forms that this build loads. Environments need pydantic, and a build that loads no files has neither package."""
    here = {key: package for key, package in _FORMS.items() if importlib.util.find_spec(package)}
    if not importlib.util.find_spec("pydantic"):
        here.pop("environment", None)
    return here


def collect():
    """Takes in the packages from the folders on `sys.path` that have ours, and imports what files use most."""
    found = []
    for package in _forms().values():
        others = set(sys.modules)
        importlib.import_module(package)
        found.append(set(sys.modules) - others)
    for folder in list(sys.path):
        if any(os.path.exists(f"{folder}/{package}/__init__.py") for package in _PACKAGES):
            _packages.collect(folder, _PACKAGES)
            _packages.adopt(folder)
    _kept[:] = ({name: sys.modules.pop(name) for name in names} for names in found)


def prepare():
    """Plays files as the host will play others, so that what they use is warm in every image."""
    sys.meta_path[:0] = Kept, _packages
    for modules in _kept:
        others = set(sys.modules)
        package = importlib.import_module(next(package for package in _FORMS.values() if package in modules))
        if "pydantic" in modules:
            warm_up_pydantic(modules["pydantic"])
        warm_up(package)
        library.withdraw(0)
        modules |= {name: sys.modules.pop(name) for name in set(sys.modules) - others}
    del sys.meta_path[:2]


def warm_up_pydantic(pydantic):
    """Makes what most models need. The first model makes pydantic look for plugins of its own, which opens folders."""
    model = pydantic.create_model("First", values=(list[int], pydantic.Field(min_length=1)))
    pydantic.TypeAdapter(model).json_schema()


def configure(config):
    """Takes the configuration of `init`, as JSON: with `environment` or `plugin`, files to load. Other keys are ignored.

    Returns whether a session of theirs waits for further requests.
    """
    config = json.loads(config)
    key = next((key for key in _FORMS if config.get(key) is not None), None)
    if key is None:
        return False
    if not any(_FORMS[key] in modules for modules in _kept):
        raise Refused(INVALID_ARGUMENTS, "environments need pydantic, which this build does not have; the plugin `python` has it")
    sys.meta_path[:0] = Kept, _packages
    package = importlib.import_module(_FORMS[key])
    package.connect(run.host())
    answer = load(package, config[key])
    if "error" in answer:
        raise Refused(INVALID_ARGUMENTS, answer["error"]["message"])
    _loaded.append(package)
    # As in `snapshot.tidy`.
    for cleanup in typing._cleanups:
        cleanup()
    # One of a plugin ends with its first answer.
    return key == "environment"


def load(package, told):
    """Has the files loaded without anything being opened, which no snapshot could hold: what they print goes past the
    descriptors, and what they ask of the file system is answered by `init_files`. Where something is opened all the same,
    a line on standard error says which of their lines did it first; the host shows it."""
    write = run.host().write
    tempfile.tempdir = files.below(["tmp"])
    stdin, sys.stdin = sys.stdin, streams.input_(streams.Memory())
    streams.connect(write)
    init_files.begin(files_of(told), write)
    try:
        answer = json.loads(package.load(json.dumps(told)))
        streams.flush()
    finally:
        opened = init_files.end()
        streams.connect(None)
        sys.stdin = stdin
    if opened and "error" not in answer:
        write(2, f"{NO_SNAPSHOT}{opened}; the file system of a session is another one, so do this in a tool\n".encode())
    return answer


def files_of(told):
    """The names of the files to load; what has another form is the loader's to refuse."""
    try:
        if "file" in told:
            return [told["file"]]
        return [about.get("file") or f"{name}.py" for name, about in told["servers"].items()]
    except (AttributeError, LookupError, TypeError):
        return []


def warm_up(package):
    """Plays files of the package's own as the host will play others."""
    session = Requests(package)

    def ask(what, arguments):
        if what == "load":
            return package.load(*arguments)
        outcome, value, _ = session.execute(json.dumps([what, arguments]))
        if outcome != (COMPLETED,) or not value.startswith(_ANSWER):
            raise RuntimeError(f"the warm-up failed: {outcome}, {value}")
        return value[len(_ANSWER) : -1]

    package.warmup.play(ask)


def is_configured():
    """Whether sessions of this image answer requests to files."""
    return bool(_loaded)


class Requests:
    """The session of an instance whose image has loaded files."""

    def __init__(self, package):
        self.package = package

    @classmethod
    def open(cls, seed):
        """Opens the session of this instance, which runs as its program."""
        run.prepare([""], b"", (), seed)
        return cls(_loaded[0])

    def execute(self, request):
        """A request as JSON, `[function, arguments]`: outcome, value and no displays."""
        try:
            what, arguments = json.loads(request)
            if what not in self.package.REQUESTS:
                raise LookupError(f"there is no request {what!r}")
            value = getattr(self.package, what)(*arguments)
            # A state may look like an error.
            if not isinstance(value, self.package.Failure):
                value = _ANSWER + value + "}"
        except BaseException as error:
            streams.flush()
            return (RAISED, report.describe(error)), None, []
        streams.flush()
        return (COMPLETED,), report.plain(value), []
