"""Types of which one of several things holds: optional values, unions, literals and enumerations."""

import enum

from .errors import Invalid, invalid
from .node import EXACT, LAX, Node
from .serialization import plain


class NullableNode(Node):
    """`Optional[X]`."""

    def __init__(self, inner):
        self.inner = inner

    @property
    def label(self):
        return f"nullable[{self.inner.label}]"

    @property
    def titled(self):
        return self.inner.titled

    def validate(self, value, state):
        return None if value is None else self.inner.validate(value, state)

    def dump(self, value, how):
        return None if value is None else self.inner.dump(value, how)

    def holds(self, value):
        return value is None or self.inner.holds(value)

    def schema(self, schemas):
        inner = self.inner.schema(schemas)
        return inner if inner == {"type": "null"} else any_of([inner, {"type": "null"}])


def any_of(choices):
    """One of several schemas, each named once."""
    found = []
    for choice in choices:
        if set(choice) == {"anyOf"}:
            found.extend(inner for inner in choice["anyOf"] if inner not in found)
        elif choice not in found:
            found.append(choice)
    return found[0] if len(found) == 1 else {"anyOf": found}


class UnionNode(Node):
    """The member that fits best; the first of those that fit equally well."""

    def __init__(self, members, left_to_right=False):
        self.members = members
        self.left_to_right = left_to_right

    @property
    def label(self):
        return f"union[{','.join(member.label for member in self.members)}]"

    def validate(self, value, state):
        outer, outer_set = state.exactness, state.fields_set
        best, lines = None, []
        for member in self.members:
            state.exactness, state.fields_set = EXACT, None
            try:
                found = member.validate(value, state)
            except Invalid as error:
                if best is None:
                    lines.extend(error.at(member.label).lines)
                continue
            this = state.exactness, state.fields_set
            if self.left_to_right or this == (EXACT, None):
                best = (found, *this)
                break
            if best is None or better(this, best[1:]):
                best = (found, *this)
        state.exactness, state.fields_set = outer, outer_set
        if best is None:
            raise Invalid(lines)
        state.floor(best[1])
        if best[2] is not None:
            state.fields_set = best[2]
        return best[0]

    def dump(self, value, how):
        for member in self.members:
            if member.holds(value):
                return member.dump(value, how)
        return plain(value, how)

    def holds(self, value):
        return any(member.holds(value) for member in self.members)

    def schema(self, schemas):
        return any_of([member.schema(schemas) for member in self.members])


def better(this, best):
    """Whether a member fits better than the best so far: more fields set, else more exactly."""
    if this[1] is not None and best[1] is not None and this[1] != best[1]:
        return this[1] > best[1]
    return this[0] > best[0]


class TaggedNode(Node):
    """A union of models told apart by a field, `discriminator`."""

    def __init__(self, field, members):
        self.field = field
        self.members = members  # tag to node

    @property
    def label(self):
        return f"tagged-union[{','.join(node.label for node in self.members.values())}]"

    def validate(self, value, state):
        missing = object()
        tag = value.get(self.field, missing) if isinstance(value, dict) else getattr(value, self.field, missing)
        if tag is missing:
            if not isinstance(value, dict) and not hasattr(value, "__dict__"):
                raise invalid("model_attributes_type", value)
            raise invalid("union_tag_not_found", value, discriminator=repr(self.field))
        try:
            member = self.members[tag]
        except (KeyError, TypeError):
            expected = ", ".join(map(repr, self.members))
            raise invalid(
                "union_tag_invalid", value, discriminator=repr(self.field), tag=str(tag), expected_tags=expected
            ) from None
        try:
            return member.validate(value, state)
        except Invalid as error:
            raise error.at(tag) from None

    def dump(self, value, how):
        for member in self.members.values():
            if member.holds(value):
                return member.dump(value, how)
        return plain(value, how)

    def schema(self, schemas):
        found = {str(tag): node.schema(schemas) for tag, node in self.members.items()}
        mapping = {tag: schema["$ref"] for tag, schema in found.items() if "$ref" in schema}
        one_of = []
        for schema in found.values():
            if schema not in one_of:
                one_of.append(schema)
        return {"discriminator": {"mapping": mapping, "propertyName": self.field}, "oneOf": one_of}


def expected(values):
    """`'a', 'b' or 'c'`."""
    values = list(map(repr, values))
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


class LiteralNode(Node):
    def __init__(self, values):
        self.values = values
        self.known = {(type(value), value): value for value in values}

    @property
    def label(self):
        return f"literal[{','.join(repr(value) for value in self.values)}]"

    def validate(self, value, state):
        try:
            if (type(value), value) in self.known:
                return value
            # `str` subclasses and members of enumerations equal their values.
            for literal in self.values:
                if isinstance(value, type(literal)) and not isinstance(value, bool) and value == literal:
                    return literal
        except TypeError:
            pass
        if type(value) is int and not -(2**63) <= value < 2**63 and any(type(literal) is int for literal in self.values):
            raise invalid("int_parsing_size", value)
        raise invalid("literal_error", value, expected=expected(self.values))

    def holds(self, value):
        try:
            return (type(value), value) in self.known
        except TypeError:
            return False

    def schema(self, schemas):
        values = [value.value if isinstance(value, enum.Enum) else value for value in self.values]
        found = {"const": values[0]} if len(values) == 1 else {"enum": values}
        return found | json_type(values)


def json_type(values):
    """The one JSON type that all of the values have, if they have one."""
    kinds = {type(value) for value in values}
    names = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", type(None): "null"}
    return {"type": names[kinds.pop()]} if len(kinds) == 1 and kinds <= set(names) else {}


class EnumNode(Node):
    titled = False

    def __init__(self, kind, use_values=False):
        self.kind = kind
        self.use_values = use_values
        self.label = kind.__name__

    def validate(self, value, state):
        found = self.member(value, state)
        return found.value if self.use_values else found

    def member(self, value, state):
        kind = self.kind
        if isinstance(value, kind):
            return value
        if not state.strict or state.json:
            state.floor(LAX)
            try:
                if not (isinstance(value, bool) and not any(isinstance(m.value, bool) for m in kind)):
                    return kind(value)
            except (ValueError, TypeError):
                pass
            # As elsewhere, a text may represent a number, if the enumeration is one of numbers.
            if issubclass(kind, (int, float)) and isinstance(value, (str, float)):
                for member in kind:
                    try:
                        if type(member.value)(value) == member.value:
                            return member
                    except ValueError:
                        break
        raise invalid("enum", value, expected=expected([member.value for member in kind]))

    def holds(self, value):
        return isinstance(value, self.kind)

    def schema(self, schemas):
        return schemas.reference(self.kind, self.definition)

    def definition(self):
        values = [member.value for member in self.kind]
        values = [value if isinstance(value, (str, int, float, bool, type(None))) else str(value) for value in values]
        found = {"title": self.kind.__name__}
        text = self.kind.__doc__
        if text and text != "An enumeration." and text != enum.Enum.__doc__:
            import inspect

            found["description"] = inspect.cleandoc(text)
        found |= {"const": values[0]} if len(values) == 1 else {"enum": values}
        return found | json_type(values)
