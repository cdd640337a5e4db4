"""The calls that a program sees itself in begin with the program, and not with what runs it."""

from .sound import __builtins__  # isort: skip

import inspect
import sys
import traceback

_outer = inspect.getouterframes
_bottom = set()


def install(*functions):
    """Hides `functions`, which run programs, and whoever calls them from `traceback` and `inspect`."""
    _bottom.update(function.__code__ for function in functions)
    traceback.walk_stack = walk_stack
    inspect.getouterframes = getouterframes


def walk_stack(f):
    """Walk a stack yielding the frame and line number for each frame.

    This will follow f.f_back from the given frame. If no frame is given, the
    current stack is used. Usually used with StackSummary.extract.
    """
    return _walk(sys._getframe(1) if f is None else f)


def _walk(frame):
    while frame is not None and frame.f_code not in _bottom:
        yield frame, frame.f_lineno
        frame = frame.f_back


def getouterframes(frame, context=1):
    """Get a list of records for a frame and all higher (calling) frames.

    Each record contains a frame object, filename, line number, function
    name, a list of lines of context, and index within the context."""
    records = _outer(frame, context)
    for index, record in enumerate(records):
        if record.frame.f_code in _bottom:
            return records[:index]
    return records
