"""From a tool's JSON Schema to the simpler forms that other trainers take."""

import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from .plugins import Tool

#: The Python types of JSON Schema's types.
PYTHON_TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def simple_property(schema: Any) -> dict[str, Any]:
    """A property with one type, for a form that has no unions: `type`, and `description` and `enum` if it has them. Of a
    union it takes the first part that is not `null`.

        >>> simple_property({"anyOf": [{"type": "null"}, {"type": "integer"}], "description": "Day of the month."})
        {'type': 'integer', 'description': 'Day of the month.'}
    """
    if not isinstance(schema, Mapping):
        return {"type": "string"}
    simple = next(_parts(schema), {})
    values = [value for value in simple.get("enum", ()) if value is not None]
    kept: dict[str, Any] = {"type": _type(simple, values)}
    for key, value in (("description", schema.get("description")), ("enum", values)):
        if value:
            kept[key] = value
    return kept


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of a union that are not `null`."""
    named = schema.get("type")
    if isinstance(named, list):
        yield from ({**schema, "type": one} for one in named if one != "null")
    elif named is None and (choices := schema.get("anyOf") or schema.get("oneOf")):
        for choice in choices:
            yield from _parts(choice)
    elif named != "null":
        yield schema


def _type(schema: Mapping[str, Any], values: list[Any]) -> str:
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    for value in values or [schema.get("const")]:
        for name, python in PYTHON_TYPES.items():
            # True is an int too.
            if type(value) is python:
                return name
    return "object" if "properties" in schema or "$ref" in schema else "string"


def check_parameter(tool: Tool, name: str) -> None:
    """Refuses a parameter that no Python function can have, for trainers that read a function's signature."""
    if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
        raise ValueError(f"tool `{tool.name}` has a parameter `{name}`, which is no name in Python; rename it in the tool")


def default_of(schema: Any) -> Any:
    """The default of a property, or None."""
    return schema.get("default") if isinstance(schema, Mapping) else None
