"""The parts of a class body: its fields, its private attributes, its validators."""

import sys
import typing

from .annotations import Names, annotated, node_for
from .errors import PydanticUndefinedAnnotation, PydanticUserError
from .fields import FieldInfo, ModelPrivateAttr, field_of
from .functional import ComputedField, Decorated, FunctionNode
from .undefined import PydanticUndefined

_IGNORED = (type(lambda: 0), property, classmethod, staticmethod, type, Decorated)


def own_annotations(namespace):
    """The annotations of a class body, of which a name not yet defined may stay text. Since 3.14 they are made by a function."""
    if "__annotations__" in namespace:
        return namespace["__annotations__"]
    if sys.version_info >= (3, 14):
        import annotationlib

        make = annotationlib.get_annotate_from_class_namespace(namespace)
        if make is not None:
            return annotationlib.call_annotate_function(make, annotationlib.Format.FORWARDREF)
    return {}


class ModelMetaclass(type):
    def __new__(meta, name, bases, namespace, **keywords):
        if not any(isinstance(base, ModelMetaclass) for base in bases):
            return super().__new__(meta, name, bases, namespace)
        config = {}
        for base in reversed(bases):
            config.update(getattr(base, "model_config", {}))
        config.update(namespace.get("model_config", {}))
        old = namespace.pop("Config", None)
        if isinstance(old, type):
            config.update({key: value for key, value in vars(old).items() if not key.startswith("__")})
        config.update({key: keywords.pop(key) for key in list(keywords)})
        annotations = own_annotations(namespace)
        checked(name, namespace, annotations)
        private = {}
        for base in reversed(bases):
            private.update(getattr(base, "__private_attributes__", {}))
        defaults = taken(namespace, annotations, private)
        namespace.setdefault("__slots__", ())
        namespace["model_config"] = config
        namespace["__private_attributes__"] = private
        model = super().__new__(meta, name, bases, namespace)
        if model.__doc__ is None and "__doc__" not in namespace:
            model.__doc__ = None
        model.__pydantic_own__ = (annotations, defaults)
        decorated(model)
        model.__pydantic_custom_init__ = not getattr(model.__init__, "__pydantic_base_init__", False)
        model.__pydantic_post_init__ = model.model_post_init is not bases_post_init(model)
        model.__pydantic_complete__ = False
        model.model_fields = collect(model, bases, annotations, defaults)
        frame = sys._getframe(1)
        model.__pydantic_names__ = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else None
        built(model, quietly=True)
        model.__pydantic_init_subclass__(**keywords)
        return model

    def __getattr__(cls, name):
        private = cls.__dict__.get("__private_attributes__")
        if private and name in private:
            return private[name]
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    @property
    def __fields__(cls):
        return cls.model_fields


def bases_post_init(model):
    for kind in model.__mro__:
        if kind.__dict__.get("__pydantic_base_model__"):
            return kind.__dict__["model_post_init"]
    return None


def checked(name, namespace, annotations):
    """A default without an annotation is a mistake."""
    for key, value in namespace.items():
        if key.startswith("_") or key in annotations or key == "model_config":
            continue
        if isinstance(value, FieldInfo):
            raise PydanticUserError(f"Field {key!r} requires a type annotation", code="model-field-missing-annotation")
        if not isinstance(value, _IGNORED) and not hasattr(type(value), "__get__"):
            raise PydanticUserError(
                f"A non-annotated attribute was detected: `{key} = {value!r}`. All model fields require a type annotation; "
                f"if `{key}` is not meant to be a field, you may be able to resolve this error by annotating it "
                "as a `ClassVar` or updating `model_config['ignored_types']`.",
                code="model-field-missing-annotation",
            )


def taken(namespace, annotations, private):
    """The defaults of the fields, taken out of the class body, as are private attributes."""
    defaults = {}
    for key in list(namespace):
        value = namespace[key]
        if isinstance(value, ModelPrivateAttr):
            private[key] = namespace.pop(key)
        elif key.startswith("_") and not key.startswith("__") and key in annotations and not is_class_variable(annotations[key]):
            private[key] = ModelPrivateAttr(namespace.pop(key))
        elif key.startswith("_") and not key.startswith("__") and not isinstance(value, _IGNORED) and not hasattr(type(value), "__get__"):
            private[key] = ModelPrivateAttr(namespace.pop(key))
    for key, annotation in annotations.items():
        if is_class_variable(annotation):
            continue
        if key.startswith("_"):
            if not key.startswith("__"):
                private.setdefault(key, ModelPrivateAttr())
            continue
        if key == "model_config":
            continue
        defaults[key] = namespace.pop(key) if key in namespace else PydanticUndefined
    return defaults


def is_class_variable(annotation):
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar


def collect(model, bases, annotations, defaults):
    """The fields, those of the bases first."""
    fields = {}
    for base in reversed(model.__mro__[1:]):
        if base.__dict__.get("__pydantic_own__"):
            own = base.__dict__["model_fields"]
            fields.update({name: field for name, field in own.items() if name in base.__pydantic_own__[1]})
    for name, default in defaults.items():
        fields[name] = field_of(annotations[name], default)
    return fields


def decorated(model):
    """The marks of decorators, over all bases; a later one of the same name takes the place."""
    found = {}
    for kind in reversed(model.__mro__):
        for name, value in kind.__dict__.items():
            if isinstance(value, (Decorated, ComputedField)):
                found[name] = value
            elif name in found:
                del found[name]
    by_kind = {"field": [], "model": [], "serializer": [], "model-serializer": []}
    for value in found.values():
        if isinstance(value, Decorated):
            by_kind[value.about["kind"]].append(value)
    model.__pydantic_field_validators__ = by_kind["field"]
    # Validators that see the input run outside those that see the instance; among equals, the later is outside.
    order = {"after": 0, "wrap": 1, "before": 2}
    model.__pydantic_model_validators__ = sorted(by_kind["model"], key=lambda value: order[value.about["mode"]])
    if any(value.about["mode"] == "wrap" for value in by_kind["model"]):
        model.__pydantic_model_validators__ = sorted(by_kind["model"], key=lambda v: {"wrap": 0, "before": 1, "after": 2}[v.about["mode"]])
    model.__pydantic_field_serializers__ = {name: value for value in by_kind["serializer"] for name in value.about["fields"]}
    model.__pydantic_model_serializer__ = by_kind["model-serializer"][-1] if by_kind["model-serializer"] else None
    model.__pydantic_computed__ = {name: value for name, value in found.items() if isinstance(value, ComputedField)}


def built(model, quietly=False, local=None):
    """Makes the nodes of the fields; whether it could. A name not defined yet is an error unless `quietly`."""
    if local is None:
        local = model.__pydantic_names__
    names = Names(model.__module__, {**(local or {}), model.__name__: model}, model.model_config)
    nodes = {}
    missing = None
    for name, field in model.model_fields.items():
        try:
            if isinstance(field.annotation, (str, typing.ForwardRef)):
                # The annotation's text may mean a name that a field hides.
                text = getattr(field.annotation, "__forward_arg__", field.annotation)
                resolved = field_of(names.resolve(text), PydanticUndefined)
                resolved = resolved.overridden(field)
                resolved.annotation = field_of(names.resolve(text), PydanticUndefined).annotation
                model.model_fields[name] = field = resolved
            nodes[name] = validated(model, name, annotated(field.annotation, field.metadata, names, field.discriminator))
        except PydanticUndefinedAnnotation as error:
            missing = missing or error.name
    if missing is not None:
        if quietly:
            return False
        raise PydanticUserError(
            f"`{model.__name__}` is not fully defined; you should define `{missing}`, then call "
            f"`{model.__name__}.model_rebuild()`.",
            code="class-not-fully-defined",
        )
    extra = model.__pydantic_own__[0].get("__pydantic_extra__")
    model.__pydantic_extra_node__ = None
    if extra is not None and typing.get_args(extra):
        model.__pydantic_extra_node__ = node_for(typing.get_args(extra)[1], names)
    model.__pydantic_nodes__ = nodes
    model.__pydantic_complete__ = True
    model.__pydantic_names__ = None
    return True


def validated(model, name, node):
    """The node of a field inside the model's own validators of it."""
    for validator in model.__pydantic_field_validators__:
        if name in validator.about["fields"] or "*" in validator.about["fields"]:
            node = FunctionNode(node, validator.function.__get__(None, model), validator.about["mode"], name)
    return node


