"""Models of one value without a name, and validation without a model."""

import typing

from .annotations import Names, node_for
from .errors import Invalid, ValidationError
from .json_schema import made
from .main import BaseModel, loaded, validate_into
from .node import State
from .serialization import How, text
from .undefined import PydanticUndefined


class RootModel(BaseModel):
    """`RootModel[X]`: a model that is one value of type `X`."""

    __slots__ = ()
    __pydantic_root_model__ = True
    root: typing.Any

    def __init__(self, /, root=PydanticUndefined, **data):
        if data:
            if root is not PydanticUndefined:
                raise ValueError('"RootModel.__init__" accepts either a single positional argument or arbitrary keyword arguments')
            root = data
        kind = type(self)
        if root is PydanticUndefined and not kind.model_fields["root"].is_required():
            root = kind.model_fields["root"].get_default(call_default_factory=True)
        validate_into(kind, root, self)

    __init__.__pydantic_base_init__ = True

    def __class_getitem__(cls, item):
        name = getattr(item, "__name__", None) if isinstance(item, type) and not typing.get_args(item) else repr(item).replace("typing.", "")
        namespace = {"__annotations__": {"root": item}, "__module__": cls.__module__, "__qualname__": f"{cls.__name__}[{name}]"}
        return type(cls)(f"{cls.__name__}[{name}]", (cls,), namespace)

    def __repr_args__(self):
        yield "root", self.root

    def __eq__(self, other):
        return type(self) is type(other) and self.root == other.root if isinstance(other, RootModel) else NotImplemented


class TypeAdapter:
    """Validates, dumps and describes any type."""

    def __init__(self, type, *, config=None, _parent_depth=2, module=None):
        import sys

        frame = sys._getframe(1)
        names = Names(frame.f_globals.get("__name__"), dict(frame.f_locals), config)
        self.node = node_for(type, names)

    def validate_python(self, object, /, *, strict=None, from_attributes=None, context=None):
        return self.validated(object, State(bool(strict), context, bool(from_attributes)))

    def validate_json(self, data, /, *, strict=None, context=None):
        return self.validated(loaded(self.node.label, data), State(bool(strict), context, json=True))

    def validated(self, value, state):
        try:
            return self.node.validate(value, state)
        except Invalid as error:
            raise ValidationError(self.node.label, error.lines) from None

    def dump_python(self, instance, /, *, mode="python", **options):
        return self.node.dump(instance, How(mode, **options))

    def dump_json(self, instance, /, *, indent=None, **options):
        return text(self.node.dump(instance, How("json", text=True, **options)), indent).encode()

    def json_schema(self, *, by_alias=True, mode="validation", **_):
        return made(self.node, by_alias, mode)


def parse_obj_as(type_, obj):
    """The older form of `TypeAdapter`."""
    return TypeAdapter(type_).validate_python(obj)
