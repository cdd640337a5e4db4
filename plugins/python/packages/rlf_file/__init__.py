"""Plugins written as one Python file: what a host calls, with texts of JSON in and out.

`connect(host)` and `load(file)` run once, before the snapshot that every call starts from. Each call is then one request in a fresh instance:

    describe()                          -> {"tools": [definition, ..], "rewards": [name, ..]}
    call(name, arguments, context)      -> {"content": [part, ..], "failed", "metrics"}
    grade(task, [trajectory, ..], grading) -> [{"terms", "per_event", "metrics"} or {"error"}, ..]

In order of reading: `requests` has these functions, the package `rlf` of the SDK what files import, `foreign` the
decorators of other frameworks, and `warmup` is played before any file is loaded.
"""

from . import warmup
from .requests import Failure, call, connect, describe, grade, load

REQUESTS = ("describe", "call", "grade")
"""The functions that the host calls, besides `load`."""

__all__ = ["REQUESTS", "Failure", "call", "connect", "describe", "grade", "load", "warmup"]
