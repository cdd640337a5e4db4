"""Types that are objects of some class: identifiers, decimals, paths, functions, and classes that pydantic knows nothing of."""

from .errors import PydanticInvalidForJsonSchema, invalid
from .node import LAX, STRICT, Node


class InstanceNode(Node):
    """Any class, where `arbitrary_types_allowed`."""

    def __init__(self, kind):
        self.kind = kind
        self.label = f"is-instance[{kind.__name__}]"

    def validate(self, value, state):
        if not isinstance(value, self.kind):
            raise invalid("is_instance_of", value, **{"class": self.kind.__name__})
        if type(value) is not self.kind:
            state.floor(STRICT)
        return value

    def holds(self, value):
        return isinstance(value, self.kind)

    def schema(self, schemas):
        raise PydanticInvalidForJsonSchema(f"Cannot generate a JsonSchema for core_schema.IsInstanceSchema ({self.kind})")


class ClassNode(Node):
    """`type[X]`."""

    def __init__(self, kind=None):
        self.kind = kind
        self.label = "is-type" if kind is None else f"is-subclass[{kind.__name__}]"

    def validate(self, value, state):
        if not isinstance(value, type) or (self.kind is not None and not issubclass(value, self.kind)):
            raise invalid("is_subclass_of", value, **{"class": getattr(self.kind, "__name__", "type")})
        return value

    def holds(self, value):
        return isinstance(value, type)

    def schema(self, schemas):
        raise PydanticInvalidForJsonSchema("Cannot generate a JsonSchema for core_schema.IsSubclassSchema")


class CallableNode(Node):
    label = "callable"

    def validate(self, value, state):
        state.floor(LAX)
        if not callable(value):
            raise invalid("callable_type", value)
        return value

    def holds(self, value):
        return callable(value)

    def schema(self, schemas):
        raise PydanticInvalidForJsonSchema("Cannot generate a JsonSchema for core_schema.CallableSchema")


class UUIDNode(Node):
    label = "uuid"

    def __init__(self, kind):
        self.kind = kind

    def validate(self, value, state):
        if isinstance(value, self.kind):
            return value
        if state.strict and not state.json:
            raise invalid("is_instance_of", value, **{"class": "UUID"})
        state.floor(LAX)
        if not isinstance(value, (str, bytes)):
            raise invalid("uuid_type", value)
        try:
            return self.kind(value if isinstance(value, str) else value.decode())
        except ValueError:
            raise invalid("uuid_parsing", value, error=uuid_fault(value)) from None

    def holds(self, value):
        return isinstance(value, self.kind)

    def schema(self, schemas):
        return {"type": "string", "format": "uuid"}


def uuid_fault(value):
    """The reason why a text is no UUID, in the words of the library that pydantic reads them with."""
    text = value if isinstance(value, str) else value.decode("utf-8", "replace")
    for place, sign in enumerate(text):
        if sign not in "0123456789abcdefABCDEF-":
            return (
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
                f"found `{sign}` at {place + 1}"
            )
    groups = text.split("-")
    if len(groups) == 1:
        return f"invalid length: expected length 32 for simple format, found {len(text)}"
    if len(groups) != 5:
        return f"invalid group count: expected 5, found {len(groups)}"
    for place, (group, size) in enumerate(zip(groups, (8, 4, 4, 4, 12))):
        if len(group) != size:
            return f"invalid group length in group {place}: expected {size}, found {len(group)}"
    return "invalid"


class PathNode(Node):
    label = "lax-or-strict[lax=union[json-or-python],strict=json-or-python]"

    def __init__(self, kind):
        self.kind = kind

    def validate(self, value, state):
        if isinstance(value, self.kind):
            return value
        state.floor(LAX)
        try:
            return self.kind(value)
        except TypeError:
            raise invalid("path_type", value) from None

    def holds(self, value):
        return isinstance(value, self.kind)

    def schema(self, schemas):
        return {"type": "string", "format": "path"}


class DecimalNode(Node):
    label = "decimal"
    ALLOWED = frozenset(("gt", "ge", "lt", "le", "strict"))

    def __init__(self, strict=None, **bounds):
        from decimal import Decimal

        self.kind, self.strict, self.bounds = Decimal, strict, bounds

    def validate(self, value, state):
        found = self.read(value, state)
        if not found.is_finite():
            raise invalid("finite_number", value)
        for name, kind, wrong in (
            ("le", "less_than_equal", lambda a, b: a > b),
            ("lt", "less_than", lambda a, b: a >= b),
            ("ge", "greater_than_equal", lambda a, b: a < b),
            ("gt", "greater_than", lambda a, b: a <= b),
        ):
            if name in self.bounds and wrong(found, self.bounds[name]):
                raise invalid(kind, value, **{name: self.bounds[name]})
        return found

    def read(self, value, state):
        if isinstance(value, self.kind):
            return value
        if state.strict if self.strict is None else self.strict:
            raise invalid("is_instance_of", value, **{"class": "Decimal"})
        state.floor(LAX)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise invalid("decimal_type", value)
        try:
            return self.kind(value.strip() if isinstance(value, str) else str(value))
        except ArithmeticError:
            raise invalid("decimal_parsing", value) from None

    def holds(self, value):
        return isinstance(value, self.kind)

    def schema(self, schemas):
        text = {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}
        if schemas.mode == "serialization":
            return text
        real = {"type": "number"}
        for name, keyword in (("le", "maximum"), ("lt", "exclusiveMaximum"), ("ge", "minimum"), ("gt", "exclusiveMinimum")):
            if name in self.bounds:
                real[keyword] = float(self.bounds[name])
        return {"anyOf": [real, text]}
