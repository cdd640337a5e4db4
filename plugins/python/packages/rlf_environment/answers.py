"""Answers to the host: texts of JSON that are valid whatever a tool put into them."""

import json

from mcp.server.fastmcp.exceptions import out_of_memory

INVALID, NOT_FOUND, EXHAUSTED, INTERNAL = "invalid-arguments", "not-found", "exhausted", "internal"
NO_MEMORY = "there is no memory left of what a session may have"


class Failure(str):
    """The text of an error, which a state may look like."""


class Refused(Exception):
    """A request that is not carried out; the host is told why."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def clean(text):
    """Text that UTF-8 has: a surrogate on its own has no place in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def encoded(value):
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def canonical(value):
    """The one text of a state. Refuses what JSON has no numbers and UTF-8 no letters for: such states would look alike."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    text.encode()
    return text


def error(kind, message):
    return Failure(encoded({"error": {"kind": kind, "message": message}}))


def decoded(text, what):
    """The object that a text of JSON is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise Refused(INVALID, f"{what} is not valid JSON: {fault}") from None
    if not isinstance(found, dict):
        raise Refused(INVALID, f"{what} has to be a JSON object, not {type(found).__name__}")
    return found


def described(fault):
    """`Type: message`, also of an exception that cannot say what it is."""
    if out_of_memory(fault):
        return NO_MEMORY
    try:
        return clean(f"{type(fault).__name__}: {fault}")
    except BaseException:
        return type(fault).__name__
