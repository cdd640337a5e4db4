"""The parts that a model's annotations are compiled to, once per class: each validates, dumps and describes one type."""

from . import serialization

# How well a value fits, for the choice between the members of a union.
LAX, STRICT, EXACT = range(3)


class State:
    """The context of a value during its validation."""

    __slots__ = ("context", "exactness", "fields_set", "from_attributes", "json", "strict")

    def __init__(self, strict=False, context=None, from_attributes=False, json=False):
        self.strict = strict
        self.context = context
        self.from_attributes = from_attributes
        self.json = json
        self.exactness = EXACT
        self.fields_set = None

    def floor(self, exactness):
        """The value fitted no better than this."""
        if exactness < self.exactness:
            self.exactness = exactness


class Node:
    """One type. `label` is its name in the places of errors inside unions."""

    label = "any"
    titled = True  # whether a field of this type gets a title made of its name

    def validate(self, value, state):
        """The value as this type has it; raises `Invalid`."""
        raise NotImplementedError

    def dump(self, value, how):
        """The value as `model_dump` gives it. Never fails for a value of another type: assignments are not validated."""
        return serialization.plain(value, how)

    def holds(self, value):
        """Whether `dump` is made for this value, for choosing between the members of a union."""
        return False

    def schema(self, schemas):
        """Its JSON Schema."""
        raise NotImplementedError


class AnyNode(Node):
    def validate(self, value, state):
        state.floor(LAX)
        return value

    def holds(self, value):
        return True

    def schema(self, schemas):
        return {}
