"""What happens once, before any call: every call starts from a copy of the memory that this leaves."""

import asyncio
import inspect

from .errors import InvalidPlugin
from .schemas import check_function
from .tools import awaited

_initialisers = []
_bound = {}
_readers = []
"""At most one function that reads a data slot from the host."""


def init(function=None):
    """Marks the function that is called once, after the file was executed.

    It takes the operator's configuration, a dictionary, or nothing. It keeps what it makes in global variables. It may
    read data slots. What it raises is the reason why the plugin is not loaded.
    """
    if function is None:
        return init
    check_function("init", function)
    if len(inspect.signature(function).parameters) > 1:
        raise InvalidPlugin(f"{function.__name__}: a function with @rlf.init takes the configuration, or nothing")
    if _initialisers:
        raise InvalidPlugin(f"there are two functions with @rlf.init: {_initialisers[0].__name__} and {function.__name__}")
    _initialisers.append(function)
    return function


def data(slot):
    """The files that the operator bound to a data slot: a dictionary from path to bytes, sorted by path.

    `plugin.toml` names the slots of the plugin, as in `data = ["corpus"]`.
    """
    if slot in _bound:
        return dict(_bound[slot])
    if _readers:
        return _readers[0](slot)
    known = ", ".join(sorted(_bound)) or "none"
    raise LookupError(f"there is no data slot {slot!r}; there are: {known}")


def read_with(reader):
    """Makes `data` read slots with a function, as in the sandbox."""
    _readers[:] = [reader]


def bind(slot, files):
    """Binds files to a data slot, as the host does: a dictionary from path to bytes or text."""
    encoded = {path: text.encode() if isinstance(text, str) else bytes(text) for path, text in files.items()}
    _bound[slot] = dict(sorted(encoded.items()))


def initialise(config):
    """Calls the function that is marked by `init`, if there is one."""
    for function in _initialisers:
        done = function(config) if inspect.signature(function).parameters else function()
        if inspect.isawaitable(done):
            asyncio.run(awaited(done))


def forget():
    """Forgets initialisers and data."""
    _initialisers.clear()
    _bound.clear()
