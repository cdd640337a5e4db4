"""Environment classes of TRL: `reset(**row)`, a public method for each tool, and perhaps `get_reward()`.

TRL makes the object once and resets it for each rollout. Its tools are called with the arguments as the model wrote them, and what
they return or raise is shown as TRL shows it.
"""

import inspect

from mcp.server.fastmcp.exceptions import out_of_memory
from mcp.server.fastmcp.tools import awaited

from rlf import InvalidPlugin
from rlf.tools import made_from

from .answers import INTERNAL, INVALID, Refused, canonical, clean, described, encoded
from .code import Code, own_classes
from .servers import plain

RESET, REWARD = "reset", "get_reward"


class TrlEnvironment:
    """An object of a file's class with `reset`."""

    fastmcp = None
    api_name = None

    def __init__(self, name, module):
        self.name = name
        self.module = module
        cls = environment_class(module)
        try:
            self.api = cls()
            tools = {method: made_from(getattr(self.api, method)) for method in methods(cls)}
        except InvalidPlugin as why:
            raise Refused(INVALID, str(why)) from None
        except Exception as fault:
            raise Refused(INVALID, f"{cls.__name__} cannot be made: {described(fault)}") from None
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
        said = finished(self.api.reset(**(row or {})))
        return None if said is None else shown(said)

    def state(self):
        """The attributes of the object that have a form in JSON."""
        found = {}
        for name, value in vars(self.api).items():
            try:
                state = plain(value)
                # Neither NaN nor half a surrogate pair.
                canonical(state)
                found[name] = state
            except Exception as fault:
                if out_of_memory(fault):
                    raise
        return found

    def call(self, name, arguments):
        """`(text, failed)`."""
        try:
            return shown(finished(getattr(self.api, name)(**arguments))), False
        except BaseException as fault:
            if out_of_memory(fault):
                raise
            return clean(str({"error": str(fault)})), True

    def reward(self):
        """What `get_reward` returns, or None if the class does not have it."""
        if not hasattr(self.api, REWARD):
            return None
        found = finished(self.api.get_reward())
        if isinstance(found, (int, float)) and 0 <= found <= 1:
            return float(found)
        raise Refused(INTERNAL, f"get_reward of {self.name!r} returned {found!r}; a verdict is a number from 0 to 1")


def environment_class(module):
    """The one class of a file that has `reset`, and from which no other of them inherits."""
    classes = [cls for path, cls in own_classes(module) if len(path) == 1 and callable(getattr(cls, RESET, None))]
    last = [cls for cls in classes if not any(cls in other.__mro__[1:] for other in classes)]
    if len(last) > 1:
        raise Refused(INVALID, f"there are {len(last)} classes with `reset`: {', '.join(cls.__name__ for cls in last)}")
    if not last:
        raise Refused(INVALID, "makes no FastMCP, and has no class with `reset`")
    return last[0]


def methods(cls):
    """The names of the methods that are tools, as TRL finds them."""
    names = [name for name, _ in inspect.getmembers(cls, predicate=inspect.isfunction)]
    return [name for name in names if name not in (RESET, REWARD) and not name.startswith("_")]


def finished(result):
    """The result of a coroutine, or the result itself."""
    return awaited(result) if inspect.iscoroutine(result) else result


def shown(result):
    """A result as text. Of blocks of content, the texts are kept."""
    if isinstance(result, list) and all(isinstance(block, dict) and "type" in block for block in result):
        return "\n".join(str(block["text"]) for block in result if block["type"] == "text")
    return str(result)
