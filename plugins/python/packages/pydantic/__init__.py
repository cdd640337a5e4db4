"""The part of pydantic v2 that environments written as one Python file use, in plain Python.

pydantic itself needs pydantic-core, which is compiled Rust and does not run inside the sandbox's CPython. What is here
validates, dumps, describes and complains as pydantic does; the README beside this package says where it stops.

In order of reading: `node` is what annotations are compiled to, `annotations` compiles them; `scalars`, `containers`,
`choices`, `temporal`, `objects`, `records` and `models` are the nodes; `fields`, `functional` and `metaclass` are what
a class body is made of; `main` is `BaseModel`.
"""

from .errors import (
    PydanticCustomError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticSerializationError,
    PydanticUndefinedAnnotation, PydanticUserError, ValidationError,
)  # fmt: skip
from .fields import AliasChoices, AliasPath, Field, PrivateAttr, StringConstraints
from .functional import (
    AfterValidator, BeforeValidator, InstanceOf, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema,
    WrapValidator, computed_field, field_serializer, field_validator, model_serializer, model_validator, validator,
)  # fmt: skip
from .main import BaseModel, create_model
from .root_model import RootModel, TypeAdapter, parse_obj_as
from .types import (
    FiniteFloat, NegativeFloat, NegativeInt, NonNegativeFloat, NonNegativeInt, NonPositiveFloat, NonPositiveInt,
    PositiveFloat, PositiveInt, StrictBool, StrictBytes, StrictFloat, StrictInt, StrictStr, confloat, conint, conlist,
    conset, constr,
)  # fmt: skip
from .version import VERSION

ConfigDict = dict
__version__ = VERSION

__all__ = [
    "AfterValidator", "AliasChoices", "AliasPath", "BaseModel", "BeforeValidator", "ConfigDict", "Field", "FiniteFloat",
    "InstanceOf", "NegativeFloat", "NegativeInt", "NonNegativeFloat", "NonNegativeInt", "NonPositiveFloat",
    "NonPositiveInt", "PlainSerializer", "PlainValidator", "PositiveFloat", "PositiveInt", "PrivateAttr",
    "PydanticCustomError", "PydanticInvalidForJsonSchema", "PydanticSchemaGenerationError", "PydanticSerializationError",
    "PydanticUndefinedAnnotation", "PydanticUserError", "RootModel", "StrictBool", "StrictBytes", "StrictFloat",
    "StrictInt", "StrictStr", "StringConstraints", "TypeAdapter", "VERSION", "ValidationError", "ValidationInfo",
    "WithJsonSchema", "WrapValidator", "computed_field", "confloat", "conint", "conlist", "conset", "constr",
    "create_model", "field_serializer", "field_validator", "model_serializer", "model_validator", "parse_obj_as",
    "validator",
]  # fmt: skip
