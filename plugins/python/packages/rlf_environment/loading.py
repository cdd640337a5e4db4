"""Files of environments, each executed once as a module of its own."""

import linecache
import sys
import types

from mcp.server.fastmcp import FastMCP

from .answers import INVALID, Refused, described
from .servers import Server
from .trl import TrlEnvironment


def module_name(server, file):
    """The name that the file's module has: the file's own, unless that is taken."""
    stem = file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    taken = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    return f"environment_{server}" if taken else stem


def executed(server, source, file):
    """The environment that a file makes; refuses with the file, the line and the exception."""
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
    try:
        return Server(server, module, made[0]) if made else TrlEnvironment(server, module)
    except Refused as refused:
        del sys.modules[module.__name__]
        raise Refused(INVALID, f"{file}: {refused}") from None
    except BaseException:
        del sys.modules[module.__name__]
        del FastMCP.made[before:]
        raise


def unloaded(server):
    """Forgets what `executed` made."""
    del sys.modules[server.module.__name__]
    linecache.cache.pop(server.module.__file__, None)
    if server.fastmcp is not None:
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
