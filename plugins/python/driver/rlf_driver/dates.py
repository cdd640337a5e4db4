"""What a C library and a file system give dates elsewhere: the directives of `strftime` on Linux, and the time zones."""

from .sound import __builtins__  # isort: skip

import importlib.util
import io
import os
import re
import time
import zoneinfo

_DIRECTIVE = re.compile(r"%([-_0^#+]*)(\d*)([EO]?)(.)", re.DOTALL)
_KNOWN = frozenset("aAbBcCdDeFgGhHIjmMnprRsStTuUVwWxXyYzZ%")
"""The directives that every C library here has."""
_OWN = {"P": ("%p", str.lower), "k": ("%_H", str), "l": ("%_I", str)}
"""Those that only glibc has: what they are written as, and what becomes of that."""
_LOWER = frozenset("pZ")
"""Those that `#` makes lower case; others become upper case."""
_FORM = b"TZif"
"""How a file of a time zone begins."""

_strftime, _localtime = time.strftime, time.localtime
_zones = {}
"""The zones that the build has: file by name."""


def strftime(format, /, *moment):
    """strftime(format[, tuple]) -> string

    Convert a time tuple to a string according to a format specification. When the time tuple is not present, current time as
    returned by localtime() is used."""
    if not isinstance(format, str) or all(map(_is_plain, _DIRECTIVE.finditer(format))):
        return _strftime(format, *moment)
    moment = moment or (_localtime(),)
    return _DIRECTIVE.sub(lambda found: _written(found, moment), format)


def _is_plain(found):
    flags, _, _, letter = found.groups()
    return letter in _KNOWN and not ("^" in flags or "#" in flags)


def _written(found, moment):
    flags, width, modifier, letter = found.groups()
    if letter not in _KNOWN and letter not in _OWN:
        # As glibc writes what it does not know.
        return found[0]
    known, change = _OWN.get(letter, ("%" + modifier + letter, str))
    others = re.sub("[#^]", "", flags)
    if others or width:
        known = "%" + (others or known[1:-1]) + width + known[-1]
    text = change(_strftime(known, *moment))
    if "^" in flags:
        return text.upper()
    if "#" in flags:
        return text.lower() if letter in _LOWER else text.upper()
    return text


def _load(key):
    """A file of the time zone `key`, where the system has none."""
    try:
        return io.BytesIO(_zones[key])
    except KeyError:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}") from None


def available_timezones():
    """Returns a set containing all available time zones."""
    return set(_zones)


def install():
    """Puts these in their places. The zones are those of the package `tzdata`, if the build has it."""
    time.strftime = strftime
    _zones.update(_read_zones())
    if _zones:
        zoneinfo._common.load_tzdata = _load
        zoneinfo._tzpath.available_timezones = zoneinfo.available_timezones = available_timezones


def _read_zones():
    spec = importlib.util.find_spec("tzdata")
    top = os.path.join(spec.submodule_search_locations[0], "zoneinfo") if spec else ""
    kept = {}
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            if data.startswith(_FORM):
                yield os.path.relpath(path, top), kept.setdefault(data, data)
