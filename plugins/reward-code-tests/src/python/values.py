"""Values as plain data, so that what leaves an interpreter is what it looks like and nothing more.

A value is of a type that is listed here, or of a subclass that compares as that type does (a named tuple, an `IntEnum`) and
is sent as what it extends; or it is a data class, sent as its fields. All else is refused: an object with a comparison of
its own can say of itself that it equals everything. JSON carries the data; each list in it begins with a tag.
"""

import sys
from json import dumps, loads
from struct import pack, unpack

MAX_DEPTH = 100
"""Levels of containers in each other."""

MAX_VALUES = 1 << 18
"""Leaves and containers of one value, together."""


MAX_ITEMS = 2_000
"""Values of an iterator that are sent; of one that has more, these and that there are more."""


class Refused(Exception):
    """The value is no plain data; the text says what was met."""


def _bits(number):
    return pack(">d", number).hex()


def _integer(number):
    # As a number where every reader of JSON has it whole.
    return number if -(1 << 53) < number < 1 << 53 else ["i", hex(number)]


def _text(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return ["S", text.encode("utf-8", "surrogatepass").hex()]
    return text


_LEAVES = {
    type(None): lambda value: None,
    bool: lambda value: value,
    int: _integer,
    float: lambda value: ["f", _bits(value)],
    complex: lambda value: ["c", _bits(value.real), _bits(value.imag)],
    str: _text,
    bytes: lambda value: ["b", value.hex()],
    bytearray: lambda value: ["B", value.hex()],
    type(...): lambda value: ["e"],
    range: lambda value: ["r", *map(_integer, (value.start, value.stop, value.step))],
}

# Of modules that are looked at only where somebody imported them.
_IMPORTED_LEAVES = {
    ("decimal", "Decimal"): lambda value: ["m", str(value)],
    ("fractions", "Fraction"): lambda value: ["F", *map(_integer, value.as_integer_ratio())],
    ("datetime", "datetime"): lambda value: ["dt", value.isoformat()],
    ("datetime", "date"): lambda value: ["da", value.isoformat()],
    ("datetime", "time"): lambda value: ["ti", value.isoformat()],
    ("datetime", "timedelta"): lambda value: ["td", value.days, value.seconds, value.microseconds],
    ("uuid", "UUID"): lambda value: ["U", hex(value.int)],
    ("pathlib", "PurePosixPath"): lambda value: ["P", str(value)],
    ("pathlib", "PosixPath"): lambda value: ["P", str(value)],
}

# What a subclass is sent as: its part of the listed type, whatever it says of itself.
_PARTS = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: bytearray.copy,
    list: lambda value: [*list.__iter__(value)],
    tuple: lambda value: (*tuple.__iter__(value),),
    set: lambda value: {*set.__iter__(value)},
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
}

_SEQUENCES = {list: "l", tuple: "t"}
# Written in the order of their text: the order in a set depends on hashes and on history.
_SETS = {set: "s", frozenset: "z", type({}.keys()): "k"}
_MAPPINGS = {dict: "d", type(type.__dict__): "d"}
_VIEWS = {type({}.values()): "v", type({}.items()): "w"}
_IMPORTED_SEQUENCES = {("collections", "deque"): "q"}
_IMPORTED_MAPPINGS = {
    ("collections", "ChainMap"): "d",
    ("collections", "OrderedDict"): "O",
    ("collections", "Counter"): "C",
    ("collections", "defaultdict"): "D",
}


def _imported(kind, table):
    for (module, name), found in table.items():
        if getattr(sys.modules.get(module), name, None) is kind:
            return found
    return None


def _part(value, kind):
    """The base's part of an object of a subclass that compares as its base does; `Refused` for any other."""
    for base in type.__dict__["__mro__"].__get__(kind):
        if base in _PARTS:
            return _PARTS[base](value)
        if base is not object and "__eq__" in vars(base):
            break
    raise Refused(f"a value of type {kind.__name__}")


def _fields(value, kind):
    """Names and values that a data class is compared by."""
    fields = kind.__dict__.get("__dataclass_fields__", {}).values()
    return [(field.name, getattr(value, field.name)) for field in fields if field.compare]


def _given(iterator):
    """Values of an iterator, and whether there are more."""
    items = []
    for item in iterator:
        if len(items) == MAX_ITEMS:
            return items, True
        items.append(item)
    return items, False


def encode(value):
    """The JSON text of plain data; `Refused` where it is none."""
    left = MAX_VALUES
    above = set()

    def walk(value, depth):
        nonlocal left
        left -= 1
        if left < 0:
            raise Refused(f"more than {MAX_VALUES} values in one")
        kind = type(value)
        leaf = _LEAVES.get(kind) or _imported(kind, _IMPORTED_LEAVES)
        if leaf is not None:
            return leaf(value)
        if depth == MAX_DEPTH:
            raise Refused(f"nested more than {MAX_DEPTH} deep")
        if id(value) in above:
            raise Refused(f"a {kind.__name__} that contains itself")
        above.add(id(value))
        if tag := _SEQUENCES.get(kind) or _imported(kind, _IMPORTED_SEQUENCES):
            data = [tag, *[walk(item, depth + 1) for item in value]]
        elif tag := _SETS.get(kind):
            data = [tag, *sorted([walk(item, depth + 1) for item in value], key=dumps)]
        elif tag := _MAPPINGS.get(kind) or _imported(kind, _IMPORTED_MAPPINGS):
            data = [tag]
            for key, item in value.items():
                data += [walk(key, depth + 1), walk(item, depth + 1)]
        elif tag := _VIEWS.get(kind):
            data = [tag, *[walk(item, depth + 1) for item in value]]
        elif "__dataclass_fields__" in kind.__dict__ and "__eq__" in kind.__dict__:
            data = ["o", kind.__name__]
            for name, item in _fields(value, kind):
                data += [name, walk(item, depth + 1)]
        elif kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__"):
            items, more = _given(value)
            data = ["E" if more else "I", *[walk(item, depth + 1) for item in items]]
        else:
            data = walk(_part(value, kind), depth + 1)
        above.discard(id(value))
        return data

    return dumps(walk(value, 0), separators=(",", ":"))


def _float(bits):
    return unpack(">d", bytes.fromhex(bits))[0]


def _pairs(items):
    return zip(items[::2], items[1::2])


def _from(module, name, build=lambda kind, *items: kind(*items)):
    return lambda *items: build(getattr(__import__(module), name), *items)


def _unended(*items):
    yield from items
    raise ValueError(f"only the first {MAX_ITEMS} values of this iterator are known")


def _record(name, *items, known={}):
    """A data class of that name with these fields; equal ones are of one class."""
    names = items[::2]
    if (name, names) not in known:
        make = __import__("dataclasses").make_dataclass
        known[name, names] = make(name, names)
    return known[name, names](*items[1::2])


_BUILDERS = {
    "i": lambda digits: int(digits, 16),
    "f": _float,
    "c": lambda real, imaginary: complex(_float(real), _float(imaginary)),
    "S": lambda data: bytes.fromhex(data).decode("utf-8", "surrogatepass"),
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
    "e": lambda: ...,
    "r": range,
    "m": _from("decimal", "Decimal"),
    "F": _from("fractions", "Fraction"),
    "dt": _from("datetime", "datetime", lambda kind, text: kind.fromisoformat(text)),
    "da": _from("datetime", "date", lambda kind, text: kind.fromisoformat(text)),
    "ti": _from("datetime", "time", lambda kind, text: kind.fromisoformat(text)),
    "td": _from("datetime", "timedelta"),
    "l": lambda *items: list(items),
    "t": lambda *items: items,
    "I": lambda *items: (item for item in items),
    "E": _unended,
    "v": lambda *items: dict(enumerate(items)).values(),
    "w": lambda *items: dict(items).items(),
    "o": _record,
    "U": lambda digits: __import__("uuid").UUID(int=int(digits, 16)),
    "P": lambda text: __import__("pathlib").PurePosixPath(text),
    "q": _from("collections", "deque", lambda kind, *items: kind(items)),
    "s": lambda *items: set(items),
    "z": lambda *items: frozenset(items),
    "k": lambda *items: dict.fromkeys(items).keys(),
    "d": lambda *items: dict(_pairs(items)),
    "O": _from("collections", "OrderedDict", lambda kind, *items: kind(_pairs(items))),
    "C": _from("collections", "Counter", lambda kind, *items: kind(dict(_pairs(items)))),
    "D": _from("collections", "defaultdict", lambda kind, *items: kind(None, _pairs(items))),
}


def build(data):
    """The value of data as JSON was parsed to."""
    if type(data) is not list:
        return data
    return _BUILDERS[data[0]](*[build(item) for item in data[1:]])


def decode(text):
    """The value of a text that `encode` wrote."""
    return build(loads(text))
