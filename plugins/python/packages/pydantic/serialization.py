"""From values to plain Python, or to JSON: what `model_dump`, `model_dump_json` and a tool's result are written with."""

import datetime
import enum
import json
from json.encoder import encode_basestring
from math import isfinite

# `decimal`, `pathlib`, `uuid` and `dataclasses` are used only when such a value appears, because imports cost time.
_SCALARS = (str, int, float, bool, type(None))


class PydanticSerializationError(ValueError):
    """A value cannot be written as JSON."""

    __module__ = "pydantic.errors"  # where programs find it


class How:
    """The arguments of `model_dump`."""

    __slots__ = (
        "by_alias", "context", "exclude", "exclude_computed", "exclude_defaults", "exclude_none", "exclude_unset",
        "fallback", "include", "json", "keep_nan", "round_trip", "text",
    )  # fmt: skip

    def __init__(
        self,
        mode="python",
        include=None,
        exclude=None,
        context=None,
        by_alias=False,
        exclude_unset=False,
        exclude_defaults=False,
        exclude_none=False,
        exclude_computed=False,
        round_trip=False,
        fallback=None,
        keep_nan=False,
        text=False,
    ):
        self.json = mode == "json"
        self.include = include
        self.exclude = exclude
        self.context = context
        self.by_alias = bool(by_alias)
        self.exclude_unset = exclude_unset
        self.exclude_defaults = exclude_defaults
        self.exclude_none = exclude_none
        self.exclude_computed = exclude_computed or round_trip
        self.round_trip = round_trip
        self.fallback = fallback
        self.keep_nan = keep_nan
        self.text = text

    def inside(self, key):
        """The same for what lies at `key`: `include` and `exclude` go down with it."""
        if self.include is None and self.exclude is None:
            return self
        below = How.__new__(How)
        for name in How.__slots__:
            setattr(below, name, getattr(self, name))
        below.include = _below(self.include, key)
        below.exclude = _below(self.exclude, key)
        return below

    def skips(self, key):
        """Whether what lies at `key` is left out."""
        if self.exclude is not None:
            if isinstance(self.exclude, dict):
                if self.exclude.get(key, self.exclude.get("__all__")) in (True, Ellipsis):
                    return True
            elif key in self.exclude:
                return True
        if self.include is None:
            return False
        return key not in self.include and "__all__" not in self.include


def _below(selection, key):
    if not isinstance(selection, dict):
        return None
    found = selection.get(key, selection.get("__all__"))
    return None if found in (True, Ellipsis) else found


def plain(value, how):
    """A value dumped by what it is, where no annotation says."""
    kind = type(value)
    if kind in _SCALARS:
        if kind is float and how.json and not how.keep_nan and not isfinite(value):
            return None
        return value
    if kind is dict:
        return mapping(value, how)
    if kind is list:
        return [plain(item, how) for item in value]
    dump = getattr(kind, "__pydantic_dump__", None)
    if dump is not None:
        return dump(value, how)
    if isinstance(value, dict):
        return mapping(value, how)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain(item, how) for item in value]
        if how.json or isinstance(value, list):
            return items
        if isinstance(value, tuple):
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return frozenset(items) if isinstance(value, frozenset) else set(items)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: plain(getattr(value, name), how) for name in kind.__dataclass_fields__ if name in vars(value)}
    if how.json:
        return jsonable(value, how)
    return value


def mapping(value, how, key=None, item=None):
    """A dictionary dumped, its keys and values by nodes where there are any."""
    found = {}
    for name, inner in value.items():
        if how.exclude is not None or how.include is not None:
            if how.skips(name):
                continue
            below = how.inside(name)
        else:
            below = how
        name = json_key(name, how) if how.json else name if key is None else key.dump(name, how)
        found[name] = plain(inner, below) if item is None else item.dump(inner, below)
    return found


def jsonable(value, how):
    """The JSON form of a value that is neither scalar nor container."""
    if isinstance(value, enum.Enum):
        return plain(value.value, how)
    if isinstance(value, (bool, int, float, str)):
        for kind in (str, int, float):
            if isinstance(value, kind):
                return kind(value) if kind is not str else str.__str__(value)
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            if not how.text:
                raise UnicodeDecodeError("utf-8", bytes(value), error.start, error.end, "invalid utf-8") from None
            raise PydanticSerializationError(
                f"Error serializing to JSON: invalid utf-8 sequence of {error.end - error.start} bytes "
                f"from index {error.start}"
            ) from None
    if isinstance(value, datetime.datetime):
        return iso(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return iso(value) if isinstance(value, datetime.time) else value.isoformat()
    if isinstance(value, datetime.timedelta):
        return duration(value)
    name = type(value).__module__, type(value).__name__
    if name[0] in ("decimal", "_decimal", "_pydecimal", "uuid", "ipaddress") or name[0].startswith("pathlib"):
        return str(value)
    if isinstance(value, type({}.keys())) or isinstance(value, type({}.values())) or hasattr(value, "__next__"):
        return [plain(item, how) for item in value]
    if name == ("collections", "deque"):
        return [plain(item, how) for item in value]
    if name == ("re", "Pattern"):
        return value.pattern
    if how.fallback is not None:
        return plain(how.fallback(value), how)
    raise PydanticSerializationError(f"Unable to serialize unknown type: {type(value)}")


def json_key(key, how):
    """A key as text, as JSON needs it."""
    if type(key) is str:
        return key
    if key is None:
        return "None"
    if key is True or key is False:
        return "true" if key else "false"
    if isinstance(key, tuple) and not isinstance(key, enum.Enum):
        return ",".join(json_key(item, how) for item in key)
    if isinstance(key, float) and not isinstance(key, enum.Enum):
        return float.__repr__(key) if key != key or key in (float("inf"), float("-inf")) else number(key)
    text = jsonable(key, how)
    return text if type(text) is str else number(text) if isinstance(text, float) else json_key(text, how) if not isinstance(text, int) else str(text)


def iso(moment):
    """Date and time, or time, in ISO 8601; UTC is `Z`."""
    text = moment.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def duration(delta):
    """ISO 8601's duration."""
    sign = ""
    if delta < datetime.timedelta():
        sign, delta = "-", -delta
    years, days = divmod(delta.days, 365)
    hours, rest = divmod(delta.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    date = (f"{years}Y" if years else "") + (f"{days}D" if days else "")
    time = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if delta.microseconds:
        time += f"{seconds}.{delta.microseconds:06d}".rstrip("0") + "S"
    elif seconds:
        time += f"{seconds}S"
    if not date and not time:
        return "PT0S"
    return f"{sign}P{date}" + (f"T{time}" if time else "")


def number(value):
    """A float as pydantic writes it: shortest digits, like `repr` but for the exponent."""
    text = float.__repr__(value)
    if "n" in text:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if "e-" in text:
        digits, exponent = text.split("e-")
        if exponent == "05":
            sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
            return f"{sign}0.0000{digits.replace('.', '')}"
        return f"{digits}e-{int(exponent)}"
    return text


def write(value, out, newline, step):
    """Appends the JSON text of plain values to `out`."""
    if type(value) is str:
        out.append(encode_basestring(value))
    elif value is None:
        out.append("null")
    elif value is True or value is False:
        out.append("true" if value else "false")
    elif type(value) is int:
        out.append(int.__repr__(value))
    elif type(value) is float:
        out.append(number(value))
    elif not value:
        out.append("{}" if type(value) is dict else "[]")
    else:
        inner = newline + step if step else ""
        between = "," + inner
        if type(value) is dict:
            colon = ": " if step else ":"
            lead = "{" + inner
            for key, item in value.items():
                out.append(lead)
                out.append(encode_basestring(key))
                out.append(colon)
                write(item, out, inner, step)
                lead = between
            out.append((newline if step else "") + "}")
        else:
            lead = "[" + inner
            for item in value:
                out.append(lead)
                write(item, out, inner, step)
                lead = between
            out.append((newline if step else "") + "]")


def text(value, indent=None):
    """The JSON text of plain values."""
    out = []
    write(value, out, "\n", " " * indent if indent else "")
    return "".join(out)


def to_json(value, *, indent=None, fallback=None, by_alias=True, exclude_none=False):
    """JSON of any value, as bytes: what `pydantic_core.to_json` gives."""
    how = How("json", by_alias=by_alias, exclude_none=exclude_none, fallback=fallback, keep_nan=True, text=True)
    found = text(plain(value, how), indent)
    try:
        return found.encode()
    except UnicodeEncodeError as error:
        raise PydanticSerializationError(f"Error serializing to JSON: invalid utf-8 sequence: {error.reason}") from None


def to_jsonable_python(value, *, fallback=None, by_alias=True):
    """The value in what JSON has."""
    return plain(value, How("json", by_alias=by_alias, fallback=fallback, keep_nan=True))


def from_json(data):
    """The value of a JSON text."""
    return json.loads(data)
