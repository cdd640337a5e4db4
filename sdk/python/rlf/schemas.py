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
        return {"type": "object", "additionalProperties": schema(arguments[1]) if arguments else True}
    if _is_enum(annotation):
        return _choice([member.value for member in annotation])
    if callable(getattr(annotation, "model_json_schema", None)):
        return annotation.model_json_schema()
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation)
    if typing.is_typeddict(annotation):
        return _typed_dict(annotation)
    return _by_pydantic(annotation)


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
    required = [name for name in hints if name in kind.__required_keys__]
    return _object(properties, required, description)


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
    if default is not dataclasses.MISSING and isinstance(default, (str, int, float, bool, list, dict)):
        found = {**found, "default": default}
    return found


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
    """The first type of a union whose JSON the value is."""
    for argument in arguments:
        if fits(argument, value):
            return converted(argument, value)
    return converted(arguments[-1], value)


def fits(annotation, value):
    """Whether a value has the JSON type that the annotation has, and the fields that it requires."""
    try:
        found = schema(annotation)
    except NoSchema:
        return True
    if "enum" in found:
        return value in found["enum"]
    if "anyOf" in found:
        return any(fits(argument, value) for argument in typing.get_args(annotation))
    wanted = found.get("type")
    if wanted is None:
        return True
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if not any(_is(name, value) for name in wanted):
        return False
    return not isinstance(value, dict) or set(found.get("required", ())) <= set(value)


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
