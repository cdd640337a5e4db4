"""A function's parameters and result as models: what arguments and structured results are validated by."""

import inspect
import json
import types
import typing

from mcp.types import CallToolResult
from pydantic import BaseModel, Field, RootModel, WithJsonSchema, create_model
from pydantic.errors import PydanticUserError

from .exceptions import InvalidSignature


class ArgumentsBase(BaseModel):
    model_config = {"arbitrary_types_allowed": True}


def signature_of(function):
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise InvalidSignature(f"Unable to evaluate type annotations for callable {function.__name__!r}") from error


def arguments_model(function, signature, skipped):
    """The model of a function's arguments."""
    fields = {}
    for name, parameter in signature.parameters.items():
        if name.startswith("_"):
            raise InvalidSignature(f"Parameter {name} of {function.__name__} cannot start with '_'")
        if name == skipped:
            continue
        annotation, beside, field = parameter.annotation, [], Field()
        if annotation is inspect.Parameter.empty:
            annotation = typing.Any
            beside.append(WithJsonSchema({"title": name, "type": "string"}))
        if callable(getattr(BaseModel, name, None)):
            # A model has a method with this name.
            field, name = Field(alias=name), f"field_{name}"
        annotated = typing.Annotated[(annotation, *beside, field)]
        default = parameter.default
        fields[name] = annotated if default is inspect.Parameter.empty else (annotated, default)
    return create_model(f"{function.__name__}Arguments", __base__=ArgumentsBase, __module__=function.__module__, **fields)


def parsed(model, arguments):
    """The arguments, of which those that came as JSON in a text where no text is asked for are parsed."""
    fields = {}
    for name, field in model.model_fields.items():
        fields[name] = field
        if field.alias:
            fields[field.alias] = field
    found = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, str) and name in fields and fields[name].annotation is not str:
            try:
                inner = json.loads(value)
            except json.JSONDecodeError:
                continue
            # A text or a number inside was most likely meant as the original text.
            if not isinstance(inner, (str, int, float)):
                found[name] = inner
    return found


def keywords(model, validated):
    """The validated arguments by the names that the function has for them."""
    return {field.alias or name: vars(validated)[name] for name, field in model.model_fields.items()}


def result_model(function, signature):
    """`(model, wrapped)` of a function's result; no model where results are shown as they are."""
    returns = signature.return_annotation
    bare = typing.get_args(returns)[0] if typing.get_origin(returns) is typing.Annotated else returns
    if bare is inspect.Signature.empty or (isinstance(bare, type) and issubclass(bare, CallToolResult)):
        # Without an annotation `inspect._empty` is used, which says nothing about fields.
        return None, False
    model, wrapped = chosen(function.__name__, returns, bare)
    if model is None:
        return None, False
    try:
        schema = model.model_json_schema()
    except (PydanticUserError, TypeError, ValueError):
        return None, False
    model.__pydantic_output_schema__ = schema
    return model, wrapped


def chosen(name, annotation, bare):
    """Which model a result has, by the kind of its annotation."""
    if isinstance(bare, types.GenericAlias):
        inner = typing.get_args(bare)
        if typing.get_origin(bare) is dict and len(inner) == 2 and inner[0] is str:
            return dictionary(name, bare), False
    elif isinstance(bare, type) and bare is not type(None):
        if issubclass(bare, BaseModel):
            return bare, False
        if bare not in (str, int, float, bool, bytes):
            return of_class(bare), False
    try:
        return create_model(f"{name}Output", result=annotation), True
    except PydanticUserError:
        return None, False


def of_class(kind):
    """The model of a class with annotations; none where it has none, such as `dict` and `list`."""
    hints = typing.get_type_hints(kind)
    if not hints:
        return None
    fields = {}
    required = getattr(kind, "__required_keys__", None)
    for field, annotation in hints.items():
        if required is not None:
            fields[field] = annotation if field in required else (annotation, None)
        elif not field.startswith("_"):
            fields[field] = (annotation, getattr(kind, field)) if hasattr(kind, field) else annotation
    try:
        return create_model(kind.__name__, __config__={"from_attributes": True}, **fields)
    except PydanticUserError:
        return None


def dictionary(name, annotation):
    try:
        model = RootModel[annotation]
    except PydanticUserError:
        return None
    model.__name__ = model.__qualname__ = f"{name}DictOutput"
    return model


__all__ = ["arguments_model", "keywords", "parsed", "result_model", "signature_of"]
