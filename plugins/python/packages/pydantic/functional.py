"""Validators and serializers of a model's author: the decorators, what they leave behind, and the nodes that call them."""

import inspect

from .errors import Invalid, Line, PydanticCustomError, PydanticUserError, ValidationError
from .node import AnyNode, Node
from .undefined import PydanticUndefined


class ValidationInfo:
    """What a validator may ask of where it is called."""

    __slots__ = ("config", "context", "data", "field_name", "mode")

    def __init__(self, state, data=None, field_name=None, config=None):
        self.context = state.context
        self.mode = "json" if state.json else "python"
        self.data = data
        self.field_name = field_name
        self.config = config


class Decorated:
    """A function of a model's class body, with what a decorator said about it."""

    def __init__(self, function, **about):
        self.function = function
        self.about = about

    def __get__(self, instance, owner=None):
        return self.function.__get__(instance, owner)

    def __set_name__(self, owner, name):
        self.name = name


def _unwrapped(function):
    return function.__func__ if isinstance(function, (classmethod, staticmethod)) else function


def field_validator(field, /, *fields, mode="after", check_fields=None, json_schema_input_type=None):
    """Has a method validate fields."""
    if callable(field):
        raise PydanticUserError(
            "`@field_validator` should be used with fields and keyword arguments, not bare. "
            "E.g. usage should be `@validator('<field_name>', ...)`",
            code="validator-no-fields",
        )

    def decorate(function):
        if not isinstance(function, (classmethod, staticmethod)):
            function = classmethod(function)
        return Decorated(function, kind="field", fields=(field, *fields), mode=mode)

    return decorate


def validator(field, /, *fields, pre=False, always=False, **_):
    """The older form of `field_validator`."""
    return field_validator(field, *fields, mode="before" if pre else "after")


def model_validator(*, mode):
    """Has a method validate a whole model."""

    def decorate(function):
        if mode != "after" and not isinstance(function, (classmethod, staticmethod)):
            function = classmethod(function)
        return Decorated(function, kind="model", mode=mode)

    return decorate


def field_serializer(*fields, mode="plain", when_used="always", **_):
    """Has a method dump fields."""
    return lambda function: Decorated(function, kind="serializer", fields=fields, mode=mode, when=when_used)


def model_serializer(function=None, /, *, mode="plain", when_used="always", **_):
    """Has a method dump a whole model."""
    if function is not None:
        return Decorated(function, kind="model-serializer", mode=mode, when=when_used)
    return lambda function: Decorated(function, kind="model-serializer", mode=mode, when=when_used)


class ComputedField(property):
    """A property that is dumped with the fields."""

    def __init__(self, function, alias=None, title=None, description=None, returns=None):
        super().__init__(function)
        self.alias, self.title, self.description, self.returns = alias, title, description, returns


def computed_field(function=None, /, *, alias=None, title=None, description=None, return_type=PydanticUndefined, **_):
    """Has a property dumped with the fields."""

    def decorate(function):
        getter = function.fget if isinstance(function, property) else getattr(function, "func", function)
        returns = getter.__annotations__.get("return") if return_type is PydanticUndefined else return_type
        return ComputedField(getter, alias, title, description or inspect.cleandoc(getter.__doc__ or "") or None, returns)

    return decorate if function is None else decorate(function)


class BeforeValidator:
    """In an annotation: called with what came in."""

    mode = "before"

    def __init__(self, func, **_):
        self.func = func


class AfterValidator(BeforeValidator):
    """In an annotation: called with what was validated."""

    mode = "after"


class WrapValidator(BeforeValidator):
    """In an annotation: called with what came in and with the validation."""

    mode = "wrap"


class PlainValidator(BeforeValidator):
    """In an annotation: called instead of the validation."""

    mode = "plain"


class PlainSerializer:
    """In an annotation: dumps the value."""

    def __init__(self, func, return_type=None, when_used="always"):
        self.func, self.when = func, when_used


class WithJsonSchema:
    """In an annotation: the JSON Schema instead of the one that would be made."""

    def __init__(self, json_schema, mode=None):
        self.json_schema = json_schema


class InstanceOf:
    """`InstanceOf[X]`: an object of that class, and nothing made into one."""

    def __class_getitem__(cls, item):
        from typing import Annotated

        return Annotated[item, cls()]


def wants(function, most):
    """Whether a function takes one argument more than it must: the information about where it is called."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    places = [parameter for parameter in parameters if parameter.kind <= 1 and parameter.default is parameter.empty]
    return len(places) > most


def called(function, value, *arguments):
    """What a validator returns; its `ValueError` and `AssertionError` are errors of the value."""
    try:
        return function(*arguments)
    except ValidationError as error:
        raise Invalid(
            [Line(line.kind, line.input, line.context, line.place, line.text) for line in error._lines]
        ) from error
    except PydanticCustomError as error:
        raise Invalid([Line(error.type, value, error.context, (), error.message())]) from error
    except ValueError as error:
        raise Invalid([Line("value_error", value, {"error": error})]) from error
    except AssertionError as error:
        raise Invalid([Line("assertion_error", value, {"error": error})]) from error


class FunctionNode(Node):
    """A type with a validator of the author's around it."""

    def __init__(self, inner, function, mode, field=None):
        self.inner, self.function, self.mode, self.field = inner, function, mode, field
        self.informed = wants(function, 2 if mode == "wrap" else 1)
        name = getattr(function, "__name__", repr(function))
        around = "" if mode == "plain" else f", {inner.label}"
        self.label = f"function-{mode}[{name}(){around}]"
        self.titled = inner.titled

    def information(self, state):
        return (ValidationInfo(state, getattr(state, "data", None), self.field),) if self.informed else ()

    def validate(self, value, state):
        extra = self.information(state)
        if self.mode == "after":
            return called(self.function, value, self.inner.validate(value, state), *extra)
        if self.mode == "before":
            return self.inner.validate(called(self.function, value, value, *extra), state)
        if self.mode == "plain":
            return called(self.function, value, value, *extra)

        def handler(inner, _=None):
            try:
                return self.inner.validate(inner, state)
            except Invalid as error:
                raise ValidationError(self.label, error.lines) from None

        return called(self.function, value, value, handler, *extra)

    def dump(self, value, how):
        return self.inner.dump(value, how)

    def holds(self, value):
        return self.inner.holds(value)

    def schema(self, schemas):
        return {} if self.mode == "plain" else self.inner.schema(schemas)


class RuleNode(Node):
    """A type with rules that are not its own, such as bounds around a union."""

    CHECKS = (
        ("gt", "greater_than", lambda a, b: a > b), ("ge", "greater_than_equal", lambda a, b: a >= b),
        ("lt", "less_than", lambda a, b: a < b), ("le", "less_than_equal", lambda a, b: a <= b),
        ("multiple_of", "multiple_of", lambda a, b: a % b == 0),
    )  # fmt: skip

    def __init__(self, inner, rules):
        self.inner, self.rules = inner, rules
        self.label = f"function-after[rules(), {inner.label}]"
        self.titled = inner.titled

    def validate(self, value, state):
        found = self.inner.validate(value, state)
        for name, kind, holds in self.CHECKS:
            if name in self.rules:
                try:
                    fits = holds(found, self.rules[name])
                except TypeError:
                    raise TypeError(f"Unable to apply constraint '{name}' to supplied value {found}") from None
                if not fits:
                    raise Invalid([Line(kind, value, {name: self.rules[name]})])
        for name, kind, wrong in (("min_length", "too_short", int.__lt__), ("max_length", "too_long", int.__gt__)):
            if name in self.rules:
                try:
                    size = len(found)
                except TypeError:
                    raise TypeError(f"Unable to apply constraint '{name}' to supplied value {found}") from None
                if wrong(size, self.rules[name]):
                    context = {"field_type": "Value", name: self.rules[name], "actual_length": size}
                    raise Invalid([Line(kind, value, context)])
        return found

    def dump(self, value, how):
        return self.inner.dump(value, how)

    def holds(self, value):
        return self.inner.holds(value)

    def schema(self, schemas):
        return self.inner.schema(schemas)


class DumpedNode(Node):
    """A type with a dump of the author's."""

    def __init__(self, inner, serializer):
        self.inner, self.serializer, self.label, self.titled = inner, serializer, inner.label, inner.titled

    def validate(self, value, state):
        return self.inner.validate(value, state)

    def dump(self, value, how):
        if not used(self.serializer.when, value, how):
            return self.inner.dump(value, how)
        return AnyNode().dump(self.serializer.func(value), how)

    def schema(self, schemas):
        return self.inner.schema(schemas)


def used(when, value, how):
    """Whether a serializer is to be called."""
    if when.endswith("unless-none") and value is None:
        return False
    return how.json or not when.startswith("json")


class DescribedNode(Node):
    """A type with a JSON Schema of the author's."""

    def __init__(self, inner, schema):
        self.inner, self.given, self.label, self.titled = inner, schema, inner.label, inner.titled

    def validate(self, value, state):
        return self.inner.validate(value, state)

    def dump(self, value, how):
        return self.inner.dump(value, how)

    def schema(self, schemas):
        return dict(self.given)
