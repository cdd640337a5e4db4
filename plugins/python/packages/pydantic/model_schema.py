"""The JSON Schema of a model."""

import inspect

from .annotations import Names, node_for
from .json_schema import fields_schema, title_of
from .serialization import How
from .undefined import PydanticUndefined


def model_schema(model, schemas):
    """The definition of a model."""
    config = model.model_config
    if model.__pydantic_root_model__:
        field = model.model_fields["root"]
        found = dict(model.__pydantic_nodes__["root"].schema(schemas))
        if field.description is not None:
            found["description"] = field.description
        if field.default is not PydanticUndefined:
            found["default"] = model.__pydantic_nodes__["root"].dump(field.default, How("json"))
        found.setdefault("title", config.get("title") or model.__name__)
    else:
        fields = [
            (name, field, model.__pydantic_nodes__[name], needed(field, schemas, config))
            for name, field in model.model_fields.items()
            if not (schemas.mode == "serialization" and field.exclude)
        ]
        found = fields_schema(fields, schemas)
        found["title"] = config.get("title") or model.__name__
        if schemas.mode == "serialization":
            computed_schema(model, found, schemas)
        extra = config.get("extra")
        if extra in ("forbid", "allow"):
            found["additionalProperties"] = extra == "allow"
    text = model.__dict__.get("__doc__")
    if text and "description" not in found:
        found["description"] = inspect.cleandoc(text)
    more = config.get("json_schema_extra")
    if callable(more):
        more(found) if not wants_class(more) else more(found, model)
    elif more:
        found.update(more)
    return found


def wants_class(function):
    return len(inspect.signature(function).parameters) > 1


def needed(field, schemas, config):
    """Whether a field has to be there: in what is dumped, one with a default is too, if the config says so."""
    if schemas.mode == "serialization" and config.get("json_schema_serialization_defaults_required"):
        return not field.exclude
    return field.is_required()


def computed_schema(model, found, schemas):
    for name, computed in model.__pydantic_computed__.items():
        node = node_for(computed.returns, Names(model.__module__))
        schema = dict(node.schema(schemas))
        key = computed.alias if schemas.by_alias and computed.alias else name
        if node.titled:
            schema["title"] = computed.title or title_of(key)
        if computed.description:
            schema["description"] = computed.description
        schema["readOnly"] = True
        found["properties"][key] = schema
        found.setdefault("required", []).append(key)
