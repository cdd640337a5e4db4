"""Environment classes of TRL: `reset(**row)`, a public method for each tool, and perhaps `get_reward()`.

TRL makes the object once and resets it for each rollout. What tools return or raise is shown as TRL shows it.
"""

import collections
import copy
import dataclasses
import enum
import inspect
import math

from mcp.server.fastmcp.exceptions import out_of_memory
from mcp.server.fastmcp.tools import awaited
from pydantic import BaseModel

from rlf import InvalidPlugin
from rlf.tools import made_from

from .answers import INTERNAL, INVALID, Refused, clean, described, encoded
from .code import Code, own_classes

RESET, REWARD = "reset", "get_reward"
_MAX_DEPTH = 32
_MAX_VALUES = 100_000


class TrlEnvironment:
    """An object of a file's class with `reset`."""

    fastmcp = None
    api_name = None

    def __init__(self, name, module):
        self.name = name
        self.module = module
        cls = environment_class(module, name)
        try:
            self.api = cls()
            tools = {method: made_from(getattr(self.api, method)) for method in methods(cls)}
        except InvalidPlugin as why:
            raise Refused(INVALID, str(why)) from None
        except BaseException as fault:
            raise Refused(INVALID, f"{cls.__name__} cannot be made: {described(fault)}") from None
        if not hasattr(self.api, "__dict__"):
            raise Refused(INVALID, f"{cls.__name__} has __slots__, and its state is in attributes: leave __slots__ out")
        if not tools:
            raise Refused(INVALID, f"{cls.__name__} has no tool: a tool is a method whose name does not begin with _")
        self.code = Code(module)
        self.tools = {
            tool: {"name": tool, "description": about.description, "input_schema": about.input_schema}
            for tool, about in tools.items()
        }
        self.encoded = {tool: encoded(about) for tool, about in self.tools.items()}

    def begin(self, row):
        """Resets the object, with the task's row. Returns the text that the model begins with, or None."""
        said = finished(self.api.reset(**copy.deepcopy(row or {})))
        return None if said is None else shown(said)

    def state(self):
        """The attributes of the object, as JSON."""
        return State(self.module).attributes(self.api)

    def call(self, name, arguments):
        """`(text, failed)`."""
        try:
            return shown(finished(getattr(self.api, name)(**arguments))), False
        except BaseException as fault:
            if out_of_memory(fault):
                raise
            try:
                return clean(str({"error": str(fault)})), True
            except BaseException:
                return str({"error": type(fault).__name__}), True

    def reward(self):
        """The reward that `get_reward` gives a copy of the object. None if the class does not have it."""
        if not hasattr(self.api, REWARD):
            return None
        try:
            found = finished(copied(self.api).get_reward())
        except BaseException as fault:
            if out_of_memory(fault):
                raise
            raise Refused(INTERNAL, f"get_reward of {self.name!r} failed: {described(fault)}") from None
        if isinstance(found, (int, float)) and 0 <= found <= 1:
            return float(found)
        raise Refused(INTERNAL, f"get_reward of {self.name!r} returned {found!r}; a verdict is a number from 0 to 1")


def environment_class(module, name):
    """The file's environment class: the one of the file's name, or else the only one with `reset` that has tools and no
    subclass in the file."""
    classes = [cls for path, cls in own_classes(module) if len(path) == 1 and callable(getattr(cls, RESET, None))]
    if of_its_name := [cls for cls in classes if cls.__name__ == name]:
        return of_its_name[0]
    last = [cls for cls in classes if not any(cls in other.__mro__[1:] for other in classes)]
    chosen = [cls for cls in last if methods(cls)] or last
    if len(chosen) > 1:
        names = ", ".join(cls.__name__ for cls in chosen)
        raise Refused(INVALID, f"there are {len(chosen)} classes with `reset`: {names}; give one the name of the file")
    if not chosen:
        mend = f"write `mcp = FastMCP(name={name!r})` and `@mcp.tool()`, or a class with `reset`"
        raise Refused(INVALID, f"makes no FastMCP, and has no class with `reset`; {mend}")
    return chosen[0]


def methods(cls):
    """The names of the methods that are tools, as TRL finds them."""
    names = [name for name, _ in inspect.getmembers(cls, predicate=inspect.isfunction)]
    return [name for name in names if name not in (RESET, REWARD) and not name.startswith("_")]


def finished(result):
    """The result of a coroutine, or the result itself."""
    return awaited(result) if inspect.iscoroutine(result) else result


def copied(value):
    """A copy that may be changed, or the object itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except BaseException as fault:
        if out_of_memory(fault):
            raise
        return value


def shown(result):
    """A result as text. Of blocks of content, the texts are kept."""
    if isinstance(result, list) and result and all(isinstance(block, dict) and "type" in block for block in result):
        return "\n".join(str(block["text"]) for block in result if block["type"] == "text")
    return str(result)


_NOT_DATA = object()


class State:
    """Reads the data in an object's attributes, as JSON. Nothing is called or used up: an iterator is no data."""

    def __init__(self, module):
        self.own = module.__name__
        self.read = 0
        self.path = []

    def attributes(self, value):
        """The attributes of an object that are data."""
        found = {clean(name): self.data(item) for name, item in getattr(value, "__dict__", {}).items()}
        return {name: item for name, item in found.items() if item is not _NOT_DATA}

    def data(self, value):
        """A value as JSON, or `_NOT_DATA`, also for a value that contains itself and beyond `_MAX_VALUES`."""
        self.read += 1
        if self.read > _MAX_VALUES or len(self.path) > _MAX_DEPTH or id(value) in self.path:
            return _NOT_DATA
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, str):
            return clean(value)
        self.path.append(id(value))
        try:
            return self.container(value)
        finally:
            self.path.pop()

    def container(self, value):
        if isinstance(value, enum.Enum):
            return self.data(value.value)
        if isinstance(value, dict):
            return {clean(str(key)): self.item(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, collections.deque)):
            return [self.item(item) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted(map(self.item, value), key=encoded)
        is_own = type(value).__module__ == self.own or dataclasses.is_dataclass(value) or isinstance(value, BaseModel)
        return self.attributes(value) if is_own and not isinstance(value, type) else _NOT_DATA

    def item(self, value):
        """An item of a container; of what is no data, the name of its type."""
        found = self.data(value)
        return f"<{type(value).__name__}>" if found is _NOT_DATA else found
