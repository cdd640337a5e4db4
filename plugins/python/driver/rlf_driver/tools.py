"""`from tools import NAME`: the tools that the operator opens to programs, as functions. Without any, there is no such module."""

from .sound import __builtins__  # isort: skip

import importlib.abc
import importlib.machinery
import json

from . import run

NAME = "tools"

_dumps, _loads = json.dumps, json.loads


class ToolError(Exception):
    """A call that did not end well. Its text is what a model would read."""


class Tools(importlib.abc.Loader):
    """Finds the module of that name, after the program's own files."""

    def __init__(self, definitions):
        self.definitions = definitions

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != NAME:
            return None
        # Nobody answers in the warm-up.
        ask = getattr(run.host(), "ask", None)
        definitions = _loads(ask("tools.list", "")) if ask else None
        # Without the gate, there is an error in place of the list.
        if not definitions or not isinstance(definitions, list):
            return None
        return importlib.machinery.ModuleSpec(NAME, cls(definitions))

    def exec_module(self, module):
        functions = [function(definition) for definition in self.definitions]
        module.__all__ = [made.__name__ for made in functions]
        module.__doc__ = "The tools that programs can call here: " + ", ".join(module.__all__)
        for made in functions:
            setattr(module, made.__name__, made)
        ToolError.__module__ = NAME
        module.ToolError = ToolError

        def missing(name):
            raise AttributeError(f"there is no tool {name!r} here; there are: {', '.join(module.__all__)}")

        module.__getattr__ = missing


def function(definition):
    """A tool as a function, with its parameters in the order of the schema."""
    name = definition["name"]
    schema = definition["input_schema"]
    properties = list(schema.get("properties", ()))

    def call(*positional, **arguments):
        if len(positional) > len(properties):
            raise TypeError(f"{name}() takes {len(properties)} positional arguments but {len(positional)} were given")
        for parameter, value in zip(properties, positional):
            if parameter in arguments:
                raise TypeError(f"{name}() got multiple values for argument {parameter!r}")
            arguments[parameter] = value
        request = [{"name": name, "arguments": _dumps(arguments)}]
        answers = _loads(run.host().ask("tools.invoke", _dumps(request)))
        return result(answers[0] if isinstance(answers, list) else answers)

    call.__name__ = call.__qualname__ = name.replace("-", "_")
    call.__module__ = NAME
    shown = ", ".join(parameter(schema, key) for key in properties)
    call.__doc__ = f"{call.__name__}({shown})\n\n{definition['description']}"
    return call


def parameter(schema, name):
    """A parameter as a signature shows it."""
    if name in schema.get("required", ()):
        return name
    about = schema["properties"][name]
    default = about.get("default") if isinstance(about, dict) else None
    return f"{name}={default!r}"


def result(answer):
    """What a call returns: its text, or its value if it shows one value and no text."""
    if "error" in answer:
        raise ToolError(f"{answer['error']['kind']}: {answer['error']['message']}")
    content = (answer["observation"] or {"content": ()})["content"]
    text = "".join(part["text"] if "text" in part else f"[{part['media_type']}]" for part in content if "structured" not in part)
    if answer["ended"] != "ok":
        raise ToolError(text or answer["ended"])
    values = [part["structured"] for part in content if "structured" in part]
    if len(values) == 1 and len(content) == 1:
        return _loads(values[0]) if isinstance(values[0], str) else values[0]
    return text + "".join(value if isinstance(value, str) else _dumps(value) for value in values)
