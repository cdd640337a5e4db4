"""The driver's plain values as the classes that componentize-py generates from WIT, and back."""

import sys

import componentize_py_types
from wit_world.imports import code, types

_OUTCOMES = (code.Outcome_Completed, code.Outcome_Exited, code.Outcome_Raised, code.Outcome_Rejected)
_ERRORS = (
    types.Error_InvalidArguments,
    types.Error_NotFound,
    types.Error_Denied,
    types.Error_Exhausted,
    types.Error_Unavailable,
    types.Error_Cancelled,
    types.Error_Internal,
)
Err, OK = componentize_py_types.Err, 0


def outcome(plain):
    """`code.outcome` from the driver's tuple."""
    case = _OUTCOMES[plain[0]]
    if len(plain) == 1:
        return case()
    value = plain[1]
    return case(code.Exception(*value) if isinstance(value, tuple) else value)


def files(plain):
    """`list<file>` from pairs."""
    return [code.File(path, data) for path, data in plain]


def pairs(records):
    """Files and modules as the driver takes them."""
    return [tuple(vars(record).values()) for record in records]


def unwrap(result):
    """The value of a result; raises what componentize-py makes an error of."""
    case, value = result
    if case == OK:
        return value
    raise Err(_ERRORS[value[0]](value[1]))


_OURS = ("rlf_app", "interpreter", "rlf_values", "memory")


def forget():
    """Frees the names of our own modules for the program's."""
    for name in _OURS:
        sys.modules.pop(name, None)
