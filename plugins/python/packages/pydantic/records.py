"""Records that are no models: the standard library's dataclasses, and typed dictionaries."""

import typing

from .errors import Invalid, Line, invalid
from .fields import FieldInfo, field_of
from .json_schema import fields_schema
from .node import LAX, Node
from .serialization import plain
from .undefined import PydanticUndefined


class RecordNode(Node):
    """The base of both: named fields, each with a node, found once they are needed, for a record may hold its own kind."""

    titled = False

    def __init__(self, kind, names):
        self.kind, self.names, self.made = kind, names, None

    @property
    def label(self):
        return self.kind.__name__

    def members(self):
        """Name to `(field, node)`."""
        if self.made is None:
            names = self.names.inside(self.kind.__module__, {self.kind.__name__: self.kind})
            hints = typing.get_type_hints(self.kind, names.globals, names.local, include_extras=True)
            self.made = {}
            for name, annotation in hints.items():
                if typing.get_origin(annotation) in (typing.Required, typing.NotRequired):
                    annotation = typing.get_args(annotation)[0]
                default = self.default(name)
                if default is not None:
                    field = field_of(annotation, default)
                    self.made[name] = field, names.node(field.annotation, field.metadata, field.discriminator)
        return self.made

    def each(self, value, data, state):
        found, lines = {}, []
        for name, (field, node) in self.members().items():
            if name in data:
                try:
                    found[name] = node.validate(data[name], state)
                except Invalid as error:
                    lines.extend(error.at(name).lines)
            elif self.needs(name, field):
                lines.append(Line("missing", value, None, (name,)))
        if lines:
            raise Invalid(lines)
        return found

    def needs(self, name, field):
        return field.is_required()

    def schema(self, schemas):
        return schemas.reference(self.kind, lambda: self.definition(schemas))

    def definition(self, schemas):
        import inspect

        members = [(name, field, node, self.needs(name, field)) for name, (field, node) in self.members().items()]
        found = fields_schema(members, schemas) | {"title": self.kind.__name__}
        text = self.kind.__doc__
        if text and not text.startswith(f"{self.kind.__name__}(") and text != dict.__doc__:
            found["description"] = inspect.cleandoc(text)
        return found


class TypedDictNode(RecordNode):
    def default(self, name):
        return PydanticUndefined

    def needs(self, name, field):
        return name in self.kind.__required_keys__

    def validate(self, value, state):
        if not isinstance(value, dict):
            raise invalid("dict_type", value)
        state.floor(LAX)
        return self.each(value, value, state)

    def dump(self, value, how):
        if not isinstance(value, dict):
            return plain(value, how)
        members = self.members()
        return {
            key: members[key][1].dump(item, how) if key in members else plain(item, how)
            for key, item in value.items()
        }

    def holds(self, value):
        return isinstance(value, dict) and self.kind.__required_keys__ <= value.keys()


class DataclassNode(RecordNode):
    def default(self, name):
        field = self.kind.__dataclass_fields__.get(name)
        if field is None or not field.init:
            return None
        import dataclasses

        if field.default is not dataclasses.MISSING:
            return field.default
        if field.default_factory is not dataclasses.MISSING:
            return FieldInfo(default_factory=field.default_factory)
        return PydanticUndefined

    def validate(self, value, state):
        if isinstance(value, self.kind):
            return value
        if not isinstance(value, dict):
            raise invalid("dataclass_type", value, class_name=self.kind.__name__)
        state.floor(LAX)
        return self.kind(**self.each(value, value, state))

    def holds(self, value):
        return isinstance(value, self.kind)
