import datetime
from typing import Annotated, Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

_UNDONE = "This cannot be done: "


def _fault(reason):
    return ValueError(_UNDONE + reason)


def _bounded(value):
    """A result of arithmetic, within what the environment can hold."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise _fault("a number is too large")
        return value + 0.0
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _fault("a number is too large")
    elif isinstance(value, str):
        if len(value.encode()) > 65536:
            raise _fault("a text or list is too large")
    elif len(value) > 10000:
        raise _fault("a text or list is too large")
    return value


def _add(left, right):
    return _bounded(left + right)


def _subtract(left, right):
    return _bounded(left - right)


def _multiply(left, right):
    return _bounded(left * right)


def _divide(left, right):
    """Integers are divided towards zero."""
    if right == 0:
        raise _fault("division by zero")
    if isinstance(left, float):
        return _bounded(left / right)
    quotient = abs(left) // abs(right)
    return _bounded(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left, right):
    """The remainder has the sign of the dividend."""
    if right == 0:
        raise _fault("division by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _to_integer(value):
    return _bounded(int(value))


def _sum(values, start):
    for value in values:
        start = _add(start, value)
    return start


def _lower_ascii(text):
    return "".join(chr(ord(one) + 32) if "A" <= one <= "Z" else one for one in text)


def _upper_ascii(text):
    return "".join(chr(ord(one) - 32) if "a" <= one <= "z" else one for one in text)


def _shown(value):
    """A value in a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _message(text):
    """A message, cut where texts end."""
    return text.encode()[:65536].decode(errors="ignore")


def _date(text):
    """The day that a text is; raises if it is none."""
    try:
        day = datetime.date.fromisoformat(text or "")
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        if text is None:
            return None
        raise _fault(f"not a date: {text}")
    return day


def _add_days(text, days):
    try:
        return (_date(text) + datetime.timedelta(days=days)).isoformat()
    except OverflowError:
        raise _fault("a number is too large") from None


def _days_between(first, last):
    return (_date(last) - _date(first)).days


def _item(items, index):
    if not 0 <= index < len(items):
        raise _fault(f"the list has no item {index}")
    return items[index]


def _row(rows, key, entity):
    if key not in rows:
        raise _fault(f"there is no {entity} {key}")
    return rows[key]


def _next_key(state, rows, next_name, prefix):
    """The next generated key. Numbers of keys that exist are skipped."""
    while True:
        number = getattr(state, next_name)
        setattr(state, next_name, _add(number, 1))
        if prefix + str(number) not in rows:
            return prefix + str(number)


# The first and last of the characters that show nothing or that reorder text.
_INVISIBLE = [
    (0x0, 0x1f),
    (0x7f, 0x9f),
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0d),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
]


def _new(rows, key, entity):
    if len(rows) >= 10000:
        raise _fault("a text or list is too large")
    if not key or any(first <= ord(one) <= last for one in key for first, last in _INVISIBLE):
        raise ValueError("a key cannot be empty or have invisible characters")
    if key in rows:
        raise _fault(f"there is a {entity} {key} already")


def _within(value, minimum, maximum):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return not number or ((minimum is None or value >= minimum) and (maximum is None or value <= maximum))


def _refers(value, rows):
    if isinstance(value, list):
        return all(_refers(item, rows) for item in value)
    return value is None or value in rows


def _broken_rule(state, values, fields, invariants):
    """The first rule that the state breaks, or None."""
    for name, minimum, maximum, _, _ in values:
        if not _within(getattr(state, name), minimum, maximum):
            return f"limits of {name}"
    for name, _, _, target, _ in values:
        if target and not _refers(getattr(state, name), getattr(state, target)):
            return f"target of {name}"
    for collection, entity, _, rules in fields:
        rows = getattr(state, collection)
        for name, minimum, maximum, target, unique in rules:
            seen = []
            for key in sorted(rows):
                value = getattr(rows[key], name)
                if not _within(value, minimum, maximum):
                    return f"limits of {entity}.{name}"
                if target and not _refers(value, getattr(state, target)):
                    return f"target of {entity}.{name}"
                if unique and value is not None:
                    if value in seen:
                        return f"unique value of {entity}.{name}"
                    seen.append(value)
    for name, holds in invariants:
        try:
            kept = holds()
        except Exception:
            kept = False
        if not kept:
            return name
    return None


def _check_keys(state, fields):
    for collection, _, key_name, _ in fields:
        for key, row in getattr(state, collection).items():
            if getattr(row, key_name) != key:
                raise ValueError(f"`{collection}.{key}`: `{key_name}` is another key")


def _count(state, counted):
    """Puts numbers of next keys that are not given behind all that are used."""
    for entity, collection, prefix in counted:
        if f"next_{entity}" not in state.model_fields_set:
            used = [key[len(prefix) :] for key in getattr(state, collection) if key.startswith(prefix)]
            numbers = [int(one) for one in used if len(one) <= 18 and one.isascii() and one.isdigit()]
            setattr(state, f"next_{entity}", max(numbers, default=0) + 1)
