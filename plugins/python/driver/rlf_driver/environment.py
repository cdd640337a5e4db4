"""Worlds in place of notebooks: what an image is whose `init` was told of an environment.

The packages that environments import, `plugins/python/environments`, are kept as marshalled code that no program finds. Once
`configure` has them load an environment's files, all sessions of the image are worlds: a cell is a request, the name of a
function of `rlf_environment` and its arguments, and its value is what that returns.
"""

from .sound import __builtins__  # isort: skip

import gc
import importlib
import json
import os
import sys

from . import library, report, run, streams
from .wit import COMPLETED, INVALID_ARGUMENTS, RAISED, Refused

_PACKAGES = ("mcp", "pydantic", "rlf_environment")
_REQUESTS = ("open", "restore", "call", "say", "state", "snapshot", "verify", "scenarios")

_packages = library.Library()
_loaded = []
"""`rlf_environment`, once it has loaded an environment."""


def collect():
    """Takes in the packages from the folder on `sys.path` that has them."""
    folder = next(folder for folder in sys.path if os.path.exists(f"{folder}/rlf_environment/__init__.py"))
    _packages.collect(folder, _PACKAGES)


def configure(config):
    """What `init` is told, as JSON: with `environment`, files to load; nothing else is looked at."""
    told = json.loads(config).get("environment")
    if told is None:
        return
    sys.meta_path.insert(0, _packages)
    environment = importlib.import_module("rlf_environment")
    answer = json.loads(environment.load(json.dumps(told)))
    if "error" in answer:
        raise Refused(INVALID_ARGUMENTS, answer["error"]["message"])
    _loaded.append(environment)
    streams.flush()
    gc.collect()
    gc.freeze()


def is_configured():
    """Whether sessions of this image are worlds."""
    return bool(_loaded)


class World:
    """One session; an instance has one."""

    def __init__(self, seed):
        run.prepare([""], b"", (), seed)

    def execute(self, request):
        """A request as JSON, `[function, arguments]`: outcome, value and no displays."""
        try:
            what, arguments = json.loads(request)
            if what not in _REQUESTS:
                raise LookupError(f"there is no request {what!r}")
            value = getattr(_loaded[0], what)(*arguments)
        except BaseException as error:
            streams.flush()
            return (RAISED, report.describe(error)), None, []
        streams.flush()
        return (COMPLETED,), report.plain(value), []
