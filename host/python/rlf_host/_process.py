"""The sandbox of this process: its settings, its files, when it starts, and what happens when the interpreter ends."""

import atexit
import faulthandler
import json
import os
import threading
from pathlib import Path
from typing import Any

from . import _native

PACKAGE = Path(__file__).parent
#: The program `rlf-host`, which also compiles components in a process of its own.
PROGRAM = PACKAGE / "bin" / "rlf-host"
#: The plugins that ship with the package. The environment variable `RLF_PLUGINS` names others, as for `rlf-host`.
SHIPPED = PACKAGE / "share" / "rlf-host" / "plugins"

_lock = threading.Lock()
_settings: dict[str, Any] = {}
_started = False


def configure(**settings: Any) -> None:
    """Sets the sandbox's settings, before anything of this package is used. It replaces the settings of earlier calls.

    The names are the keys of `[sandbox]` in a configuration of rlf-host, such as `workers`, `programs`,
    `program_memory_budget_bytes`, `max_memory_bytes` and `cache`.

    Raises:
        RuntimeError: The sandbox runs already, or this process was forked from one where it does.
    """
    global _settings
    _native.check_not_forked()
    with _lock:
        if _started:
            raise RuntimeError("the sandbox runs already; call configure before the first Sandbox, Plugins or Environment")
        _settings = settings


def start() -> None:
    """Starts the sandbox, unless it runs already."""
    global _started
    _native.check_not_forked()
    with _lock:
        if _started:
            return
        # A guest traps by a signal. If faulthandler were enabled later, it would take that signal for a crash.
        if not faulthandler.is_enabled():
            _enable_faulthandler()
        _native.start(json.dumps(_settings, default=os.fspath), str(PROGRAM))
        _started = True
        atexit.register(_native.close)


def _enable_faulthandler() -> None:
    try:
        faulthandler.enable()
    except (RuntimeError, OSError, ValueError, AttributeError):
        pass  # Standard error has no file, so it cannot be enabled later either.


def directories(own: tuple[str | os.PathLike[str], ...]) -> list[str]:
    """The plugin directories: the caller's, and then the shipped one."""
    named = os.environ.get("RLF_PLUGINS")
    shipped = [str(SHIPPED)] if named is None else [named] if named else []
    return [*(os.fspath(directory) for directory in own), *shipped]


def _forget_lock() -> None:
    """Gives a forked child a lock that no thread of its parent holds."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)
