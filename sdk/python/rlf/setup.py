"""What happens once, before any call: every call starts from a copy of the memory that this leaves."""

from .errors import InvalidPlugin

_initialisers = []
_bound = {}
_readers = []
"""At most one function that reads a data slot from the host."""


def init(function):
    """Marks the function that is called once, after the file was executed.

    It takes the operator's configuration, a dictionary, or nothing. It keeps what it makes in global variables. It may
    read data slots. What it raises is the reason why the plugin is not loaded.
    """
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
        function(config) if function.__code__.co_argcount else function()


def forget():
    """Forgets initialisers and data."""
    _initialisers.clear()
    _bound.clear()
