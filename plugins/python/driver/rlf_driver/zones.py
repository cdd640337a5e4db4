"""The time zones of the package `tzdata`, for `zoneinfo`. A run has no files of them."""

from .sound import __builtins__  # isort: skip

import importlib.util
import io
import os
import zoneinfo

_MAGIC = b"TZif"
"""How the data of a time zone begins."""

_NotFound = zoneinfo.ZoneInfoNotFoundError
_zones = {}
"""Data by the zone's name."""


def _load_tzdata(key):
    """Opens the data of the time zone `key`. Replaces `zoneinfo._common.load_tzdata`."""
    if key not in _zones:
        raise _NotFound(f"No time zone found with key {key}")
    return io.BytesIO(_zones[key])


def available_timezones():
    """Returns a set containing all available time zones."""
    return set(_zones)


def install():
    """Reads the zones, if the build has them, and lets `zoneinfo` find them."""
    _zones.update(_read())
    if _zones:
        zoneinfo._common.load_tzdata = _load_tzdata
        zoneinfo._tzpath.available_timezones = zoneinfo.available_timezones = available_timezones


def _read():
    spec = importlib.util.find_spec("tzdata")
    top = os.path.join(spec.submodule_search_locations[0], "zoneinfo") if spec else ""
    kept = {}
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            if data.startswith(_MAGIC):
                # Many zones have several names.
                yield os.path.relpath(path, top), kept.setdefault(data, data)
