"""Modules that come with a program, compiled beforehand."""

from .sound import __builtins__  # isort: skip

import importlib.abc
import importlib.machinery
import marshal
import sys

_dumps, _loads = marshal.dumps, marshal.loads


def compile_module(name, source):
    """The module as bytes for `Modules`; raises what python3 raises when it cannot be compiled."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise SyntaxError(f"{name!r} is no name that a module can be imported by")
    code = compile(source, file_of(name), "exec", dont_inherit=True)
    return _dumps((source, code))


def file_of(name):
    """The name of the module in tracebacks."""
    return name.replace(".", "/") + ".py"


class Modules(importlib.abc.InspectLoader):
    """Finds the modules that came with a program, before any other of the same name."""

    def __init__(self, modules):
        self.modules = dict(modules)
        self.packages = {name[:dot] for name in self.modules for dot in dots(name)}

    def find_spec(self, name, path=None, target=None):
        if name in self.modules:
            origin = file_of(name)
        elif name in self.packages:
            # A folder that would contain the named modules.
            origin = None
        else:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=origin, is_package=name in self.packages)
        spec.has_location = origin is not None
        return spec

    def is_package(self, name):
        return name in self.packages

    def get_code(self, name):
        data = self.modules.get(name)
        if data is None:
            return compile("", file_of(name), "exec")
        return _loads(data)[1]

    def get_source(self, name):
        data = self.modules.get(name)
        if data is None:
            raise ImportError(f"there is no source of {name}", name=name)
        return _loads(data)[0]


def dots(name):
    """The ends of the names of the packages that contain the module `name`."""
    return [index for index, letter in enumerate(name) if letter == "."]


def offer(modules):
    """Makes `modules`, pairs of name and bytes, importable; those that lay there before by the same name are forgotten."""
    if not modules:
        return
    for name, _ in modules:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Modules(modules))


