"""Files of tools, each executed once as a module of its own."""

import copy
import linecache
import sys
import types

from mcp.server.fastmcp import FastMCP
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

    def load_scenario(self, scenario):
        """Puts the server into a state; raises whatever the file does."""
        if self.api is not None:
            self.api.load_scenario(copy.deepcopy(scenario))
        elif LOAD in self.fastmcp.tools:
            self.fastmcp.tools[LOAD].fn(copy.deepcopy(scenario))
        else:
            raise Refused(INVALID, f"server {self.name!r} has no load_scenario, so a task cannot give it a scenario")

    def save_scenario(self):
        """Its state, as the file tells it."""
        if self.api is not None:
            return plain(self.api.save_scenario())
        if SAVE in self.fastmcp.tools:
            return plain(self.fastmcp.tools[SAVE].fn())
        return {}

    def call(self, tool, arguments):
        """`(text, failed)`."""
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


def plain(value):
    """The JSON form of a state: models, dates and sets in it become what their dumps are."""
    from pydantic.serialization import to_jsonable_python

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


def module_name(server, file):
    """The name that the file's module has: the file's own, unless that is taken."""
    stem = file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    taken = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    return f"environment_{server}" if taken else stem


def executed(server, source, file):
    """The `Server` that a file makes; refuses with the file, the line and the exception."""
    module = types.ModuleType(module_name(server, file))
    module.__file__ = file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    before = len(FastMCP.made)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    except BaseException as fault:
        del sys.modules[module.__name__]
        del FastMCP.made[before:]
        raise Refused(INVALID, f"{where(fault, file)}: {described(fault)}{hint(fault)}") from None
    made = [value for value in vars(module).values() if isinstance(value, FastMCP)] or FastMCP.made[before:]
    if not made:
        del sys.modules[module.__name__]
        raise Refused(INVALID, f"{file}: makes no FastMCP; write `mcp = FastMCP(name={server!r})` and `@mcp.tool()`")
    return Server(server, module, made[0])


def unloaded(server):
    """Forgets what `executed` made."""
    del sys.modules[server.module.__name__]
    linecache.cache.pop(server.module.__file__, None)
    FastMCP.made.remove(server.fastmcp)


def where(fault, file):
    """`file:line`, of the innermost line of the file that the exception passed."""
    line = fault.lineno if isinstance(fault, SyntaxError) and fault.filename == file else None
    trace = fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return file if line is None else f"{file}:{line}"


def hint(fault):
    """Advice about a module that the sandbox does not have."""
    if isinstance(fault, ImportError) and fault.name and not fault.name.startswith(("pydantic", "mcp")):
        return f"; the sandbox has the standard library, pydantic and mcp, but neither a network nor {fault.name!r}"
    return ""
