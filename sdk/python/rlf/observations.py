"""Results of tools, as the model reads them."""

import base64
import dataclasses
import enum
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Image:
    """A picture, such as `Image(png_bytes, "image/png")`."""

    data: bytes
    media_type: str


@dataclasses.dataclass
class Observation:
    """A result with more than one part, with numbers for the trainer, or marked as failed.

    Tools may return any other value instead: see `observation_of`.
    """

    content: list[Any]
    """Its parts, in order: `str`, `Image`, or any value that has a JSON form."""
    failed: bool = False
    """True if the model should read it as a failure."""
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    """Numbers for the trainer's logs. The model never sees them."""

    def __post_init__(self):
        if not isinstance(self.content, (list, tuple)):
            raise TypeError("the content of an rlf.Observation is a list of parts")
        if not isinstance(self.failed, bool):
            raise TypeError("`failed` of an rlf.Observation is True or False; give metrics as `metrics={..}`")


def observation_of(value):
    """The observation that shows a tool's result: text, numbers and booleans as text, other values as JSON, `None` as
    nothing."""
    if isinstance(value, Observation):
        return value
    return Observation([] if value is None else [value])


def part(value):
    """A part of an observation, in the form that the host reads."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, str):
        return {"text": str(value)}
    if isinstance(value, (bool, int, float)):
        return {"text": json.dumps(value)}
    if isinstance(value, Image):
        return {"image": {"media_type": value.media_type, "data": base64.b64encode(value.data).decode()}}
    value = plain(value)
    try:
        return {"structured": json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))}
    except ValueError:
        raise ValueError("a tool returned NaN or infinity inside a list or dictionary, which JSON does not have") from None


def plain(value):
    """A value made of what JSON has: dataclasses, pydantic models, enumerations, sets and tuples are converted."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        named = {key if isinstance(key, str) else json.dumps(plain(key)): plain(item) for key, item in value.items()}
        if len(named) < len(value):
            raise ValueError("a tool returned a dictionary in which two keys are the same text in JSON")
        return named
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", by_alias=True)
    raise TypeError(f"a tool returned {type(value).__name__}, which has no JSON form; return text, numbers, lists or dictionaries")
