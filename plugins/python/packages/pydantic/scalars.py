"""Text, numbers and booleans, with what lax validation makes of each other."""

import enum
import math
import re

from .errors import invalid
from .node import LAX, STRICT, Node

_INTEGER = re.compile(r"[+-]?\d+(?:_\d+)*(?:\.0*)?", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:(?:\d+(?:_\d+)*)?\.?(?:\d+(?:_\d+)*)?(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_TRUE = frozenset(("1", "on", "t", "true", "y", "yes"))
_FALSE = frozenset(("0", "off", "f", "false", "n", "no"))
_MAX_DIGITS = 4300


class NoneNode(Node):
    label = "none"

    def validate(self, value, state):
        if value is not None:
            raise invalid("none_required", value)
        return value

    def holds(self, value):
        return value is None

    def schema(self, schemas):
        return {"type": "null"}


class BoolNode(Node):
    label = "bool"

    def __init__(self, strict=None):
        self.strict = strict

    def validate(self, value, state):
        if value is True or value is False:
            return value
        if state.strict if self.strict is None else self.strict:
            raise invalid("bool_type", value)
        state.floor(LAX)
        if isinstance(value, str) or isinstance(value, (bytes, bytearray)):
            word = decoded(value)
            word = None if word is None else word.lower()
            if word in _TRUE:
                return True
            if word in _FALSE:
                return False
            raise invalid("bool_parsing", value)
        if isinstance(value, (int, float)):
            if value == 1:
                return True
            if value == 0:
                return False
            whole = math.isfinite(value) and value == int(value) and -(2**63) <= value < 2**63
            raise invalid("bool_parsing" if whole else "bool_type", value)
        raise invalid("bool_type", value)

    def holds(self, value):
        return isinstance(value, bool)

    def schema(self, schemas):
        return {"type": "boolean"}


def decoded(value):
    """The text of a string or of bytes; `None` where bytes are no text."""
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return None


class Numeric(Node):
    """The base of whole and real numbers: bounds."""

    BOUNDS = (("multiple_of", "multipleOf"), ("le", "maximum"), ("lt", "exclusiveMaximum"), ("ge", "minimum"), ("gt", "exclusiveMinimum"))  # fmt: skip
    ALLOWED = frozenset(("gt", "ge", "lt", "le", "multiple_of", "strict"))

    def __init__(self, **bounds):
        self.strict = bounds.pop("strict", None)
        self.bounds = bounds

    def bound(self, value, original):
        bounds = self.bounds
        if "multiple_of" in bounds and not self.divides(value, bounds["multiple_of"]):
            raise invalid("multiple_of", original, multiple_of=shown(bounds["multiple_of"]))
        if "le" in bounds and not value <= bounds["le"]:
            raise invalid("less_than_equal", original, le=shown(bounds["le"]))
        if "lt" in bounds and not value < bounds["lt"]:
            raise invalid("less_than", original, lt=shown(bounds["lt"]))
        if "ge" in bounds and not value >= bounds["ge"]:
            raise invalid("greater_than_equal", original, ge=shown(bounds["ge"]))
        if "gt" in bounds and not value > bounds["gt"]:
            raise invalid("greater_than", original, gt=shown(bounds["gt"]))
        return value

    @staticmethod
    def divides(value, step):
        return value % step == 0

    def schema(self, schemas):
        found = {"type": self.NAME}
        for name, keyword in self.BOUNDS:
            if name in self.bounds:
                found[keyword] = self.bounds[name]
        return found


def shown(bound):
    """A bound as messages have it: a whole float without its fraction."""
    if isinstance(bound, float) and bound.is_integer() and abs(bound) < 1e16:
        return int(bound)
    return bound


class IntNode(Numeric):
    NAME = "integer"

    @property
    def label(self):
        return "constrained-int" if self.bounds else "int"

    def validate(self, value, state):
        if type(value) is int:
            found = value
        elif state.strict if self.strict is None else self.strict:
            if not isinstance(value, int) or isinstance(value, bool) or isinstance(value, enum.Enum):
                raise invalid("int_type", value)
            state.floor(STRICT)
            found = int(value)
        else:
            found = self.whole(value, state)
        return self.bound(found, value) if self.bounds else found

    @staticmethod
    def whole(value, state):
        state.floor(LAX if isinstance(value, bool) or not isinstance(value, int) else STRICT)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise invalid("finite_number", value)
            if value != int(value):
                raise invalid("int_from_float", value)
            if not -(2.0**63) < value < 2.0**63:
                raise invalid("int_parsing_size", value)
            return int(value)
        if isinstance(value, (str, bytes)):
            text = decoded(value.value if isinstance(value, enum.Enum) else value)
            text = "" if text is None else text.strip()
            if not _INTEGER.fullmatch(text):
                raise invalid("int_parsing", value)
            digits = text.partition(".")[0]
            if len(digits) > _MAX_DIGITS:
                raise invalid("int_parsing_size", value)
            return int(digits)
        if type(value).__name__ == "Decimal":
            if not value.is_finite():
                raise invalid("finite_number", value)
            if value != int(value):
                raise invalid("int_from_float", value)
            return int(value)
        if isinstance(value, enum.Enum) and isinstance(value.value, int):
            return int(value.value)
        raise invalid("int_type", value)

    def holds(self, value):
        return isinstance(value, int) and not isinstance(value, bool)


class FloatNode(Numeric):
    NAME = "number"
    ALLOWED = Numeric.ALLOWED | {"allow_inf_nan"}

    def __init__(self, allow_inf_nan=True, **bounds):
        super().__init__(**bounds)
        self.allow_inf_nan = allow_inf_nan

    @property
    def label(self):
        return "constrained-float" if self.bounds else "float"

    def validate(self, value, state):
        if type(value) is float:
            found = value
        elif type(value) is int:
            state.floor(STRICT)
            try:
                found = float(value)
            except OverflowError:
                raise invalid("float_type", value) from None
        elif state.strict if self.strict is None else self.strict:
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise invalid("float_type", value)
            found = float(value)
        else:
            state.floor(LAX)
            found = self.real(value)
        if not self.allow_inf_nan and not math.isfinite(found):
            raise invalid("finite_number", value)
        return self.bound(found, value) if self.bounds else found

    @staticmethod
    def real(value):
        if isinstance(value, (str, bytes)):
            text = decoded(value)
            text = "" if text is None else text.strip()
            if not _FLOAT.fullmatch(text):
                raise invalid("float_parsing", value)
            try:
                return float(text.replace("_", ""))
            except ValueError:
                raise invalid("float_parsing", value) from None
        if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
            try:
                return float(value)
            except Exception:
                raise invalid("float_type", value) from None
        raise invalid("float_type", value)

    def dump(self, value, how):
        if type(value) is float:
            return None if how.text and not how.keep_nan and not math.isfinite(value) else value
        # If a default is a whole number, its JSON is a real number all the same.
        return float(value) if type(value) is int and how.json else super().dump(value, how)

    @staticmethod
    def divides(value, step):
        rest = value % step
        return min(rest, abs(rest - step)) <= abs(value) / 1e9

    def holds(self, value):
        return isinstance(value, float)


def rust_pattern(pattern):
    """A pattern of Rust's regex, which pydantic uses, for Python's: there `$` is the very end, and `\\z` is known."""
    out, inside, place = [], False, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\" and place + 1 < len(pattern):
            pair = pattern[place : place + 2]
            out.append("\\Z" if pair == "\\z" else pair)
            place += 2
            continue
        if sign == "[" and not inside:
            inside = True
        elif sign == "]" and inside and pattern[place - 1] != "[" and pattern[place - 2 : place] != "[^":
            inside = False
        out.append("\\Z" if sign == "$" and not inside else sign)
        place += 1
    return "".join(out)


class StrNode(Node):
    ALLOWED = frozenset((
        "min_length", "max_length", "pattern", "strict", "strip_whitespace", "to_lower", "to_upper", "coerce_numbers_to_str",
    ))  # fmt: skip

    def __init__(self, strict=None, pattern=None, coerce_numbers_to_str=False, **rules):
        self.strict = strict
        self.coerce = coerce_numbers_to_str
        self.rules = {name: rule for name, rule in rules.items() if rule not in (None, False)}
        self.pattern = pattern
        if pattern is not None:
            self.written = pattern if isinstance(pattern, str) else pattern.pattern
            # Not if the pattern has the inline flag for multiple lines: then `$` also matches elsewhere.
            flags = re.match(r"\(\?\w*m", self.written)
            self.matches = re.compile(self.written if flags else rust_pattern(self.written)) if isinstance(pattern, str) else pattern

    @property
    def label(self):
        return "constrained-str" if self.rules or self.pattern is not None else "str"

    def validate(self, value, state):
        if type(value) is str:
            found = value
        elif isinstance(value, str):
            state.floor(STRICT)
            # A member of an enumeration becomes its value, not its name.
            found = value.value if isinstance(value, enum.Enum) else str.__str__(value)
            found = str.__str__(found) if type(found) is not str else found
        elif state.strict if self.strict is None else self.strict:
            raise invalid("string_type", value)
        elif isinstance(value, (bytes, bytearray)):
            state.floor(LAX)
            found = decoded(value)
            if found is None:
                raise invalid("string_unicode", value)
        elif isinstance(value, enum.Enum):
            state.floor(LAX)
            found = str(value.value)
        elif self.coerce and isinstance(value, (int, float)) and not isinstance(value, bool):
            state.floor(LAX)
            found = str(value)
        else:
            raise invalid("string_type", value)
        if self.rules or self.pattern is not None:
            return self.ruled(found, value)
        return found

    def ruled(self, found, value):
        rules = self.rules
        if "strip_whitespace" in rules:
            found = found.strip()
        if "min_length" in rules and len(found) < rules["min_length"]:
            raise invalid("string_too_short", value, min_length=rules["min_length"])
        if "max_length" in rules and len(found) > rules["max_length"]:
            raise invalid("string_too_long", value, max_length=rules["max_length"])
        if self.pattern is not None and not self.matches.search(found):
            raise invalid("string_pattern_mismatch", value, pattern=self.written)
        if "to_lower" in rules:
            found = found.lower()
        if "to_upper" in rules:
            found = found.upper()
        return found

    def holds(self, value):
        return isinstance(value, str)

    def schema(self, schemas):
        found = {"type": "string"}
        for name, keyword in (("min_length", "minLength"), ("max_length", "maxLength")):
            if name in self.rules:
                found[keyword] = self.rules[name]
        if self.pattern is not None:
            found["pattern"] = self.written
        return found


class BytesNode(Node):
    label = "bytes"
    ALLOWED = frozenset(("min_length", "max_length", "strict"))

    def __init__(self, strict=None, min_length=None, max_length=None):
        self.strict, self.min_length, self.max_length = strict, min_length, max_length

    def validate(self, value, state):
        if isinstance(value, bytes):
            found = value
        elif state.strict if self.strict is None else self.strict:
            raise invalid("bytes_type", value)
        elif isinstance(value, (str, bytearray)):
            state.floor(LAX)
            found = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        else:
            raise invalid("bytes_type", value)
        if self.min_length is not None and len(found) < self.min_length:
            raise invalid("bytes_too_short", value, min_length=self.min_length)
        if self.max_length is not None and len(found) > self.max_length:
            raise invalid("bytes_too_long", value, max_length=self.max_length)
        return found

    def holds(self, value):
        return isinstance(value, bytes)

    def schema(self, schemas):
        found = {"type": "string", "format": "binary"}
        if self.min_length is not None:
            found["minLength"] = self.min_length
        if self.max_length is not None:
            found["maxLength"] = self.max_length
        return found
