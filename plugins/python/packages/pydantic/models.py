"""The node of a model: from a dictionary, or an object, to an instance and back."""

from collections.abc import Mapping

from .errors import Invalid, Line, ValidationError, invalid
from .fields import AliasChoices, AliasPath
from .functional import ValidationInfo, called, used, wants
from .model_schema import model_schema
from .node import LAX, STRICT, Node
from .serialization import plain

_MISSING = object()


class ModelNode(Node):
    titled = False

    def __init__(self, model):
        self.model = model

    @property
    def label(self):
        return self.model.__name__

    def validate(self, value, state):
        model = self.model.complete()
        if not model.__pydantic_model_validators__:
            return self.instance(value, state)
        return self.around(value, state, model.__pydantic_model_validators__)

    def around(self, value, state, validators, made=None):
        """Validation within the model's own validators."""
        if not validators:
            return self.instance(value, state, made)
        *inner, validator = validators
        model = self.model
        mode, function = validator.about["mode"], validator.function
        if mode == "after":
            found = self.around(value, state, inner, made)
            if isinstance(function, classmethod):
                bound = function.__get__(found, model)
                return called(bound, value, found, *informed(bound, 1, state))
            return called(function, value, found, *informed(function, 1, state))
        bound = function.__get__(None, model)
        if mode == "before":
            return self.around(called(bound, value, value, *informed(bound, 1, state)), state, inner, made)

        def handler(given, _=None):
            try:
                return self.around(given, state, inner, made)
            except Invalid as error:
                raise ValidationError(model.__name__, error.lines) from None

        return called(bound, value, value, handler, *informed(bound, 2, state))

    def instance(self, value, state, made=None):
        """The validated instance; `made` is one still empty, of `__init__`."""
        model = self.model
        config = model.model_config
        if made is None and isinstance(value, model):
            if config.get("revalidate_instances", "never") == "never":
                if type(value) is not model:
                    state.floor(STRICT)
                return value
            value = vars(value) | (value.__pydantic_extra__ or {})
        strict = state.strict or config.get("strict", False)
        if made is None and state.strict and not state.json and not isinstance(value, dict):
            raise Invalid([Line("model_type", value, {"class_name": model.__name__})])
        state.floor(LAX)
        if model.__pydantic_root_model__:
            data = {"root": value}
        else:
            data = self.data(value, state, config)
        if made is None and model.__pydantic_custom_init__:
            try:
                return model(**data)
            except ValidationError as error:
                raise Invalid([Line(i.kind, i.input, i.context, i.place, i.text) for i in error._lines]) from None
        values, given, extra = self.fields(data, value, state, strict)
        instance = model.__new__(model) if made is None else made
        set_state(instance, values, given, extra)
        count = len(given)
        state.fields_set = count if state.fields_set is None else state.fields_set + count
        if model.__pydantic_post_init__:
            called_post_init(instance, state, value)
        return instance

    def data(self, value, state, config):
        """The object that the fields are taken from."""
        if isinstance(value, dict):
            return value
        if state.from_attributes or config.get("from_attributes"):
            if hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
                return Attributes(value)
            raise invalid("model_attributes_type", value)
        if isinstance(value, Mapping):
            return dict(value)
        raise invalid("model_type", value, class_name=self.model.__name__)

    def fields(self, data, value, state, strict):
        """`(values, names of the given ones, extra values)`."""
        model = self.model
        config, nodes = model.model_config, model.__pydantic_nodes__
        by_name = config.get("populate_by_name") or config.get("validate_by_name")
        by_alias = config.get("validate_by_alias", True)
        values, given, seen, lines = {}, set(), set(), []
        outer = state.strict
        state.strict = strict
        inner_set = 0
        for name, field in model.model_fields.items():
            alias = field.validation_alias if by_alias else None
            if alias is None:
                place, found = name, data.get(name, _MISSING)
                seen.add(name)
            else:
                place, found = aliased(alias, data, seen)
                if found is _MISSING and by_name:
                    found = data.get(name, _MISSING)
                    if found is not _MISSING:
                        place = name
                    seen.add(name)
                if found is _MISSING and by_name:
                    place = alias if isinstance(alias, str) else name
            if found is _MISSING:
                if field.is_required():
                    line = Line("missing", value if not isinstance(data, Attributes) else data.source)
                    line.place.append(place if isinstance(place, str) else name)
                    lines.append(line)
                    continue
                default = field.get_default(call_default_factory=True, validated_data=values)
                if field.validate_default or (field.validate_default is None and config.get("validate_default")):
                    try:
                        default = self.one(nodes[name], default, state, values)
                    except Invalid as error:
                        lines.extend(error.at(place).lines)
                        continue
                values[name] = default
                continue
            before = state.fields_set
            state.fields_set = None
            try:
                values[name] = self.one(nodes[name], found, state, values)
                given.add(name)
            except Invalid as error:
                if not model.__pydantic_root_model__:
                    error.at(*(reversed(place) if isinstance(place, tuple) else (place,)))
                lines.extend(error.lines)
            inner_set += state.fields_set or 0
            state.fields_set = before
        extra = self.extra(data, seen, config.get("extra") or "ignore", state, lines)
        state.strict = outer
        if lines:
            raise Invalid(lines)
        if inner_set:
            state.fields_set = (state.fields_set or 0) + inner_set
        if extra:
            given |= extra.keys()
        return values, given, extra

    @staticmethod
    def one(node, value, state, values):
        if not getattr(node, "informed", False):
            return node.validate(value, state)
        # Its validator uses the fields before it.
        around = Informed(state, dict(values))
        try:
            return node.validate(value, around)
        finally:
            around.back(state)

    def extra(self, data, seen, policy, state, lines):
        if policy == "ignore" or isinstance(data, Attributes):
            return {} if policy == "allow" else None
        extra = {}
        for key, value in data.items():
            if key in seen:
                continue
            if not isinstance(key, str):
                lines.append(Line("invalid_key", key, None, (str(key),)))
            elif policy == "forbid":
                lines.append(Line("extra_forbidden", value, None, (key,)))
            else:
                node = self.model.__pydantic_extra_node__
                try:
                    extra[key] = value if node is None else node.validate(value, state)
                except Invalid as error:
                    lines.extend(error.at(key).lines)
        return extra if policy == "allow" else None

    def dump(self, value, how):
        # An instance of a subclass is dumped with the fields of the annotation's class.
        return dumped(self.model, value, how) if isinstance(value, self.model) else plain(value, how)

    def holds(self, value):
        return isinstance(value, self.model)

    def schema(self, schemas):
        model = self.model.complete()
        return schemas.reference(model, lambda: model_schema(model, schemas))


class Informed:
    """A `State` with the fields validated before."""

    def __init__(self, state, data):
        for name in type(state).__slots__:
            setattr(self, name, getattr(state, name))
        self.data = data

    def floor(self, exactness):
        if exactness < self.exactness:
            self.exactness = exactness

    def back(self, state):
        state.exactness, state.fields_set = self.exactness, self.fields_set


class Attributes:
    """An object, looked at as a dictionary."""

    def __init__(self, source):
        self.source = source

    def get(self, name, missing=None):
        return getattr(self.source, name, missing)

    def __contains__(self, name):
        return hasattr(self.source, name)

    def __getitem__(self, name):
        return getattr(self.source, name)

    def keys(self):
        return [name for name in dir(self.source) if not name.startswith("_")]


def informed(function, count, state):
    return (ValidationInfo(state),) if wants(function, count) else ()


def aliased(alias, data, seen):
    """`(place, value)` of a field by its alias."""
    if isinstance(alias, str):
        seen.add(alias)
        return alias, data.get(alias, _MISSING)
    if isinstance(alias, AliasPath):
        seen.add(alias.path[0])
        found = data
        for step in alias.path:
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError, AttributeError):
                return tuple(alias.path), _MISSING
        return tuple(alias.path), found
    if isinstance(alias, AliasChoices):
        first = None
        for choice in alias.choices:
            place, found = aliased(choice, data, seen)
            first = first or place
            if found is not _MISSING:
                return place, found
        return first, _MISSING
    return alias, _MISSING


def set_state(instance, values, given, extra):
    """Makes an instance what it is, past its own `__setattr__`."""
    put = object.__setattr__
    put(instance, "__dict__", values)
    put(instance, "__pydantic_fields_set__", given)
    put(instance, "__pydantic_extra__", extra)
    private = type(instance).__private_attributes__
    put(instance, "__pydantic_private__", None)
    if private:
        from .undefined import PydanticUndefined

        found = {name: attribute.get_default() for name, attribute in private.items()}
        put(instance, "__pydantic_private__", {k: v for k, v in found.items() if v is not PydanticUndefined})


def called_post_init(instance, state, value):
    called(lambda: instance.model_post_init(state.context), value)


def dumped(model, value, how):
    """`model_dump` of an instance by a model's fields."""
    serializer = model.__pydantic_model_serializer__
    if serializer is not None and used(serializer.about["when"], value, how):
        if serializer.about["mode"] == "wrap":
            return plain(serializer.function(value, lambda given: fields_dumped(model, given, how)), how)
        return plain(serializer.function(value), how)
    return fields_dumped(model, value, how)


def fields_dumped(model, value, how):
    model.complete()
    fields, nodes = model.model_fields, model.__pydantic_nodes__
    if model.__pydantic_root_model__:
        return nodes["root"].dump(vars(value)["root"], how)
    serializers = model.__pydantic_field_serializers__
    given = value.__pydantic_fields_set__
    by_alias = how.by_alias or model.model_config.get("serialize_by_alias", False)
    selective = how.include is not None or how.exclude is not None
    found = {}
    for name, inner in vars(value).items():
        field = fields.get(name)
        if field is None:
            continue
        if field.exclude or (how.exclude_unset and name not in given) or (how.exclude_none and inner is None):
            continue
        if selective and how.skips(name):
            continue
        if how.exclude_defaults and is_default(field, inner):
            continue
        below = how.inside(name) if selective else how
        key = field.serialization_alias if by_alias and field.serialization_alias else name
        serializer = serializers.get(name) or serializers.get("*")
        if serializer is not None and used(serializer.about["when"], inner, how):
            found[key] = by_serializer(serializer, value, inner, nodes[name], below)
        else:
            found[key] = nodes[name].dump(inner, below)
    if value.__pydantic_extra__:
        for name, inner in value.__pydantic_extra__.items():
            if (how.exclude_none and inner is None) or (selective and how.skips(name)):
                continue
            found[name] = plain(inner, how.inside(name) if selective else how)
    if not how.exclude_computed:
        for name, computed in model.__pydantic_computed__.items():
            if selective and how.skips(name):
                continue
            inner = getattr(value, name)
            if how.exclude_none and inner is None:
                continue
            found[computed.alias if by_alias and computed.alias else name] = plain(inner, how)
    return found


def is_default(field, value):
    """Whether a value is what the field has without being given; factories that look at other fields are not asked."""
    if field.is_required() or field.takes_data:
        return False
    return value == field.get_default(call_default_factory=True)


def by_serializer(serializer, instance, value, node, how):
    function = serializer.function
    bound = function.__get__(instance, type(instance))
    if serializer.about["mode"] == "wrap":
        arguments = (value, lambda inner, _=None: node.dump(inner, how))
        return plain(bound(*arguments, *((how,) if wants(bound, 2) else ())), how)
    return plain(bound(value, *((how,) if wants(bound, 1) else ())), how)


__all__ = ["ModelNode", "dumped", "set_state"]
