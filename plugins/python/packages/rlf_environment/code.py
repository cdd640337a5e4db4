"""The values that the code of a file keeps between calls, beside the object that has its state: variables of its module, attributes of its
classes and functions, defaults that a function changes, and variables that a function has from the one it was made in."""

import collections
import enum
import types

from mcp.server.fastmcp import FastMCP

# Names in every module.
_MODULE = frozenset(("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__builtins__", "__cached__", "__annotations__"))
_FIXED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, FastMCP)
_CONTAINERS = (list, dict, set, bytearray, collections.deque)


class Code:
    """A module that was loaded; its classes and functions by their paths, which are the same wherever it is loaded."""

    def __init__(self, module):
        self.module = module
        self.begins = dict(vars(module))
        self.classes = dict(own_classes(module))
        self.functions = dict(own_functions(module, self.classes))
        # Functions of other kinds may have attributes, which is quick to check.
        self.keeping = {path for path, function in self.functions.items() if any(self.held_by(function))}

    def held(self, without=()):
        """All of it, for one pickle, so that what is shared stays shared; `without` are names of variables."""
        variables, gone = self.variables()
        return (
            {name: value for name, value in variables.items() if name not in without and not isinstance(value, FastMCP)},
            gone,
            {path: found for path, cls in self.classes.items() if (found := attributes(cls))},
            {path: self.held_by(function) for path, function in self.functions.items() if path in self.keeping or vars(function)},
        )

    def put_back(self, held):
        variables, gone, classes, functions = held
        vars(self.module).update(variables)
        for name in gone:
            vars(self.module).pop(name, None)
        for path, values in classes.items():
            for name, value in values.items():
                setattr(self.classes[path], name, value)
        for path, (values, defaults, keywords, cells) in functions.items():
            function = self.functions[path]
            vars(function).update(values)
            if defaults:
                function.__defaults__ = tuple(defaults.get(at, value) for at, value in enumerate(function.__defaults__))
            if keywords:
                function.__kwdefaults__.update(keywords)
            for at, value in cells.items():
                function.__closure__[at].cell_contents = value

    def variables(self):
        """The names and values that the module has, but for what it was loaded with and cannot be changed in itself:
        functions, classes and the like. Beside them, the names that it has no more."""
        now = {name: value for name, value in vars(self.module).items() if name not in _MODULE}
        begins = self.begins
        found = {name: value for name, value in now.items() if not (is_fixed(value) and begins.get(name, _MODULE) is value)}
        gone = [name for name in begins if name not in now and name not in _MODULE]
        return {name: found[name] for name in sorted(found)}, sorted(gone)

    def held_by(self, function):
        """Its attributes, and by their places the defaults and the variables of outer functions that it may change."""
        return (
            {name: value for name, value in vars(function).items() if not name.startswith("__")},
            {at: value for at, value in enumerate(function.__defaults__ or ()) if self.may_change(value)},
            {name: value for name, value in (function.__kwdefaults__ or {}).items() if self.may_change(value)},
            {at: value for at, value in outer(function) if not is_fixed(value)},
        )

    def may_change(self, value):
        return isinstance(value, _CONTAINERS) or type(value).__module__ == self.module.__name__


def is_fixed(value):
    """Whether it can be replaced, but not changed."""
    return isinstance(value, _FIXED) or type(value).__module__ == "typing"


def outer(function):
    """Place and value of the variables that it has from the function it was made in, but for Python's own, as `__class__`."""
    for at, (name, cell) in enumerate(zip(function.__code__.co_freevars, function.__closure__ or ())):
        if name.startswith("__"):
            continue
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        yield at, value


def attributes(cls):
    """The attributes of a class that a method may change: neither methods nor descriptors."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__") and not is_pythons(cls, name)
    }


def is_pythons(cls, name):
    """Whether Python gives it to abstract classes, or pydantic to models."""
    return name == "_abc_impl" or (name == "model_config" and hasattr(cls, "__pydantic_fields__"))


def own_classes(module):
    """Path and class, of those that the file makes: at its top and in others."""
    seen = set()

    def within(path, holder):
        for name, value in sorted(vars(holder).items()):
            if isinstance(value, type) and value.__module__ == module.__name__ and id(value) not in seen:
                seen.add(id(value))
                if not issubclass(value, enum.Enum):
                    yield (*path, name), value
                yield from within((*path, name), value)

    return within((), module)


def own_functions(module, classes):
    """Path and function, of those that the file makes: at its top, in classes, and in the variables of other functions."""
    seen = set()

    def within(path, function):
        if not isinstance(function, types.FunctionType) or function.__module__ != module.__name__ or id(function) in seen:
            return
        seen.add(id(function))
        yield path, function
        for at, value in outer(function):
            yield from within((*path, at), value)

    for path, holder in [((), module), *classes.items()]:
        for name, value in sorted(vars(holder).items()):
            for at, function in enumerate(functions_of(value)):
                yield from within((*path, name, at), function)


def functions_of(value):
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    return (getattr(value, "__func__", value),)
