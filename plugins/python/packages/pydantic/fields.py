"""A field of a model: its type, its default and its rules."""

import inspect
import typing
from copy import deepcopy

from .errors import PydanticUserError
from .undefined import PydanticUndefined

# Keys that are rules; the others only describe a field.
CONSTRAINTS = (
    "gt", "ge", "lt", "le", "multiple_of", "strict", "min_length", "max_length", "pattern", "allow_inf_nan",
    "coerce_numbers_to_str", "union_mode", "strip_whitespace", "to_lower", "to_upper", "max_digits", "decimal_places",
    "fail_fast",
)  # fmt: skip
_KEPT = (
    "default_factory", "alias", "alias_priority", "validation_alias", "serialization_alias", "title", "description",
    "examples", "exclude", "discriminator", "deprecated", "json_schema_extra", "frozen", "validate_default", "repr",
    "init", "init_var", "kw_only", "field_title_generator", "exclude_if",
)  # fmt: skip
_RENAMED = {"min_items": "min_length", "max_items": "max_length"}
_REMOVED = {
    "const": "`const` is removed, use `Literal` instead",
    "unique_items": "`unique_items` is removed, use `Set` instead(this feature is discussed in "
    "https://github.com/pydantic/pydantic-core/issues/296)",
    "regex": "`regex` is removed. use `pattern` instead",
}


class Constraint:
    """Rules that an annotation carries along: what `conint` and the like are made of."""

    def __init__(self, **rules):
        self.rules = rules

    def __repr__(self):
        return f"Constraint({self.rules})"


class StringConstraints(Constraint):
    """The rules of a text."""


class FieldInfo:
    """A field. `metadata` has its rules and validators, outermost last."""

    def __init__(self, default=PydanticUndefined, **given):
        self.annotation = given.pop("annotation", None)
        self.default = PydanticUndefined if default is Ellipsis else default
        self.given = frozenset(given) | (frozenset() if self.default is PydanticUndefined else {"default"})
        rules = {name: given.pop(name) for name in CONSTRAINTS if given.get(name) is not None}
        self.metadata = [Constraint(**rules)] if rules else []
        for name in _KEPT:
            setattr(self, name, given.pop(name, None))
        if self.repr is None:
            self.repr = True
        if self.alias is not None:
            self.validation_alias = self.alias if self.validation_alias is None else self.validation_alias
            self.serialization_alias = self.alias if self.serialization_alias is None else self.serialization_alias
        if self.default is not PydanticUndefined and self.default_factory is not None:
            raise TypeError("cannot specify both default and default_factory")
        self.takes_data = self.default_factory is not None and takes_data(self.default_factory)

    def is_required(self):
        return self.default is PydanticUndefined and self.default_factory is None

    def get_default(self, *, call_default_factory=False, validated_data=None):
        if self.default_factory is None:
            return copied(self.default)
        if not call_default_factory:
            return None
        return self.default_factory(validated_data) if self.takes_data else self.default_factory()

    def overridden(self, other):
        """This field with what `other` says in addition, as when an annotation has one and the class another."""
        merged = FieldInfo.__new__(FieldInfo)
        vars(merged).update(vars(self))
        for name in _KEPT:
            if name in other.given:
                setattr(merged, name, getattr(other, name))
        if "alias" in other.given:
            merged.validation_alias, merged.serialization_alias = other.validation_alias, other.serialization_alias
        if other.default is not PydanticUndefined:
            merged.default, merged.default_factory = other.default, None
        if other.default_factory is not None:
            merged.default = PydanticUndefined
            merged.takes_data = other.takes_data
        merged.metadata = self.metadata + other.metadata
        merged.given = self.given | other.given
        return merged

    def __repr__(self):
        kind = getattr(self.annotation, "__name__", None) if isinstance(self.annotation, type) else repr(self.annotation)
        parts = [f"annotation={kind}", f"required={self.is_required()}"]
        if self.default is not PydanticUndefined:
            parts.append(f"default={self.default!r}")
        for name in ("default_factory", "alias", "title", "description", "examples"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name}={value.__name__ if callable(value) else repr(value)}")
        return f"FieldInfo({', '.join(parts)})"


def takes_data(factory):
    """Whether a default's factory wants the fields validated before."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        return False
    return len(parameters) == 1 and parameters[0].kind <= 1 and parameters[0].default is inspect.Parameter.empty


_IMMUTABLE = (int, float, complex, str, bool, bytes, type, type(None), type(len), type(takes_data))


def copied(default):
    """A default for one instance: what can change is copied."""
    if isinstance(default, _IMMUTABLE):
        return default
    if not default and type(default) in (list, dict, set, tuple, frozenset):
        return default if type(default) in (tuple, frozenset) else type(default)()
    try:
        hash(default)
    except TypeError:
        return deepcopy(default)
    return default


def Field(default=PydanticUndefined, **given):
    """Describes a field, and says what its values have to be like."""
    for name, instead in _RENAMED.items():
        if name in given:
            given.setdefault(instead, given.pop(name))
    for name, text in _REMOVED.items():
        if given.pop(name, None) is not None:
            raise PydanticUserError(text, code="removed-kwargs")
    # In earlier versions any other keyword became part of the JSON Schema.
    unknown = {name: given.pop(name) for name in list(given) if name not in CONSTRAINTS and name not in _KEPT and name != "annotation"}
    if unknown and not given.get("json_schema_extra"):
        given["json_schema_extra"] = unknown
    for name in [name for name in given if given[name] is PydanticUndefined]:
        del given[name]
    return FieldInfo(default, **given)


class ModelPrivateAttr:
    """An attribute that is no field: neither validated nor dumped."""

    def __init__(self, default=PydanticUndefined, *, default_factory=None):
        if default is not PydanticUndefined and default_factory is not None:
            raise TypeError("cannot specify both default and default_factory")
        self.default = PydanticUndefined if default is Ellipsis else default
        self.default_factory = default_factory

    def get_default(self):
        return copied(self.default) if self.default_factory is None else self.default_factory()


def PrivateAttr(default=PydanticUndefined, *, default_factory=None, init=False):
    """Declares an attribute that is no field."""
    return ModelPrivateAttr(default, default_factory=default_factory)


class AliasChoices:
    """Several names that a field may come under."""

    def __init__(self, first_choice, *choices):
        self.choices = [first_choice, *choices]


class AliasPath:
    """A field that lies deeper in what comes in."""

    def __init__(self, first_arg, *args):
        self.path = [first_arg, *args]


def field_of(annotation, default):
    """A field from its annotation, which may have one in it, and what it is assigned."""
    metadata = ()
    if typing.get_origin(annotation) is typing.Final:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *metadata = typing.get_args(annotation)
    field = FieldInfo()
    for item in metadata:
        if isinstance(item, FieldInfo):
            field = field.overridden(item)
        else:
            field.metadata = [*field.metadata, item]
    if isinstance(default, FieldInfo):
        field = field.overridden(default)
    elif default is not PydanticUndefined:
        field = field.overridden(FieldInfo(default))
    field.annotation = annotation
    return field
