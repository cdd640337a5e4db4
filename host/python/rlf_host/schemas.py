"""From a tool's JSON Schema to the simpler forms that other trainers take."""

from collections.abc import Iterator, Mapping
from typing import Any

#: The Python types of JSON Schema's types.
PYTHON_TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def simple_property(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A property with one type, for a form that has no unions: `type`, and `description` and `enum` if it has them. Of a
    union it takes the first part that is not `null`.

        >>> simple_property({"anyOf": [{"type": "null"}, {"type": "integer"}], "description": "Day of the month."})
        {'type': 'integer', 'description': 'Day of the month.'}
    """
    simple = next(_parts(schema), {})
    kept: dict[str, Any] = {"type": _type(simple)}
    for key, value in (("description", schema.get("description")), ("enum", simple.get("enum"))):
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


def _type(schema: Mapping[str, Any]) -> str:
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values:
        return next(name for name, python in PYTHON_TYPES.items() if isinstance(values[0], python))
    return "object" if "properties" in schema or "$ref" in schema else "string"
