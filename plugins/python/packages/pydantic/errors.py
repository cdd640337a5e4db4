"""Errors: in a value (`ValidationError`, with pydantic's own texts) or in how a model is written."""

import json

from .serialization import PydanticSerializationError, to_json  # noqa: F401
from .version import ERRORS_URL

# Models are trained on these texts, so they are pydantic's, letter for letter. `{name}` comes from the context.
MESSAGES = {
    "no_such_attribute": "Object has no attribute '{attribute}'",
    "json_invalid": "Invalid JSON: {error}",
    "json_type": "JSON input should be string, bytes or bytearray",
    "missing": "Field required",
    "frozen_field": "Field is frozen",
    "frozen_instance": "Instance is frozen",
    "extra_forbidden": "Extra inputs are not permitted",
    "invalid_key": "Keys should be strings",
    "model_type": "Input should be a valid dictionary or instance of {class_name}",
    "model_attributes_type": "Input should be a valid dictionary or object to extract fields from",
    "dataclass_type": "Input should be a dictionary or an instance of {class_name}",
    "none_required": "Input should be None",
    "greater_than": "Input should be greater than {gt}",
    "greater_than_equal": "Input should be greater than or equal to {ge}",
    "less_than": "Input should be less than {lt}",
    "less_than_equal": "Input should be less than or equal to {le}",
    "multiple_of": "Input should be a multiple of {multiple_of}",
    "finite_number": "Input should be a finite number",
    "iterable_type": "Input should be iterable",
    "string_type": "Input should be a valid string",
    "string_sub_type": "Input should be a string, not an instance of a subclass of str",
    "string_unicode": "Input should be a valid string, unable to parse raw data as a unicode string",
    "string_pattern_mismatch": "String should match pattern '{pattern}'",
    "enum": "Input should be {expected}",
    "literal_error": "Input should be {expected}",
    "dict_type": "Input should be a valid dictionary",
    "mapping_type": "Input should be a valid mapping, error: {error}",
    "list_type": "Input should be a valid list",
    "tuple_type": "Input should be a valid tuple",
    "set_type": "Input should be a valid set",
    "frozen_set_type": "Input should be a valid frozenset",
    "set_item_not_hashable": "Set items should be hashable",
    "bool_type": "Input should be a valid boolean",
    "bool_parsing": "Input should be a valid boolean, unable to interpret input",
    "int_type": "Input should be a valid integer",
    "int_parsing": "Input should be a valid integer, unable to parse string as an integer",
    "int_parsing_size": "Unable to parse input string as an integer, exceeded maximum size",
    "int_from_float": "Input should be a valid integer, got a number with a fractional part",
    "float_type": "Input should be a valid number",
    "float_parsing": "Input should be a valid number, unable to parse string as a number",
    "bytes_type": "Input should be a valid bytes",
    "value_error": "Value error, {error}",
    "assertion_error": "Assertion failed, {error}",
    "date_type": "Input should be a valid date",
    "date_parsing": "Input should be a valid date in the format YYYY-MM-DD, {error}",
    "date_from_datetime_parsing": "Input should be a valid date or datetime, {error}",
    "date_from_datetime_inexact": "Datetimes provided to dates should have zero time - e.g. be exact dates",
    "time_type": "Input should be a valid time",
    "time_parsing": "Input should be in a valid time format, {error}",
    "datetime_type": "Input should be a valid datetime",
    "datetime_parsing": "Input should be a valid datetime, {error}",
    "datetime_from_date_parsing": "Input should be a valid datetime or date, {error}",
    "time_delta_type": "Input should be a valid timedelta",
    "time_delta_parsing": "Input should be a valid timedelta, {error}",
    "decimal_type": "Decimal input should be an integer, float, string or Decimal object",
    "decimal_parsing": "Input should be a valid decimal",
    "is_instance_of": "Input should be an instance of {class}",
    "is_subclass_of": "Input should be a subclass of {class}",
    "callable_type": "Input should be callable",
    "uuid_type": "UUID input should be a string, bytes or UUID object",
    "uuid_parsing": "Input should be a valid UUID, {error}",
    "path_type": "Input is not a valid path",
    "union_tag_invalid": (
        "Input tag '{tag}' found using {discriminator} does not match any of the expected tags: {expected_tags}"
    ),
    "union_tag_not_found": "Unable to extract tag using discriminator {discriminator}",
}


def _plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def message(kind, context):
    """The text of an error of this kind."""
    if kind == "string_too_short":
        return f"String should have at least {_plural(context['min_length'], 'character')}"
    if kind == "string_too_long":
        return f"String should have at most {_plural(context['max_length'], 'character')}"
    if kind == "bytes_too_short":
        return f"Data should have at least {_plural(context['min_length'], 'byte')}"
    if kind == "bytes_too_long":
        return f"Data should have at most {_plural(context['max_length'], 'byte')}"
    if kind in ("too_short", "too_long"):
        which, bound = ("least", "min_length") if kind == "too_short" else ("most", "max_length")
        actual = "more" if context["actual_length"] is None else context["actual_length"]
        noun = _plural(context[bound], "item")
        return f"{context['field_type']} should have at {which} {noun} after validation, not {actual}"
    text = MESSAGES[kind]
    return text.format_map(context) if context else text


class Line:
    """One thing wrong, at one place. The place is written from the inside out while the error travels."""

    __slots__ = ("context", "input", "kind", "place", "text")

    def __init__(self, kind, value, context=None, place=(), text=None):
        self.kind = kind
        self.input = value
        self.context = context
        self.place = list(place)
        self.text = message(kind, context) if text is None else text

    def location(self):
        return tuple(reversed(self.place))


class Invalid(Exception):
    """The exception of validation inside this package; `ValidationError` is made of it at the edge."""

    def __init__(self, lines):
        self.lines = lines

    def at(self, *place):
        """The same, one level further out."""
        for line in self.lines:
            line.place.extend(place)
        return self


def invalid(kind, value, **context):
    """An `Invalid` of one line."""
    return Invalid([Line(kind, value, context or None)])


def shortened(value):
    """`repr`, at most some 50 bytes of it, cut in the middle between characters."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<unprintable {type(value).__name__} object>" if not isinstance(error, RecursionError) else "..."
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= 50:
        return text
    return data[:25].decode("utf-8", "ignore") + "..." + data[-24:].decode("utf-8", "ignore")


def _part(part):
    if isinstance(part, str):
        return f"`{part}`" if "." in part else part
    return str(part)


class ValidationError(ValueError):
    """All errors of a value, each with its place."""

    def __init__(self, title, lines=(), hide_input=False):
        super().__init__()
        self._title = title
        self._lines = list(lines)
        self._hide_input = hide_input

    def __reduce__(self):
        return ValidationError, (self._title, self._lines, self._hide_input)

    @classmethod
    def from_exception_data(cls, title, line_errors, input_type="python", hide_input=False):
        lines = []
        for given in line_errors:
            kind, context = given["type"], given.get("ctx")
            if isinstance(kind, PydanticCustomError):
                kind, context, text = kind.type, kind.context, kind.message()
            else:
                text = None
            place = reversed(tuple(given.get("loc", ())))
            lines.append(Line(kind, given.get("input"), context, place, text))
        return cls(title, lines, hide_input)

    @property
    def title(self):
        return self._title

    def error_count(self):
        return len(self._lines)

    def errors(self, *, include_url=True, include_context=True, include_input=True):
        found = []
        for line in self._lines:
            error = {"type": line.kind, "loc": line.location(), "msg": line.text}
            if include_input:
                error["input"] = line.input
            if include_context and line.context:
                error["ctx"] = dict(line.context)
            if include_url and line.kind in MESSAGES or line.kind.endswith(("_short", "_long")):
                error["url"] = ERRORS_URL + line.kind
            found.append(error)
        return found

    def json(self, *, indent=None, include_url=True, include_context=True, include_input=True):
        found = self.errors(include_url=include_url, include_context=include_context, include_input=include_input)
        return to_json(found, indent=indent, fallback=str).decode()

    def __str__(self):
        count = len(self._lines)
        text = [f"{count} validation error{'' if count == 1 else 's'} for {self._title}"]
        for line in self._lines:
            place = line.location()
            if place:
                text.append(".".join(map(_part, place)))
            given = "" if self._hide_input else f", input_value={shortened(line.input)}, input_type={_type_of(line.input)}"
            text.append(f"  {line.text} [type={line.kind}{given}]")
            if line.kind in MESSAGES or line.kind.endswith(("_short", "_long")):
                text.append(f"    For further information visit {ERRORS_URL}{line.kind}")
        return "\n".join(text)

    __repr__ = __str__


def _type_of(value):
    return type(value).__name__


class PydanticCustomError(ValueError):
    """What a validator raises to choose the error's type and text."""

    def __init__(self, error_type, message_template, context=None, /):
        super().__init__(error_type, message_template, context)
        self.type = error_type
        self.message_template = message_template
        self.context = context

    def message(self):
        text = self.message_template
        for name, value in (self.context or {}).items():
            text = text.replace("{" + name + "}", str(value))
        return text

    __str__ = message


class PydanticUserError(RuntimeError):
    """A model is written wrongly."""

    def __init__(self, message, *, code=None):
        super().__init__(message)
        self.message = message
        self.code = code

    def __str__(self):
        if self.code is None:
            return self.message
        url = f"{ERRORS_URL.removesuffix('v/')}u/{self.code}"
        return f"{self.message}\n\nFor further information visit {url}"


class PydanticSchemaGenerationError(PydanticUserError):
    """An annotation is none that values can be validated by."""

    def __init__(self, message):
        super().__init__(message, code="schema-for-unknown-type")


class PydanticUndefinedAnnotation(NameError):
    """An annotation names what is not defined."""

    def __init__(self, name, message):
        super().__init__(message)
        self.name = name
        self.message = message


class PydanticInvalidForJsonSchema(PydanticUserError):
    """A type has no JSON Schema."""

    def __init__(self, message):
        super().__init__(message, code="invalid-for-json-schema")
