"""Tools that were written for other frameworks, in files that import only the framework's decorator.

| framework | the file has |
|---|---|
| MCP | `mcp = FastMCP(..)` and `@mcp.tool()` |
| LangChain | `from langchain_core.tools import tool`, or from `langchain.tools`, and `@tool` |
| verl | `from verl.tools.function_tool import function_tool` and `@function_tool` |

Names, descriptions and schemas are those of the framework for FastMCP, and made as for `@rlf.tool` for the others. What
a tool raises is shown to the model, as these frameworks do.
"""

import dataclasses
import sys
import types

import rlf
from rlf import tools
from rlf.schemas import converted, schema

FRAMEWORKS = ("langchain", "verl")
"""Words in the source of a file that imports from a module of `offer`."""

_MODULES = ("langchain_core", "langchain_core.tools", "langchain", "langchain.tools", "verl", "verl.tools", "verl.tools.function_tool")


@dataclasses.dataclass(frozen=True)
class FastMCPTool:
    """A tool of a FastMCP server."""

    server: object
    name: str
    description: str
    input_schema: dict
    output_schema: None = None
    hints: tuple = ()

    def call(self, arguments, context):
        """The observation of a call: text."""
        from mcp.server.fastmcp.exceptions import ToolError

        try:
            return rlf.Observation(["\n".join(self.server.call(self.name, arguments))])
        except ToolError as failed:
            raise rlf.Failure(str(failed)) from None


@dataclasses.dataclass(frozen=True)
class ForeignTool(tools.Tool):
    """A function with the decorator of another framework."""

    model: object = None
    """The pydantic model of all arguments, which has their defaults."""
    has_artifact: bool = False
    """Whether the function returns its result and an artifact, which the model does not read."""

    def call(self, arguments, context):
        """The observation of a call; what the function raises is a failure that the model reads."""
        try:
            return super().call(arguments, context)
        except (rlf.Failure, MemoryError):
            raise
        except Exception as fault:
            raise rlf.Failure(f"error: {type(fault).__name__}: {fault}") from None

    def result(self, arguments, context):
        """The result of the function, with the defaults of `model` and without the artifact."""
        if self.model is not None:
            validated = converted(self.model, arguments)
            arguments = {name: getattr(validated, name) for name in type(validated).model_fields}
        result = super().result(arguments, context)
        return result[0] if self.has_artifact else result


def register(function, name=None, description=None, input_schema=None, **more):
    """Makes a function with another framework's decorator a tool."""
    # These frameworks promise nothing of results.
    made = {**vars(tools.made_from(function, name, description)), "output_schema": None}
    if input_schema is not None:
        made["input_schema"] = input_schema
    tool = ForeignTool(**made, **more)
    if tool.name in tools.registered():
        raise rlf.InvalidPlugin(f"there are two tools named {tool.name!r}")
    tools.registered()[tool.name] = tool
    return function


def langchain_tool(named=None, *, description=None, args_schema=None, response_format="content", **ignored):
    """`tool` of LangChain: bare, with a name, or with options. `args_schema` is a model or a JSON Schema."""

    def decorator(function):
        name = named if isinstance(named, str) else None
        model = args_schema if isinstance(args_schema, type) else None
        found = args_schema if model is None else schema(model)
        has_artifact = response_format == "content_and_artifact"
        return register(function, name, description, found, model=model, has_artifact=has_artifact)

    return decorator(named) if callable(named) else decorator


def verl_tool(named=None, *, schema=None):
    """`function_tool` of verl: bare, with a name, or with a schema in OpenAI's form."""

    def decorator(function):
        given = (schema or {}).get("function", {})
        name = (named if isinstance(named, str) else None) or given.get("name")
        return register(function, name, given.get("description"), given.get("parameters"))

    return decorator(named) if callable(named) else decorator


def offer():
    """Lets a file import the decorators."""
    for name in _MODULES:
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    sys.modules["langchain_core.tools"].tool = sys.modules["langchain.tools"].tool = langchain_tool
    sys.modules["verl.tools.function_tool"].function_tool = verl_tool


def adopt(module):
    """Registers the tools of the FastMCP servers that a file made."""
    mcp = sys.modules.get("mcp.server.fastmcp")
    if mcp is None:
        return
    for server in [value for value in vars(module).values() if isinstance(value, mcp.FastMCP)]:
        for tool in server.tools.values():
            made = FastMCPTool(server, tool.name, tool.description or "", tool.parameters)
            if tool.name in tools.registered():
                raise rlf.InvalidPlugin(f"there are two tools named {tool.name!r}")
            tools.registered()[tool.name] = made
