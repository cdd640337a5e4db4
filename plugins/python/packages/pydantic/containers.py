"""Lists, tuples, sets and dictionaries."""

from collections import deque
from itertools import islice
from collections.abc import Generator, Iterator, KeysView, ItemsView, Mapping, ValuesView

from . import serialization
from .errors import Invalid, invalid
from .node import LAX, AnyNode, Node
from .serialization import plain

_VIEWS = (KeysView, ItemsView, ValuesView)
_LISTED = (tuple, set, frozenset, deque, Generator, Iterator, *_VIEWS)


def listed(value):
    """Whether a list can be made of the value: anything to be walked over but text and mappings."""
    if isinstance(value, _LISTED):
        return True
    if isinstance(value, (str, bytes, bytearray, Mapping, type)):
        return False
    try:
        iter(value)
    except TypeError:
        return False
    return True


class Sequenced(Node):
    """The base of a list, a set and a tuple of any length."""

    ALLOWED = frozenset(("min_length", "max_length", "strict"))

    def __init__(self, item=None, min_length=None, max_length=None, strict=None):
        self.item = item
        self.min_length, self.max_length, self.strict = min_length, max_length, strict

    @property
    def label(self):
        return f"{self.NAME}[{'any' if self.item is None else self.item.label}]"

    def items(self, value, state, kind):
        """The values inside, if this type takes them from such a value."""
        if isinstance(value, self.TYPE):
            return value
        if not (state.strict if self.strict is None else self.strict) and listed(value):
            state.floor(LAX)
            return value
        # JSON has lists only.
        if state.json and isinstance(value, list):
            return value
        raise invalid(kind, value)

    def each(self, values, state):
        """Every item validated; all that is wrong is told at once, but not of more items than there may be."""
        item, lines = self.item, []
        if self.max_length is not None and self.NAME in ("list", "tuple"):
            first = list(islice(values, self.max_length + 1)) if not hasattr(values, "__len__") else values
            if len(first) > self.max_length:
                self.measure(first, values, least=False)
            values = first
        if item is None:
            found = list(values)
        else:
            found = []
            for place, value in enumerate(values):
                try:
                    found.append(item.validate(value, state))
                except Invalid as error:
                    lines.extend(error.at(place).lines)
        if lines:
            raise Invalid(lines)
        return found

    def measure(self, found, value, least=True):
        if least and self.min_length is not None and len(found) < self.min_length:
            raise invalid(
                "too_short", value, field_type=self.TITLE, min_length=self.min_length, actual_length=len(found)
            )
        if self.max_length is not None and len(found) > self.max_length:
            actual = len(value) if hasattr(value, "__len__") and self.NAME != "set" and self.NAME != "frozenset" else None
            raise invalid("too_long", value, field_type=self.TITLE, max_length=self.max_length, actual_length=actual)
        return found

    def holds(self, value):
        return isinstance(value, self.TYPE) and (self.item is None or all(map(self.item.holds, value)))

    def schema(self, schemas):
        found = {"type": "array", "items": {} if self.item is None else self.item.schema(schemas)}
        if self.min_length is not None:
            found["minItems"] = self.min_length
        if self.max_length is not None:
            found["maxItems"] = self.max_length
        return found


class ListNode(Sequenced):
    NAME, TITLE, TYPE = "list", "List", list

    def validate(self, value, state):
        items = self.items(value, state, "list_type")
        return self.measure(self.each(items, state), value)

    def dump(self, value, how):
        if self.item is None or not isinstance(value, list):
            return plain(value, how)
        dump = self.item.dump
        if how.include is not None or how.exclude is not None:
            return [dump(item, how.inside(place)) for place, item in enumerate(value) if not how.skips(place)]
        return [dump(item, how) for item in value]


class SequenceNode(ListNode):
    """`Sequence` and `Iterable`: what came stays what it was."""

    def validate(self, value, state):
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise invalid("is_instance_of", value, **{"class": "Sequence"})
        found = self.measure(self.each(value, state), value)
        return type(value)(found) if isinstance(value, (tuple, deque)) else found


class SetNode(Sequenced):
    NAME, TITLE, TYPE, WRONG = "set", "Set", set, "set_type"

    def items(self, value, state, kind):
        if isinstance(value, list) and not (state.strict if self.strict is None else self.strict):
            state.floor(LAX)
            return value
        return super().items(value, state, kind)

    def validate(self, value, state):
        found = self.each(self.items(value, state, self.WRONG), state)
        for place, item in enumerate(found):
            try:
                hash(item)
            except TypeError:
                raise invalid("set_item_not_hashable", item).at(place) from None
        return self.measure(self.TYPE(found), value)

    def dump(self, value, how):
        if self.item is None or not isinstance(value, self.TYPE):
            return plain(value, how)
        found = [self.item.dump(item, how) for item in value]
        return found if how.json else self.TYPE(found)

    def schema(self, schemas):
        return super().schema(schemas) | {"uniqueItems": True}


class FrozenSetNode(SetNode):
    NAME, TITLE, TYPE, WRONG = "frozenset", "Frozenset", frozenset, "frozen_set_type"


class TupleNode(Sequenced):
    """`tuple[X, ...]`."""

    NAME, TITLE, TYPE = "tuple", "Tuple", tuple

    @property
    def label(self):
        return f"tuple[{'any' if self.item is None else self.item.label}, ...]"

    def items(self, value, state, kind):
        if isinstance(value, list) and not (state.strict if self.strict is None else self.strict):
            state.floor(LAX)
            return value
        return super().items(value, state, kind)

    def validate(self, value, state):
        return tuple(self.measure(self.each(self.items(value, state, "tuple_type"), state), value))

    def dump(self, value, how):
        if self.item is None or not isinstance(value, tuple):
            return plain(value, how)
        found = [self.item.dump(item, how) for item in value]
        return found if how.json else tuple(found)


class FixedTupleNode(TupleNode):
    """`tuple[X, Y]`."""

    def __init__(self, members, strict=None):
        super().__init__(strict=strict)
        self.members = members

    @property
    def label(self):
        return f"tuple[{', '.join(member.label for member in self.members)}]"

    def validate(self, value, state):
        values = list(self.items(value, state, "tuple_type"))
        if len(values) > len(self.members):
            count = len(self.members)
            raise invalid("too_long", value, field_type="Tuple", max_length=count, actual_length=len(value) if hasattr(value, "__len__") else None)
        found, lines = [], []
        for place, member in enumerate(self.members):
            if place >= len(values):
                lines.extend(invalid("missing", value).at(place).lines)
                continue
            try:
                found.append(member.validate(values[place], state))
            except Invalid as error:
                lines.extend(error.at(place).lines)
        if lines:
            raise Invalid(lines)
        return tuple(found)

    def dump(self, value, how):
        if not isinstance(value, tuple) or len(value) != len(self.members):
            return plain(value, how)
        found = [member.dump(item, how) for member, item in zip(self.members, value)]
        return found if how.json else tuple(found)

    def holds(self, value):
        fits = isinstance(value, tuple) and len(value) == len(self.members)
        return fits and all(member.holds(item) for member, item in zip(self.members, value))

    def schema(self, schemas):
        count = len(self.members)
        found = {"type": "array", "minItems": count, "maxItems": count}
        if self.members:
            found["prefixItems"] = [member.schema(schemas) for member in self.members]
        return found


class DictNode(Node):
    ALLOWED = frozenset(("min_length", "max_length", "strict"))

    def __init__(self, key=None, item=None, min_length=None, max_length=None, strict=None):
        self.key, self.item = key, item
        self.min_length, self.max_length, self.strict = min_length, max_length, strict

    @property
    def label(self):
        key, item = ("any" if node is None else node.label for node in (self.key, self.item))
        return f"dict[{key},{item}]"

    def validate(self, value, state):
        if not isinstance(value, dict):
            strict = state.strict if self.strict is None else self.strict
            if strict or not isinstance(value, Mapping):
                raise invalid("dict_type", value)
            state.floor(LAX)
        key, item, lines = self.key, self.item, []
        if key is None and item is None:
            found = dict(value)
        else:
            found = {}
            for name, inner in value.items():
                try:
                    kept = name if key is None else key.validate(name, state)
                    right = True
                except Invalid as error:
                    lines.extend(error.at("[key]", _place(name)).lines)
                    right = False
                try:
                    inner = inner if item is None else item.validate(inner, state)
                except Invalid as error:
                    lines.extend(error.at(_place(name)).lines)
                    continue
                if right:
                    found[kept] = inner
        if lines:
            raise Invalid(lines)
        if self.min_length is not None and len(found) < self.min_length:
            raise invalid(
                "too_short", value, field_type="Dictionary", min_length=self.min_length, actual_length=len(found)
            )
        if self.max_length is not None and len(found) > self.max_length:
            raise invalid(
                "too_long", value, field_type="Dictionary", max_length=self.max_length, actual_length=len(found)
            )
        return found

    def dump(self, value, how):
        if not isinstance(value, dict):
            return plain(value, how)
        return serialization.mapping(value, how, self.key, self.item)

    def holds(self, value):
        if not isinstance(value, dict):
            return False
        keys = self.key is None or all(map(self.key.holds, value))
        return keys and (self.item is None or all(map(self.item.holds, value.values())))

    def schema(self, schemas):
        found = {"type": "object"}
        item = {} if self.item is None else self.item.schema(schemas)
        key = {} if self.key is None else dict(self.key.schema(schemas))
        pattern = key.pop("pattern", None)
        if item or pattern is not None:
            found["patternProperties" if pattern is not None else "additionalProperties"] = (
                {pattern: item} if pattern is not None else item
            )
        else:
            found["additionalProperties"] = True
        key.pop("title", None)
        if (key.get("type") == "string" and len(key) > 1) or "$ref" in key or "enum" in key:
            found["propertyNames"] = key
        if self.min_length is not None:
            found["minProperties"] = self.min_length
        if self.max_length is not None:
            found["maxProperties"] = self.max_length
        return found


def _place(key):
    """A key as it stands in an error's place."""
    return key if isinstance(key, (str, int)) and not isinstance(key, bool) else repr(key) if not isinstance(key, bool) else int(key)


def dictionary(key, item, **rules):
    """A `DictNode` that does not walk over what may be anything."""
    return DictNode(None if isinstance(key, AnyNode) else key, None if isinstance(item, AnyNode) else item, **rules)


def unless_any(node):
    """The node, or `None` where anything goes."""
    return None if type(node) is AnyNode else node
