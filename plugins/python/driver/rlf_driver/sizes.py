"""`sys.maxsize` as on machines with 64 bits. Programs take it for a number that is larger than all of theirs."""

from .sound import __builtins__  # isort: skip

import _csv
import csv
import sys

_MAX_LONG = sys.maxsize
"""The largest `long` of C here."""

_field_size_limit = _csv.field_size_limit


def field_size_limit(*arguments, **named):
    """Sets an upper limit on parsed fields.

    csv.field_size_limit([limit])

    Returns old limit. If limit is not given, no new limit is set and
    the old limit is returned"""
    if len(arguments) == 1 and isinstance(arguments[0], int):
        arguments = (min(arguments[0], _MAX_LONG),)
    return _field_size_limit(*arguments, **named)


def install():
    """Raises `sys.maxsize`. Programs often set `csv.field_size_limit` to it, which would raise."""
    sys.maxsize = (1 << 63) - 1
    csv.field_size_limit = _csv.field_size_limit = field_size_limit
