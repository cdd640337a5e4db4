"""Environments in EnvFactory's format: a FastMCP with the tools, and an object with the state."""

import copy
import types

from mcp.server.fastmcp.exceptions import ToolError, UnknownTool, out_of_memory

from .answers import INVALID, Refused, described, encoded
from .code import Code

LOAD, SAVE = "load_scenario", "save_scenario"
HIDDEN = (LOAD, SAVE)


class Server:
    """A file of tools: its module, its tools and the object that has the state."""

    def __init__(self, name, module, fastmcp):
        self.name = name
        self.module = module
        self.fastmcp = fastmcp
        self.api_name = api_name(module)
        self.code = Code(module)
        # Parts that no session changes are encoded now, for all sessions.
        self.tools = {
            f"{name}-{tool.name}": {
                "name": f"{name}-{tool.name}",
                "description": tool.description,
                "input_schema": tool.parameters,
            }
            for tool in fastmcp.tools.values()
            if tool.name not in HIDDEN
        }
        self.encoded = {tool: encoded(about) for tool, about in self.tools.items()}

    @property
    def api(self):
        return None if self.api_name is None else getattr(self.module, self.api_name, None)

    def begin(self, scenario):
        """Puts the server into a state, unless `scenario` is None; raises whatever the file does. Returns no message."""
        if scenario is None:
            return
        if self.api is not None:
            self.api.load_scenario(copy.deepcopy(scenario))
        elif LOAD in self.fastmcp.tools:
            self.fastmcp.tools[LOAD].fn(copy.deepcopy(scenario))
        else:
            raise Refused(INVALID, f"server {self.name!r} has no load_scenario, so a task cannot give it a scenario")

    def state(self):
        """Its state, as the file tells it."""
        if self.api is not None:
            return plain(self.api.save_scenario())
        if SAVE in self.fastmcp.tools:
            return plain(self.fastmcp.tools[SAVE].fn())
        return {}

    def call(self, name, arguments):
        """`(text, failed)`."""
        tool = name[len(self.name) + 1 :]
        try:
            return ",".join(self.fastmcp.call(tool, arguments)), False
        except UnknownTool:
            raise
        except ToolError as fault:
            return str(fault), True
        except BaseException as fault:
            if out_of_memory(fault):
                raise
            # Exits of the program end the tool's call, not the session.
            return f"Error executing tool {tool}: {described(fault)}", True

    def reward(self):
        """No reward of its own: `verify` compares states."""
        return None


def plain(value):
    """The JSON form of a state: models, dates and sets in it become what their dumps are."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(ordered(value))


def ordered(value):
    """With the items of sets in an order: how they lie in memory is no part of a state."""
    if isinstance(value, dict):
        return {key: ordered(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [ordered(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=encoded)
    return value


def api_name(module):
    """The name of the module's object with the scenario's two methods: `api` if there is one, else the first."""
    names = ["api", *vars(module)]
    for name in names:
        value = vars(module).get(name)
        if value is not None and not isinstance(value, (type, types.ModuleType)):
            if callable(getattr(value, LOAD, None)) and callable(getattr(value, SAVE, None)):
                return name
    return None
