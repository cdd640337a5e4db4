"""Answers and ordinary errors for programs that ask for processes, a terminal, locales or the time of the process."""

from .sound import __builtins__  # isort: skip

import errno
import locale
import os
import sys
import time

_NOT_FOUND = 127 << 8
"""The status of a command that the shell does not find."""
_BEGINS_NS = 86_400 * 10**9
"""Where the host's monotonic clock begins, with a run."""
_LOCALES = {"", "C", "POSIX", "C.UTF-8", "C.utf8"}

_setlocale = locale.setlocale
_monotonic_ns = time.monotonic_ns


def system(command):
    """Execute the command in a subshell. There is no command here."""
    return _NOT_FOUND


def pipe():
    """Create a pipe. A process at its other end is missing here."""
    raise OSError(errno.ENOTSUP, f"{sys.platform} does not support processes.")


def get_terminal_size(fd=1, /):
    """Return the size of the terminal window as (columns, lines). There is no terminal here."""
    raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")


def times():
    """Return the times of the process, in seconds."""
    return os.times_result((process_time(), 0.0, 0.0, 0.0, _monotonic_ns() / 1e9))


def process_time():
    """Process time for profiling: sum of the kernel and user-space CPU time."""
    return process_time_ns() / 1e9


def process_time_ns():
    """Process time for profiling as nanoseconds: sum of the kernel and user-space CPU time."""
    return max(_monotonic_ns() - _BEGINS_NS, 0)


def thread_time():
    """Thread time for profiling: that of the process."""
    return process_time()


def thread_time_ns():
    """Thread time for profiling as nanoseconds: that of the process."""
    return process_time_ns()


def setlocale(category, locale=None):
    """Set the locale for the given category. There is the locale of C only."""
    name = locale
    if name is not None and not isinstance(name, str):
        name = _normalised(name)
    if name is not None and name not in _LOCALES:
        raise _Error("unsupported locale setting")
    return _setlocale(category, locale)


def _normalised(pair):
    return locale.normalize(locale._build_localename(pair))


_Error = locale.Error


def install():
    """Puts the functions where programs look for them. The python3 that may run the tests has all of them."""
    if sys.platform != "wasi":
        return
    for module, functions in (
        (os, (system, pipe, get_terminal_size, times)),
        (time, (process_time, process_time_ns, thread_time, thread_time_ns)),
        (locale, (setlocale,)),
    ):
        for function in functions:
            setattr(module, function.__name__, function)
