"""The sandbox of this process: its settings, its files, and when it starts."""

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
    """Sets the sandbox's settings, before anything of this package is used.

    The names are the keys of `[sandbox]` in a configuration of rlf-host, such as `workers`, `instances`, `programs`,
    `sessions`, `max_memory_bytes` and `cache`.

    Raises:
        RuntimeError: The sandbox runs already.
    """
    with _lock:
        if _started:
            raise RuntimeError("the sandbox runs already; call configure before the first Sandbox, Plugins or Environment")
        _settings.update(settings)


def start() -> None:
    """Starts the sandbox, unless it runs already."""
    global _started
    with _lock:
        settings = {name: str(value) if isinstance(value, Path) else value for name, value in _settings.items()}
        _native.start(json.dumps(settings), str(PROGRAM))
        _started = True


def directories(own: tuple[str | os.PathLike[str], ...]) -> list[str]:
    """The plugin directories: the caller's, and then the shipped one."""
    named = os.environ.get("RLF_PLUGINS")
    shipped = [str(SHIPPED)] if named is None else [named] if named else []
    return [*(os.fspath(directory) for directory in own), *shipped]
