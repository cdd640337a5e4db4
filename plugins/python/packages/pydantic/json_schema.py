"""JSON Schemas: `model_json_schema` and what it collects on the way."""

import inspect

from .errors import PydanticInvalidForJsonSchema, PydanticSerializationError
from .serialization import How, to_jsonable_python
from .undefined import PydanticUndefined

PREFIX = "#/$defs/"


class Schemas:
    """One schema in the making: its definitions, and which of `validation` and `serialization` it is for."""

    def __init__(self, by_alias=True, mode="validation"):
        self.by_alias = by_alias
        self.mode = mode
        self.names = {}  # class to name
        self.definitions = {}  # name to schema

    def reference(self, kind, define):
        """Refers to a class's definition, and has it made the first time."""
        if kind not in self.names:
            name = kind.__name__
            if name in self.definitions:
                # Two classes with the same name are told apart by their modules.
                name = f"{kind.__module__}__{kind.__qualname__}".replace(".", "__").replace("<", "_").replace(">", "_")
            self.names[kind] = name
            self.definitions[name] = None
            self.definitions[name] = define()
        return {"$ref": PREFIX + self.names[kind]}

    def finished(self, schema):
        """The schema with the definitions it needs, keys in pydantic's order."""
        used = {}
        self.collect(schema, used)
        target = schema.get("$ref", "").removeprefix(PREFIX)
        if target in used and set(schema) == {"$ref"}:
            # Only a schema that refers to itself stays a definition.
            inner = {}
            self.collect(self.definitions[target], inner)
            if target not in inner:
                schema, used = self.definitions[target], inner
        if used:
            schema = {"$defs": {name: self.definitions[name] for name in sorted(used)}} | schema
        return ordered(schema)

    def collect(self, schema, used):
        if isinstance(schema, dict):
            target = schema.get("$ref")
            if isinstance(target, str) and target.startswith(PREFIX):
                name = target.removeprefix(PREFIX)
                if name not in used and name in self.definitions:
                    used[name] = True
                    self.collect(self.definitions[name], used)
            for inner in schema.values():
                self.collect(inner, used)
        elif isinstance(schema, list):
            for inner in schema:
                self.collect(inner, used)


def ordered(value, parent=None):
    """The schema with sorted keys, but for properties and defaults."""
    if isinstance(value, dict):
        keys = value if parent in ("properties", "default") else sorted(value)
        return {key: ordered(value[key], key) for key in keys}
    if isinstance(value, list):
        return [ordered(item, parent) for item in value]
    return value


def title_of(name):
    """A title made of a field's name."""
    return name.title().replace("_", " ").strip()


def field_schema(field, node, name, schemas):
    """The schema of a field: that of its type, with what describes the field."""
    found = dict(node.schema(schemas))
    beside = {}
    if not field.is_required() and field.default is not PydanticUndefined:
        try:
            number = type(field.default) is int
            beside["default"] = field.default if number else node.dump(field.default, How("json"))
        except PydanticSerializationError:
            pass  # pydantic warns, and leaves it out
    if field.title is not None:
        beside["title"] = field.title
    elif node.titled and "title" not in found:
        beside["title"] = title_of(name)
    if field.description is not None:
        beside["description"] = inspect.cleandoc(field.description)
    if field.examples is not None:
        beside["examples"] = plain_or_none(field.examples)
    if field.deprecated:
        beside["deprecated"] = True
    found.update(beside)
    extra = field.json_schema_extra
    if callable(extra):
        extra(found)
    elif extra:
        found.update(extra)
    return found


def plain_or_none(value):
    return to_jsonable_python(value, fallback=str)


def fields_schema(fields, schemas):
    """`properties` and `required` of `(name, field, node, required)`."""
    properties, required = {}, []
    for name, field, node, needed in fields:
        alias = field.validation_alias if schemas.mode == "validation" else field.serialization_alias
        key = alias if schemas.by_alias and isinstance(alias, str) else name
        properties[key] = field_schema(field, node, key, schemas)
        if needed:
            required.append(key)
    found = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return found


class GenerateJsonSchema:
    """Here for annotations only: schemas are not made by subclasses of it."""


def made(node, by_alias=True, mode="validation"):
    """The JSON Schema of a node."""
    schemas = Schemas(by_alias, mode)
    return schemas.finished(node.schema(schemas))


__all__ = ["GenerateJsonSchema", "PydanticInvalidForJsonSchema", "Schemas", "made"]
