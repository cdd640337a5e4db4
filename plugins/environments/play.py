"""Plays episodes in the environments of this folder, natively: load, call, save.

The environments need the packages pydantic and mcp. The mcp of ../python/packages is taken where it is there, for it is
what the sandbox has; RLF_ENVIRONMENTS=installed takes the installed package instead.
"""

import asyncio
import importlib.util
import json
import os
import pathlib
import random
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
PACKAGES = FOLDER.parent / "python" / "packages"
STATE_TOOLS = ("load_scenario", "save_scenario")


def uses_own_mcp():
    """Whether the project's own mcp is taken, rather than the installed one."""
    return (PACKAGES / "mcp" / "__init__.py").exists() and os.environ.get("RLF_ENVIRONMENTS") != "installed"


if uses_own_mcp() and str(PACKAGES) not in sys.path:
    sys.path.insert(0, str(PACKAGES))


def names():
    """The environments: files that begin with a capital letter."""
    return sorted(path.stem for path in FOLDER.glob("[A-Z]*.py"))


def load_module(name):
    """An environment as a module of its own, with its own `api`."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def registered(module):
    """All tools by name: description and schema of the arguments."""
    if uses_own_mcp():
        return {name: (tool.description, tool.parameters) for name, tool in module.mcp.tools.items()}
    return {tool.name: (tool.description, tool.inputSchema) for tool in asyncio.run(module.mcp.list_tools())}


def tools_of(module):
    """The tools that a model may call, out of `registered`."""
    return {name: about for name, about in registered(module).items() if name not in STATE_TOOLS}


class Refused(Exception):
    """A tool raised, or took not the arguments it was given."""


class Episode:
    """Some environments side by side, as one task has them."""

    def __init__(self, servers, seed):
        random.seed(seed)
        self.modules = {name: load_module(name) for name in servers}
        for name, scenario in servers.items():
            self.modules[name].load_scenario(scenario)

    def call(self, tool, arguments):
        """The answer of NAME-tool; raises `Refused` with its message."""
        name, _, function = tool.partition("-")
        if name not in self.modules or function in STATE_TOOLS:
            raise Refused(f"no tool {tool!r} in this episode")
        mcp = self.modules[name].mcp
        call = mcp.call if uses_own_mcp() else lambda *given: asyncio.run(mcp.call_tool(*given))
        try:
            return call(function, arguments)
        except Exception as error:
            raise Refused(str(error)) from error

    def state(self):
        """The complete states by name, as JSON has them."""
        return {name: json.loads(json.dumps(module.save_scenario())) for name, module in self.modules.items()}
