"""From a type annotation to a JSON Schema, and from JSON to a value of that type.

| annotation | JSON |
|---|---|
| `str`, `int`, `float`, `bool`, `None` | the same |
| `Any`, or none | anything |
| `list[T]`, `Sequence[T]`, `set[T]`, `tuple[T, ...]`, `tuple[A, B]` | an array |
| `dict[str, T]`, `Mapping[str, T]` | an object |
| `A | B`, `Optional[A]`, `Literal[..]`, `Enum` | one of them |
| a dataclass, `TypedDict` or pydantic model | an object with its fields |
| `Annotated[T, "text"]` | T with a description |
| `Annotated[T, {"minimum": 0}]` | T with more keys of JSON Schema |

Other annotations are left to pydantic, if the file imports it.
"""

import collections.abc
import dataclasses
import enum
import inspect
import json
import sys
import types
import typing

from .docstrings import parsed
from .errors import Failure, InvalidPlugin

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}
_ARRAYS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set)
_QUALIFIERS = [vars(typing)[name] for name in ("Required", "NotRequired", "ReadOnly") if name in vars(typing)]
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class NoSchema(Exception):
    """A type has no JSON Schema."""


def schema(annotation):
    """The JSON Schema of a type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(annotation, *arguments)
    if annotation is inspect.Parameter.empty or annotation is typing.Any or annotation is object:
        return {}
    if annotation in _SIMPLE or annotation is None:
        return {"type": _SIMPLE.get(annotation, "null")}
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is typing.Literal:
        return _choice(arguments)
    if origin in _QUALIFIERS:
        return schema(arguments[0])
    kind = origin or annotation
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        items = [] if arguments == ((),) else [schema(item) for item in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if kind in _SETS:
        return {"type": "array", "items": schema(arguments[0]) if arguments else {}, "uniqueItems": True}
    if kind is tuple or kind in _ARRAYS:
        return {"type": "array", "items": schema(arguments[0]) if arguments else {}}
    if kind in _OBJECTS:
        if arguments and not (arguments[0] is str or _is_enum(arguments[0])):
            raise NoSchema(f"the keys of {annotation} are not text")
        found = {"type": "object", "additionalProperties": schema(arguments[1]) if arguments else True}
        return {**found, "propertyNames": schema(arguments[0])} if arguments and arguments[0] is not str else found
    if _is_enum(annotation):
        return _choice([member.value for member in annotation])
    if callable(getattr(annotation, "model_json_schema", None)):
        return annotation.model_json_schema()
    if dataclasses.is_dataclass(annotation):
        return _within(annotation, _dataclass)
    if typing.is_typeddict(annotation):
        return _within(annotation, _typed_dict)
    return _by_pydantic(annotation)


_open = []
"""The dataclasses and `TypedDict`s whose schemas are being made, from the outside in."""


def _within(kind, schema_of):
    """The schema of a type with fields, unless one of them has this type again."""
    if kind in _open:
        raise NoSchema(f"{kind.__name__} contains itself; write out as many levels as you need")
    _open.append(kind)
    try:
        return schema_of(kind)
    finally:
        _open.pop()


def with_definitions_at_root(found):
    """A schema with all `$defs` at its root, where references look for them. Pydantic puts them beside each model."""
    definitions = {}
    found = _without_definitions(found, definitions)
    return {**found, "$defs": definitions} if definitions else found


def _without_definitions(found, definitions):
    if isinstance(found, list):
        return [_without_definitions(item, definitions) for item in found]
    if not isinstance(found, dict):
        return found
    rest = {}
    for key, value in found.items():
        if key == "$defs":
            for name, definition in value.items():
                definition = _without_definitions(definition, definitions)
                if definitions.setdefault(name, definition) != definition:
                    raise NoSchema(f"there are two types named {name}; rename one")
        elif key in ("enum", "const", "default", "examples"):
            rest[key] = value
        elif key == "properties":
            rest[key] = {name: _without_definitions(part, definitions) for name, part in value.items()}
        else:
            rest[key] = _without_definitions(value, definitions)
    return rest


def _annotated(annotation, kind, *notes):
    """Texts are descriptions and dictionaries are keys of JSON Schema; other notes belong to pydantic."""
    if not all(isinstance(note, (str, dict)) for note in notes):
        return _by_pydantic(annotation)
    found = schema(kind)
    for note in notes:
        found = {**found, **({"description": note} if isinstance(note, str) else note)}
    return found


def _union(arguments):
    choices = [schema(argument) for argument in arguments]
    if all(set(choice) == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _choice(values):
    kinds = {_SIMPLE.get(type(value)) for value in values}
    if None in kinds:
        raise NoSchema("only text, numbers, booleans and None can be choices")
    found = {"enum": list(values)}
    return {"type": kinds.pop(), **found} if len(kinds) == 1 else found


def _object(properties, required, description):
    found = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"description": description, **found} if description else found


def _dataclass(kind):
    hints, (description, about) = typing.get_type_hints(kind, include_extras=True), parsed(kind)
    if description.startswith(f"{kind.__name__}("):
        # Python's own docstring of a dataclass without one.
        description = ""
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        properties[field.name] = described(schema(hints[field.name]), about.get(field.name), default)
    return _object(properties, required, description)


def _typed_dict(kind):
    hints, (description, about) = typing.get_type_hints(kind, include_extras=True), parsed(kind)
    properties = {name: described(schema(hint), about.get(name)) for name, hint in hints.items()}
    required = [name for name, hint in hints.items() if _is_required(kind, name, hint)]
    return _object(properties, required, description)


def _is_required(kind, name, hint):
    """Whether such a dictionary must have the key `name`. A class whose annotations are text does not know it."""
    while typing.get_origin(hint) in (*_QUALIFIERS, typing.Annotated):
        if typing.get_origin(hint) is not typing.Annotated and hint.__name__ in ("Required", "NotRequired"):
            return hint.__name__ == "Required"
        hint = typing.get_args(hint)[0]
    return name in kind.__required_keys__


def _by_pydantic(annotation):
    if "pydantic" in sys.modules:
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(annotation).json_schema()
        except Exception as error:
            raise NoSchema(f"pydantic has none for {annotation}: {error}") from None
    name = getattr(annotation, "__name__", None) or str(annotation)
    raise NoSchema(f"{name} is not a type that JSON has; use str, int, float, bool, a list, a dictionary or a dataclass")


def described(found, description=None, default=dataclasses.MISSING):
    """A schema with a description, unless it has one, and with a default, if JSON has it."""
    if description and "description" not in found:
        found = {**found, "description": description}
    if isinstance(default, enum.Enum):
        default = default.value
    if isinstance(default, (str, int, float, bool, list, dict)) and _has_json(default):
        found = {**found, "default": default}
    return found


def _has_json(value):
    """True if a value is one of JSON, with no integer that hosts cannot hold."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def _is_enum(annotation):
    return isinstance(annotation, type) and issubclass(annotation, enum.Enum)


def converted(annotation, value):
    """A value of JSON as a value of the type. The host has checked it against the type's schema."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        if not all(isinstance(note, (str, dict)) for note in arguments[1:]):
            return _validated(annotation, value)
        return converted(arguments[0], value)
    if origin in _QUALIFIERS:
        return converted(arguments[0], value)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, value)
    kind = origin or annotation
    if annotation is float and type(value) is int:
        return float(value)
    if annotation is int and type(value) is float:
        # JSON Schema calls 2.0 an integer.
        return int(value)
    if kind is tuple and isinstance(value, list):
        if arguments and arguments[-1] is not Ellipsis:
            return tuple(converted(item, part) for item, part in zip(arguments, value))
        return tuple(converted(arguments[0], part) for part in value) if arguments else tuple(value)
    if (kind in _ARRAYS or kind in _SETS) and isinstance(value, list):
        parts = [converted(arguments[0], part) for part in value] if arguments else value
        return parts if kind not in _SETS else (frozenset if kind is frozenset else set)(parts)
    if kind in _OBJECTS and isinstance(value, dict):
        key, item = arguments or (str, typing.Any)
        return {converted(key, name): converted(item, part) for name, part in value.items()}
    if _is_enum(annotation):
        return annotation(value)
    if callable(getattr(annotation, "model_json_schema", None)):
        return _validated(annotation, value)
    if dataclasses.is_dataclass(annotation) and isinstance(value, dict):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return annotation(**{name: converted(hints[name], part) for name, part in value.items()})
    if typing.is_typeddict(annotation) and isinstance(value, dict):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return {name: converted(hints[name], part) for name, part in value.items()}
    if annotation in _SIMPLE or annotation in (inspect.Parameter.empty, typing.Any, object, None) or origin is typing.Literal:
        return value
    return _validated(annotation, value)


def _one_of(arguments, value):
    """The first type of a union whose JSON the value is. Pydantic decides between its models."""
    if any(callable(getattr(argument, "model_json_schema", None)) for argument in arguments):
        return _validated(typing.Union[arguments], value)
    for argument in arguments:
        if fits(argument, value):
            return converted(argument, value)
    return converted(arguments[-1], value)


def fits(annotation, value):
    """Whether a value has the form that the annotation's schema describes."""
    try:
        found = with_definitions_at_root(schema(annotation))
    except NoSchema:
        return True
    return holds(found, value)


def holds(found, value):
    """Whether a value has the form that a schema describes, as far as `schema` makes schemas."""
    return _holds(found, value, found.get("$defs", {}))


def _holds(found, value, definitions):
    """Whether a value has the types, choices, fields and items of a schema."""
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return name not in definitions or _holds(definitions[name], value, definitions)
    if "enum" in found and value not in found["enum"]:
        return False
    if "anyOf" in found and not any(_holds(choice, value, definitions) for choice in found["anyOf"]):
        return False
    wanted = found.get("type", [])
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if wanted and not any(_is(name, value) for name in wanted):
        return False
    if isinstance(value, dict):
        fields, other = found.get("properties", {}), found.get("additionalProperties", True)
        if not set(found.get("required", ())) <= set(value) or other is False and not set(value) <= set(fields):
            return False
        other = other if isinstance(other, dict) else {}
        return all(_holds(fields.get(name, other), part, definitions) for name, part in value.items())
    if isinstance(value, list) and "prefixItems" in found:
        pairs = zip(found["prefixItems"], value)
        return len(found["prefixItems"]) == len(value) and all(_holds(item, part, definitions) for item, part in pairs)
    if isinstance(value, list):
        return all(_holds(found.get("items", {}), part, definitions) for part in value)
    return True


def _is(name, value):
    if name == "number":
        return type(value) in (int, float)
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    kinds = {"array": list, "object": dict, **{name: kind for kind, name in _SIMPLE.items()}}
    return type(value) is kinds[name]


def _validated(annotation, value):
    """By pydantic. What it finds wrong is a failure that the model reads."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(annotation).validate_python(value)
    except ValidationError as error:
        raise Failure(str(error)) from None


def check_function(decorator, function):
    """Refuses what a decorator cannot make a plugin of: anything but a function of the file."""
    if isinstance(function, str):
        raise InvalidPlugin(f"@rlf.{decorator}({function!r}): write @rlf.{decorator}(name={function!r})")
    if isinstance(function, type) or not hasattr(function, "__name__"):
        raise InvalidPlugin(f"@rlf.{decorator} is for functions, and {function!r} is none")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidPlugin(f"{function.__name__} is a generator; return a list in place of `yield`")
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if owner and not owner.endswith("<locals>"):
        raise InvalidPlugin(f"{function.__qualname__}: a method has no object to be called on; write a function outside of the class")


def parameters(function):
    """The parameters of a function with their annotations evaluated: a list of `inspect.Parameter`."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise InvalidPlugin(f"{function.__name__}: an annotation cannot be evaluated: {error}") from None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidPlugin(f"{function.__name__}: `*` and `**` parameters have no schema; name every parameter")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidPlugin(f"{function.__name__}: parameters before `/` have no names in JSON; remove the `/`")
    return list(signature.parameters.values())
