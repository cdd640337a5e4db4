"""`BaseModel`."""

import json
from copy import copy, deepcopy

from .errors import Invalid, Line, ValidationError
from .json_schema import made
from .metaclass import ModelMetaclass, built
from .models import ModelNode, dumped, set_state
from .node import State
from .serialization import How, text
from .undefined import PydanticUndefined


class BaseModel(metaclass=ModelMetaclass):
    """A class whose attributes are validated by their annotations."""

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
    __pydantic_base_model__ = True
    __pydantic_root_model__ = False
    __pydantic_complete__ = False
    __pydantic_computed__ = {}
    __private_attributes__ = {}
    model_config = {}
    model_fields = {}

    def __init__(self, /, **data):
        validate_into(type(self), data, self)

    __init__.__pydantic_base_init__ = True

    @classmethod
    def complete(cls):
        """The class, with its nodes made, which names defined later may have put off."""
        if not cls.__pydantic_complete__:
            built(cls)
        return cls

    @classmethod
    def __pydantic_node_for__(cls):
        return ModelNode(cls)

    def __pydantic_dump__(self, how):
        return dumped(type(self), self, how)

    @classmethod
    def __pydantic_init_subclass__(cls, **keywords):
        """For subclasses to define."""

    @classmethod
    def model_validate(cls, obj, *, strict=None, extra=None, from_attributes=None, context=None, by_alias=None, by_name=None):
        return validate(cls, obj, State(bool(strict), context, bool(from_attributes)))

    @classmethod
    def model_validate_json(cls, json_data, *, strict=None, extra=None, context=None, by_alias=None, by_name=None):
        return validate(cls, loaded(cls.__name__, json_data), State(bool(strict), context, json=True))

    @classmethod
    def model_construct(cls, _fields_set=None, **values):
        """An instance of values that are not validated."""
        cls.complete()
        found, given = {}, set()
        for name, field in cls.model_fields.items():
            key = field.alias if field.alias is not None and field.alias in values else name
            if key in values:
                found[name] = values.pop(key)
                given.add(name)
            elif not field.is_required():
                found[name] = field.get_default(call_default_factory=True, validated_data=found)
        extra = values if cls.model_config.get("extra") == "allow" else None
        instance = cls.__new__(cls)
        set_state(instance, found, given if _fields_set is None else _fields_set, extra)
        if cls.__pydantic_post_init__:
            instance.model_post_init(None)
        return instance

    def model_dump(self, *, warnings=True, serialize_as_any=False, **options):
        return dumped(type(self), self, How(**options))

    def model_dump_json(self, *, indent=None, ensure_ascii=False, warnings=True, serialize_as_any=False, **options):
        found = text(dumped(type(self), self, How("json", text=True, **options)), indent)
        return found.encode("ascii", "backslashreplace").decode() if ensure_ascii else found

    def model_copy(self, *, update=None, deep=False):
        found = deepcopy(self) if deep else copy(self)
        if update:
            extra = self.model_config.get("extra") == "allow"
            for name, value in update.items():
                if extra and name not in type(self).model_fields:
                    found.__pydantic_extra__[name] = value
                else:
                    vars(found)[name] = value
            found.__pydantic_fields_set__.update(update)
        return found

    @classmethod
    def model_json_schema(cls, by_alias=True, ref_template=None, schema_generator=None, mode="validation"):
        return made(ModelNode(cls), by_alias, mode)

    @classmethod
    def model_rebuild(cls, *, force=False, raise_errors=True, _parent_namespace_depth=2, _types_namespace=None):
        if cls.__pydantic_complete__ and not force:
            return None
        return built(cls, quietly=not raise_errors, local=_types_namespace)

    def model_post_init(self, context, /):
        """For subclasses to define: called once the instance is made."""

    @property
    def model_extra(self):
        return self.__pydantic_extra__

    @property
    def model_fields_set(self):
        return self.__pydantic_fields_set__

    # The names of version 1, which version 2 keeps.

    def dict(self, *, include=None, exclude=None, by_alias=False, exclude_unset=False, exclude_defaults=False, exclude_none=False):  # fmt: skip
        return self.model_dump(
            include=include, exclude=exclude, by_alias=by_alias, exclude_unset=exclude_unset,
            exclude_defaults=exclude_defaults, exclude_none=exclude_none,
        )  # fmt: skip

    def json(self, *, include=None, exclude=None, by_alias=False, exclude_unset=False, exclude_defaults=False, exclude_none=False, **unknown):  # fmt: skip
        if unknown:
            raise TypeError("`dumps_kwargs` keyword arguments are no longer supported.")
        return self.model_dump_json(
            include=include, exclude=exclude, by_alias=by_alias, exclude_unset=exclude_unset,
            exclude_defaults=exclude_defaults, exclude_none=exclude_none,
        )  # fmt: skip

    def copy(self, *, include=None, exclude=None, update=None, deep=False):
        found = self.model_copy(update=update, deep=deep)
        for name in [name for name in vars(found) if (include is not None and name not in include) or (exclude and name in exclude)]:
            if not update or name not in update:
                del vars(found)[name]
                found.__pydantic_fields_set__.discard(name)
        return found

    @classmethod
    def parse_obj(cls, obj):
        return cls.model_validate(obj)

    @classmethod
    def parse_raw(cls, b, **_):
        return cls.model_validate(loaded(cls.__name__, b))

    @classmethod
    def from_orm(cls, obj):
        return cls.model_validate(obj, from_attributes=True)

    @classmethod
    def construct(cls, _fields_set=None, **values):
        return cls.model_construct(_fields_set, **values)

    @classmethod
    def schema(cls, by_alias=True, **_):
        return cls.model_json_schema(by_alias)

    @classmethod
    def validate(cls, value):
        return cls.model_validate(value)

    @classmethod
    def update_forward_refs(cls, **names):
        cls.model_rebuild(force=True, _types_namespace=names or None)

    # An instance's methods as a Python object.

    def __getattr__(self, name):
        kind = type(self)
        if name in kind.__private_attributes__:
            private = self.__pydantic_private__
            if private is not None and name in private:
                return private[name]
        elif not name.startswith("__pydantic_"):
            extra = self.__pydantic_extra__
            if extra and name in extra:
                return extra[name]
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        kind = type(self)
        if name in kind.__private_attributes__:
            if self.__pydantic_private__ is None:
                object.__setattr__(self, "__pydantic_private__", {})
            self.__pydantic_private__[name] = value
            return
        field = kind.model_fields.get(name)
        config = kind.model_config
        if field is None and config.get("validate_assignment") and config.get("extra") != "allow" and not name.startswith("_"):
            if not hasattr(kind, name):
                raise ValidationError(kind.__name__, [Line("no_such_attribute", value, {"attribute": name}, (name,))])
        if config.get("frozen") or (field is not None and field.frozen):
            kind_of_error = "frozen_instance" if config.get("frozen") else "frozen_field"
            raise ValidationError(kind.__name__, [Line(kind_of_error, value, None, (name,))])
        if field is None:
            settled = getattr(kind, name, None)
            if isinstance(settled, property):
                settled.__set__(self, value)
            elif name.startswith("_"):
                object.__setattr__(self, name, value)
            elif config.get("extra") == "allow":
                self.__pydantic_extra__[name] = value
                self.__pydantic_fields_set__.add(name)
            elif hasattr(type(settled), "__set__"):
                object.__setattr__(self, name, value)
            else:
                raise ValueError(f'"{kind.__name__}" object has no field "{name}"')
            return
        if config.get("validate_assignment"):
            value = assigned(self, name, value)
        vars(self)[name] = value
        self.__pydantic_fields_set__.add(name)

    def __delattr__(self, name):
        if self.__pydantic_private__ and name in self.__pydantic_private__:
            del self.__pydantic_private__[name]
        elif self.__pydantic_extra__ and name in self.__pydantic_extra__:
            del self.__pydantic_extra__[name]
        else:
            object.__delattr__(self, name)

    def __eq__(self, other):
        if not isinstance(other, BaseModel):
            return NotImplemented
        return (
            type(self) is type(other)
            and vars(self) == vars(other)
            and (self.__pydantic_private__ or None) == (other.__pydantic_private__ or None)
            and (self.__pydantic_extra__ or None) == (other.__pydantic_extra__ or None)
        )

    def __init_subclass__(cls, **_):
        if cls.model_config.get("frozen") and "__hash__" not in vars(cls):
            cls.__hash__ = frozen_hash

    def __iter__(self):
        yield from vars(self).items()
        yield from (self.__pydantic_extra__ or {}).items()

    def __repr_args__(self):
        fields = type(self).model_fields
        for name, value in vars(self).items():
            if name in fields and fields[name].repr:
                yield name, value if value is not self else "<Recursion>"
        yield from (self.__pydantic_extra__ or {}).items()
        for name in type(self).__pydantic_computed__:
            yield name, getattr(self, name)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__repr_args__())})"

    def __str__(self):
        return " ".join(f"{name}={value!r}" for name, value in self.__repr_args__())

    def __getstate__(self):
        return {
            "__dict__": vars(self),
            "__pydantic_extra__": self.__pydantic_extra__,
            "__pydantic_fields_set__": self.__pydantic_fields_set__,
            "__pydantic_private__": self.__pydantic_private__,
        }

    def __setstate__(self, state):
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __copy__(self):
        found = type(self).__new__(type(self))
        for name, value in self.__getstate__().items():
            object.__setattr__(found, name, copy(value))
        return found

    def __deepcopy__(self, memo=None):
        found = type(self).__new__(type(self))
        for name, value in self.__getstate__().items():
            object.__setattr__(found, name, deepcopy(value, memo))
        return found


def frozen_hash(self):
    return hash((type(self), tuple(vars(self).values())))


def validate(model, value, state):
    """An instance of what came in."""
    try:
        return ModelNode(model).validate(value, state)
    except Invalid as error:
        raise failure(model, error) from None


def validate_into(model, data, instance):
    """Validates the arguments of `__init__` into the instance."""
    node = ModelNode(model.complete())
    state = State()
    try:
        if model.__pydantic_model_validators__:
            node.around(data, state, model.__pydantic_model_validators__, instance)
        else:
            node.instance(data, state, instance)
    except Invalid as error:
        raise failure(model, error) from None


def failure(model, error):
    config = model.model_config
    return ValidationError(config.get("title") or model.__name__, error.lines, config.get("hide_input_in_errors", False))


def assigned(instance, name, value):
    """A value validated for the field that it is assigned to."""
    model = type(instance).complete()
    try:
        found = model.__pydantic_nodes__[name].validate(value, State())
    except Invalid as error:
        raise failure(model, error.at(name)) from None
    before = dict(vars(instance))
    for validator in model.__pydantic_model_validators__:
        if validator.about["mode"] == "after" and not isinstance(validator.function, classmethod):
            vars(instance)[name] = found
            try:
                validator.function(instance)
            except (ValueError, AssertionError) as error:
                object.__setattr__(instance, "__dict__", before)
                kind = "assertion_error" if isinstance(error, AssertionError) else "value_error"
                raise failure(model, Invalid([Line(kind, before | {name: value}, {"error": error})])) from None
    return found


def loaded(title, data):
    """The value of a JSON text, or the error that it is none."""
    if not isinstance(data, (str, bytes, bytearray)):
        raise ValidationError(title, [Line("json_type", data)])
    try:
        return json.loads(data)
    except ValueError as error:
        place = f"line {error.lineno} column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        fault = f"{getattr(error, 'msg', error)} at {place}" if place else str(error)
        raise ValidationError(title, [Line("json_invalid", data, {"error": fault})]) from None


def create_model(model_name, /, *, __config__=None, __doc__=None, __base__=None, __module__=None, __validators__=None, __cls_kwargs__=None, **fields):  # fmt: skip
    """A model made of `name=(type, default)`, or of `name=type`."""
    import sys

    annotations, namespace = {}, dict(__validators__ or {})
    for name, given in fields.items():
        if isinstance(given, tuple):
            annotations[name], namespace[name] = given
            if namespace[name] is Ellipsis:
                namespace[name] = PydanticUndefined
        else:
            annotations[name] = given
    namespace = {name: value for name, value in namespace.items() if value is not PydanticUndefined}
    namespace["__annotations__"] = annotations
    namespace["__module__"] = __module__ or sys._getframe(1).f_globals.get("__name__", "__main__")
    namespace["__qualname__"] = model_name
    if __doc__ is not None:
        namespace["__doc__"] = __doc__
    if __config__ is not None:
        namespace["model_config"] = __config__
    bases = __base__ if isinstance(__base__, tuple) else (__base__ or BaseModel,)
    return ModelMetaclass(model_name, bases, namespace, **(__cls_kwargs__ or {}))
