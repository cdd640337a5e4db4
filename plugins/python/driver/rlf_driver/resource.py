"""`import resource`: what programs ask for it is remembered, and nothing is limited. The host limits a run."""

from .sound import __builtins__  # isort: skip

import errno
import importlib.abc
import importlib.machinery
import operator
import os
import time

NAME = "resource"

RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD = 0, -1, 1
RLIM_INFINITY = -1
_KINDS = {
    f"RLIMIT_{name}": number
    for number, name in enumerate(
        "CPU FSIZE DATA STACK CORE RSS NPROC NOFILE MEMLOCK AS LOCKS SIGPENDING MSGQUEUE NICE RTPRIO RTTIME".split()
    )
}
"""The numbers of Linux."""
_FIELDS = (
    "ru_utime ru_stime ru_maxrss ru_ixrss ru_idrss ru_isrss ru_minflt ru_majflt ru_nswap ru_inblock ru_oublock ru_msgsnd "
    "ru_msgrcv ru_nsignals ru_nvcsw ru_nivcsw"
).split()

_limits = {}
"""Limits that the program has set, by kind."""


class struct_rusage(tuple):
    """struct_rusage: Result from getrusage."""

    __slots__ = ()
    __module__ = NAME
    n_fields = n_sequence_fields = len(_FIELDS)
    n_unnamed_fields = 0

    def __repr__(self):
        return f"resource.struct_rusage({', '.join(f'{name}={value!r}' for name, value in zip(_FIELDS, self))})"


for _index, _name in enumerate(_FIELDS):
    setattr(struct_rusage, _name, property(lambda self, index=_index: self[index]))


def getrlimit(resource, /):
    """Return the soft and the hard limit of `resource`: those that the program has set, or none."""
    return _limits.get(_kind(resource), (RLIM_INFINITY, RLIM_INFINITY))


def setrlimit(resource, limits, /):
    """Remember `limits`, the soft and the hard limit of `resource`. They have no effect."""
    before = getrlimit(resource)
    limits = tuple(limits)
    if len(limits) != 2:
        raise ValueError("expected a tuple of 2 integers")
    soft, hard = map(operator.index, limits)
    if _above(soft, hard):
        raise ValueError("current limit exceeds maximum limit")
    if _above(hard, before[1]):
        raise ValueError("not allowed to raise maximum limit")
    _limits[resource] = soft, hard


def prlimit(pid, resource, limits=None, /):
    """`getrlimit`, and `setrlimit` if there are `limits`, for this process."""
    before = getrlimit(resource)
    if operator.index(pid) not in (0, os.getpid()):
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    if limits is not None:
        setrlimit(resource, limits)
    return before


def getrusage(who, /):
    """Return the time of this process. What else it used is not counted here, and 0."""
    if operator.index(who) not in (RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD):
        raise ValueError("invalid who parameter")
    seconds = 0.0 if who == RUSAGE_CHILDREN else time.process_time()
    return struct_rusage((seconds, 0.0) + (0,) * (len(_FIELDS) - 2))


def getpagesize():
    """Return the size of a page of memory in bytes."""
    return 4096


def _kind(resource):
    if operator.index(resource) not in _KINDS.values():
        raise ValueError("invalid resource specified")
    return resource


def _above(limit, other):
    """Whether the limit `limit` allows more than `other`. A negative one is none."""
    return other >= 0 and not 0 <= limit <= other


_OFFERED = {
    "RLIM_INFINITY": RLIM_INFINITY,
    "RUSAGE_SELF": RUSAGE_SELF,
    "RUSAGE_CHILDREN": RUSAGE_CHILDREN,
    "RUSAGE_THREAD": RUSAGE_THREAD,
    "error": OSError,
    "struct_rusage": struct_rusage,
    "RLIMIT_OFILE": _KINDS["RLIMIT_NOFILE"],
} | {name: number for name, number in _KINDS.items() if name != "RLIMIT_LOCKS"}
for _function in (getrlimit, setrlimit, prlimit, getrusage, getpagesize):
    _function.__module__ = NAME
    _OFFERED[_function.__name__] = _function


_find_file = importlib.machinery.PathFinder.find_spec


class Finder(importlib.abc.Loader):
    """Finds the module, unless the program has one of that name. A folder without `__init__.py` is none."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != NAME:
            return None
        own = _find_file(name, path)
        return own if own and own.loader else importlib.machinery.ModuleSpec(NAME, cls())

    def exec_module(self, module):
        vars(module).update(_OFFERED)
