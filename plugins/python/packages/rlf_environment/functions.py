"""Tools that are single functions, each with its source: the rows of FTRL's data."""

import json
import linecache
import types

from mcp.server.fastmcp.exceptions import out_of_memory

from .answers import INVALID, Refused, described
from .code import Code

CLEAN, PUBLISHED = "clean", "published"


class Function:
    """One tool.

    With `clean` scoping its source is a module: imports, constants and helpers at its top are visible in the function.
    With `published` it is what the data's own executor makes of it: the source is executed inside a function, so what its
    top binds is local to that and not visible in the tool's body, and the name is evaluated there; a body that needs
    its own imports fails with a `NameError`. What the executor's file imports itself is visible.
    """

    def __init__(self, about, scoping):
        self.name, self.source = about["name"], about["source"]
        self.scoping = scoping
        self.file = f"<function {self.name}>"
        self.tool = {
            "name": self.name,
            "description": about.get("description") or "",
            "input_schema": about.get("parameters") or {"type": "object", "properties": {}},
        }
        self.code = None

    def loaded(self):
        """The namespace of its own, executed at the first call and kept."""
        if self.code is None:
            module = types.ModuleType(self.name)
            linecache.cache[self.file] = (len(self.source), None, self.source.splitlines(keepends=True), self.file)
            exec(compile(self.source, self.file, "exec", dont_inherit=True), vars(module))
            if self.name not in vars(module):
                raise NameError(f"name {self.name!r} is not defined")
            self.code = Code(module)
        return vars(self.code.module)[self.name]

    def call(self, arguments):
        """`(text, failed)`."""
        try:
            if self.scoping == PUBLISHED:
                return shown_as_published(published(self.name, arguments, self.source)), False
            return shown(self.loaded()(**arguments)), False
        except BaseException as fault:
            if out_of_memory(fault):
                raise
            if self.scoping == PUBLISHED:
                try:
                    return f"an error occured when call {self.name}: {fault}", True
                except BaseException:
                    pass
            return f"error: {described(fault)}", True


def published(name, arguments, code):
    """A call as the data's executor makes it: executed anew each time, with what a function's locals are until Python 3.12."""
    scope = executor_globals()
    local = {"name": name, "arguments": arguments, "code": code, "kwargs": {}}
    exec(code, scope, local)
    return eval(name, scope, local)(**arguments)


def executor_globals():
    """The names at the top of the executor's own file that the sandbox has too; a tool's body sees these by accident."""
    from copy import deepcopy
    from hashlib import sha256
    from time import sleep

    return {"__name__": "utils.utils", "json": json, "deepcopy": deepcopy, "sha256": sha256, "sleep": sleep}


def shown(result):
    """A text as it is, all else as JSON where it has one."""
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(result)


def shown_as_published(result):
    """Dictionaries and lists as JSON, all else as `str` has it; what JSON has not is an error."""
    if type(result) in (dict, list):
        return json.dumps(result, ensure_ascii=False)
    return result if type(result) is str else str(result)


def functions_of(task):
    """The task's functions by name."""
    scoping = task.get("scoping", CLEAN)
    if scoping not in (CLEAN, PUBLISHED):
        raise Refused(INVALID, f'scoping is "clean" or "published", not {scoping!r}')
    given = task.get("functions") or []
    if not isinstance(given, list):
        raise Refused(INVALID, "functions has to be a list")
    found = {}
    for place, about in enumerate(given):
        if not isinstance(about, dict) or not all(isinstance(about.get(key), str) for key in ("name", "source")):
            raise Refused(INVALID, f"functions[{place}] has to be an object with the texts name and source")
        if about["name"] in found:
            raise Refused(INVALID, f"functions[{place}]: there are two functions named {about['name']!r}")
        found[about["name"]] = Function(about, scoping)
    return found
