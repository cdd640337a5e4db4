"""Environments instead of notebooks: an image whose `init` was given an environment.

The packages that environments import, `plugins/python/environments`, are kept as marshalled code that no program finds. Once
`configure` has them load an environment's files, all sessions of the image are the environment's: a cell is a request, the name of a
function of `rlf_environment` and its arguments, and its value is what that returns.
"""

from .sound import __builtins__  # isort: skip

import gc
import importlib
import json
import os
import sys
import tempfile
import typing

from . import files, init_files, library, report, run, streams
from .wit import COMPLETED, INVALID_ARGUMENTS, RAISED, Refused

_PACKAGES = ("mcp", "pydantic", "rlf_environment")
_REQUESTS = ("open", "restore", "call", "say", "state", "snapshot", "verify", "scenarios")
NO_SNAPSHOT = "no snapshot: "
"""Begins the line that says what stands in the way of a snapshot."""

_ANSWER = '{"answer":'

_packages = library.Library()
_loaded = []
"""`rlf_environment`, once it has loaded an environment."""


def collect():
    """Takes in the packages from the folder on `sys.path` that has them."""
    folder = next(folder for folder in sys.path if os.path.exists(f"{folder}/rlf_environment/__init__.py"))
    _packages.collect(folder, _PACKAGES)


def configure(config):
    """Takes what `init` is given, as JSON: with `environment`, files to load; nothing else is looked at."""
    told = json.loads(config).get("environment")
    if told is None:
        return
    sys.meta_path.insert(0, _packages)
    environment = importlib.import_module("rlf_environment")
    warm_up(environment)
    answer = load(environment, told)
    if "error" in answer:
        raise Refused(INVALID_ARGUMENTS, answer["error"]["message"])
    _loaded.append(environment)
    # As in `snapshot.tidy`. Otherwise a class of the warm-up would stay in these caches.
    for cleanup in typing._cleanups:
        cleanup()
    gc.collect()
    gc.freeze()


def load(environment, told):
    """Has the files loaded without anything being opened, which no snapshot could hold: what they print goes past the
    descriptors, and what they ask of the file system is answered by `init_files`. Where something is opened all the same,
    a line on standard error says which of their lines did it first; the host shows it."""
    write = run.host_write()
    tempfile.tempdir = files.below(["tmp"])
    stdin, sys.stdin = sys.stdin, streams.input_(streams.Memory())
    streams.connect(write)
    init_files.begin(files_of(told), write)
    try:
        answer = json.loads(environment.load(json.dumps(told)))
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
        return [about.get("file") or f"{name}.py" for name, about in told["servers"].items()]
    except (AttributeError, LookupError, TypeError):
        return []


def warm_up(environment):
    """Plays an environment as the host will play others, but not as a program, which would open files: `init` may not."""
    session = EnvironmentSession(environment)

    def ask(what, arguments):
        if what == "load":
            return environment.load(*arguments)
        outcome, value, _ = session.execute(json.dumps([what, arguments]))
        if outcome != (COMPLETED,) or not value.startswith(_ANSWER):
            raise RuntimeError(f"the warm-up failed: {outcome}, {value}")
        return value[len(_ANSWER) : -1]

    environment.warmup.play(ask)


def is_configured():
    """Whether sessions of this image are those of an environment."""
    return bool(_loaded)


class EnvironmentSession:
    """One session; an instance has one."""

    def __init__(self, environment):
        self.environment = environment

    @classmethod
    def open(cls, seed):
        """Opens the session of this instance, which runs as its program."""
        run.prepare([""], b"", (), seed)
        return cls(_loaded[0])

    def execute(self, request):
        """A request as JSON, `[function, arguments]`: outcome, value and no displays."""
        try:
            what, arguments = json.loads(request)
            if what not in _REQUESTS:
                raise LookupError(f"there is no request {what!r}")
            value = getattr(self.environment, what)(*arguments)
            # A state may look like an error.
            if not isinstance(value, self.environment.Failure):
                value = _ANSWER + value + "}"
        except BaseException as error:
            streams.flush()
            return (RAISED, report.describe(error)), None, []
        streams.flush()
        return (COMPLETED,), report.plain(value), []
