"""Dates and times, and what text and numbers they are read from."""

import datetime
import math
import re

from .errors import invalid
from .node import LAX, Node
from .scalars import decoded

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|z|[+\-\u2212]\d{2}:?\d{2})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?", re.ASCII)
_DURATION = re.compile(
    r"([+-]?)P(?:(\d+(?:\.\d+)?)Y)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?",
    re.ASCII,
)
_CLOCK = re.compile(r"([+-]?)(?:(\d+)\s*(?:d|days?),?\s*)?(?:(\d+):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?", re.ASCII | re.IGNORECASE)


class TzInfo(datetime.tzinfo):
    """A fixed offset, that shows itself as pydantic's does."""

    def __init__(self, seconds=0.0):
        self.seconds = int(seconds)

    def utcoffset(self, moment):
        return datetime.timedelta(seconds=self.seconds)

    def dst(self, moment):
        return None

    def fromutc(self, moment):
        return (moment.replace(tzinfo=None) + self.utcoffset(None)).replace(tzinfo=self)

    def tzname(self, moment):
        if not self.seconds:
            return "UTC"
        minutes = abs(self.seconds) // 60
        return f"{'-' if self.seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"

    def __eq__(self, other):
        if isinstance(other, (TzInfo, datetime.timezone)):
            return self.utcoffset(None) == other.utcoffset(None)
        return NotImplemented

    def __hash__(self):
        return hash(self.seconds)

    def __str__(self):
        return self.tzname(None)

    def __repr__(self):
        return f"TzInfo({self.seconds})"

    def __reduce__(self):
        return TzInfo, (self.seconds,)

    def __deepcopy__(self, memo):
        return self


_UTC = TzInfo()
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=_UTC)
# Numbers beyond this are milliseconds.
_WATERSHED = 20_000_000_000


class Unreadable(ValueError):
    """The reason why a text is no date or time."""


def read_date(text):
    if len(text) < 10:
        raise Unreadable("input is too short")
    for place, sign in enumerate(text[:10]):
        if place in (4, 7):
            if sign != "-":
                raise Unreadable("invalid date separator, expected `-`")
        elif not "0" <= sign <= "9":
            raise Unreadable(f"invalid character in {'year' if place < 4 else 'month' if place < 7 else 'day'}")
    year, month, day = map(int, _DATE.match(text).groups())
    if not 1 <= month <= 12:
        raise Unreadable("month value is outside expected range of 1-12")
    try:
        return datetime.date(year, month, day)
    except ValueError:
        raise Unreadable("year value is outside expected range" if year == 0 else "day value is outside expected range") from None


def read_time(text):
    """`(hour, minute, second, microsecond, zone)`."""
    if len(text) < 5:
        raise Unreadable("input is too short")
    if not text[:2].isdecimal():
        raise Unreadable("invalid character in hour")
    if text[2] != ":":
        raise Unreadable("invalid time separator, expected `:`")
    if not text[3:5].isdecimal():
        raise Unreadable("invalid character in minute")
    if int(text[:2]) > 23:
        raise Unreadable("hour value is outside expected range of 0-23")
    if int(text[3:5]) > 59:
        raise Unreadable("minute value is outside expected range of 0-59")
    match = _TIME.match(text)
    hour, minute, second, fraction, zone = match.groups()
    if second is None and text[5:6] == ":":
        raise Unreadable("invalid character in second" if len(text) >= 8 else "input is too short")
    if second is not None and int(second) > 59:
        raise Unreadable("second value is outside expected range of 0-59")
    if match.end() != len(text):
        rest = text[match.end() :]
        if zone is None and rest[0] in "+-":
            raise Unreadable("invalid timezone sign" if len(rest) > 5 else "input is too short")
        raise Unreadable("unexpected extra characters at the end of the input")
    return int(hour), int(minute), int(second or 0), int((fraction or "0")[:6].ljust(6, "0")), read_zone(zone)


def read_zone(text):
    if text is None:
        return None
    if text in "Zz":
        return _UTC
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    if minutes >= 24 * 60:
        raise Unreadable("timezone offset must be less than 24 hours")
    return TzInfo(-60 * minutes if text[0] != "+" else 60 * minutes)


def read_datetime(text):
    date = read_date(text)
    if len(text) == 10:
        raise Unreadable("input is too short")
    if text[10] not in "Tt _":
        raise Unreadable("invalid datetime separator, expected `T`, `t`, `_` or space")
    hour, minute, second, fraction, zone = read_time(text[11:])
    return datetime.datetime(date.year, date.month, date.day, hour, minute, second, fraction, zone)


def from_number(value):
    """A moment by its seconds, or milliseconds, since 1970."""
    if not math.isfinite(value):
        raise Unreadable("NaN values not permitted" if value != value else "dates after 9999 are not supported as unix timestamps")
    if abs(value) > _WATERSHED:
        value = value / 1000 if value % 1000 else value // 1000
    try:
        return _EPOCH + datetime.timedelta(microseconds=round(value * 1_000_000))
    except OverflowError:
        when = "after 9999" if value > 0 else "before 0000"
        raise Unreadable(f"dates {when} are not supported as unix timestamps") from None


def number(text):
    """The number that a text is, or `None`."""
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


class Temporal(Node):
    """The base of the four types: bounds, and how they are described."""

    ALLOWED = frozenset(("gt", "ge", "lt", "le", "strict"))

    def __init__(self, strict=None, **bounds):
        self.strict = strict
        self.bounds = bounds

    def validate(self, value, state):
        found = self.read(value, state)
        for name, kind, holds in (
            ("le", "less_than_equal", lambda a, b: a <= b),
            ("lt", "less_than", lambda a, b: a < b),
            ("ge", "greater_than_equal", lambda a, b: a >= b),
            ("gt", "greater_than", lambda a, b: a > b),
        ):
            if name in self.bounds and not holds(found, self.bounds[name]):
                raise invalid(kind, value, **{name: self.bounds[name].isoformat()})
        return found

    def is_strict(self, state):
        return (state.strict if self.strict is None else self.strict) and not state.json

    def holds(self, value):
        return type(value) is self.TYPE

    def schema(self, schemas):
        return {"type": "string", "format": self.FORMAT}


class DateTimeNode(Temporal):
    label, TYPE, FORMAT = "datetime", datetime.datetime, "date-time"

    def read(self, value, state):
        if isinstance(value, datetime.datetime):
            return value
        if self.is_strict(state):
            raise invalid("datetime_type", value)
        state.floor(LAX)
        try:
            if isinstance(value, (str, bytes)):
                text = (decoded(value) or "").strip()
                given = number(text) if text == value else None
                if given is not None:
                    return from_number(given)
                if len(text) == 10:
                    date = read_date(text)
                    return datetime.datetime(date.year, date.month, date.day)
                return read_datetime(text)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return from_number(value)
        except Unreadable as error:
            short = isinstance(value, (str, bytes))
            raise invalid("datetime_from_date_parsing" if short else "datetime_parsing", value, error=str(error)) from None
        if isinstance(value, datetime.date):
            return datetime.datetime(value.year, value.month, value.day)
        raise invalid("datetime_type", value)


class DateNode(Temporal):
    label, TYPE, FORMAT = "date", datetime.date, "date"

    def read(self, value, state):
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value
        if self.is_strict(state):
            raise invalid("date_type", value)
        state.floor(LAX)
        try:
            if isinstance(value, datetime.datetime):
                moment = value
            elif isinstance(value, (str, bytes)):
                text = (decoded(value) or "").strip()
                if len(text) == 10 and number(text) is None:
                    return read_date(text)
                given = number(text) if text == value else None
                moment = read_datetime(text) if given is None else from_number(given)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                moment = from_number(value)
            else:
                raise invalid("date_type", value)
        except Unreadable as error:
            raise invalid("date_from_datetime_parsing", value, error=str(error)) from None
        if moment.time() != datetime.time():
            raise invalid("date_from_datetime_inexact", value)
        return moment.date()


class TimeNode(Temporal):
    label, TYPE, FORMAT = "time", datetime.time, "time"

    def read(self, value, state):
        if isinstance(value, datetime.time):
            return value
        if self.is_strict(state):
            raise invalid("time_type", value)
        state.floor(LAX)
        try:
            if isinstance(value, (str, bytes)):
                return datetime.time(*read_time((decoded(value) or "").strip()))
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if not 0 <= value < 86400:
                    raise Unreadable(
                        "time in seconds should be positive" if value < 0 else "numeric times may not exceed 86,399 seconds"
                    )
                return (_EPOCH + datetime.timedelta(seconds=value)).timetz()
        except Unreadable as error:
            raise invalid("time_parsing", value, error=str(error)) from None
        raise invalid("time_type", value)


class TimeDeltaNode(Temporal):
    label, TYPE, FORMAT = "timedelta", datetime.timedelta, "duration"

    def read(self, value, state):
        if isinstance(value, datetime.timedelta):
            return value
        if self.is_strict(state):
            raise invalid("time_delta_type", value)
        state.floor(LAX)
        if isinstance(value, (int, float)):
            try:
                return datetime.timedelta(seconds=value)
            except (OverflowError, ValueError):
                fault = "NaN values not permitted" if value != value else "durations may not exceed 999,999,999 days"
                raise invalid("time_delta_parsing", value, error=fault) from None
        if isinstance(value, (str, bytes)):
            text = (decoded(value) or "").strip()
            if not text:
                raise invalid("time_delta_parsing", value, error="input is too short")
            found = read_duration(text)
            if found is None:
                raise invalid("time_delta_parsing", value, error="invalid digit in duration")
            return found
        raise invalid("time_delta_type", value)


def read_duration(text):
    """A duration in ISO 8601, as `[days,] hours:minutes[:seconds]`, or in seconds."""
    given = number(text)
    if given is not None:
        return datetime.timedelta(seconds=given)
    match = _DURATION.fullmatch(text)
    if match and any(match.groups()[1:]):
        sign, *parts = match.groups()
        years, months, weeks, days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in parts)
        found = datetime.timedelta(
            days=years * 365 + months * 30 + days, weeks=weeks, hours=hours, minutes=minutes, seconds=seconds
        )
        return -found if sign == "-" else found
    match = _CLOCK.fullmatch(text)
    if match and any(match.groups()[1:]):
        sign, days, hours, minutes, seconds, fraction = match.groups()
        found = datetime.timedelta(
            days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=int(seconds or 0),
            microseconds=int((fraction or "0").ljust(6, "0")),
        )  # fmt: skip
        return -found if sign == "-" else found
    return None
