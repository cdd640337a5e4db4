"""`signal.alarm` and `signal.setitimer`, in a system without signals.

Nothing can interrupt a program from outside. So while an alarm is set, the interpreter counts the program's jumps and calls, and
a fixed number of them passes for a second. To that comes the time that the program sees, which only sleep moves. When both
together reach the alarm, its handler is called between two instructions of the program, as python3 does it. It is the same
instruction in every run.
"""

from .sound import __builtins__  # isort: skip

import math
import operator
import os
import signal
import sys
import time

STEPS_PER_SECOND = 4_000_000
"""Jumps and calls that pass for a second: about as many as a small loop makes in one while they are counted."""
_STEPS_BETWEEN_LOOKS = 1_000
_TOOL = 4
_DEFAULT_EXIT = 128 + 14
"""The exit code of a process that the signal ended, as a shell reports it."""

_monotonic, _sleep = time.monotonic, time.sleep
_exit = os._exit

_alarm = None
"""The alarm that is set."""
_left = 0
"""Steps until the next look."""
_waits_for_line = False
"""True once the time has come at a jump."""


class Alarm:
    """An alarm that is set: once, or again after each `interval`."""

    def __init__(self, seconds, interval):
        self.interval = interval
        self.begun = _monotonic()
        self.steps = 0
        self.seconds = seconds

    def remaining(self):
        """Seconds until it goes off."""
        passed = self.steps / STEPS_PER_SECOND + (_monotonic() - self.begun)
        return self.seconds - passed


def _call(code, offset):
    global _left
    _left -= 1
    if _left <= 0:
        _look(sys._getframe(1))


def _jump(code, offset, destination):
    global _left
    _left -= 1
    if _left <= 0:
        _look(sys._getframe(1), at_jump=True)


def _line(code, number):
    _look(sys._getframe(1))


def _look(frame, at_jump=False):
    """Calls the handler if the time has come."""
    global _left, _waits_for_line
    alarm = _alarm
    if alarm is None:
        return
    alarm.steps += _STEPS_BETWEEN_LOOKS - _left
    _left = _STEPS_BETWEEN_LOOKS
    if alarm.remaining() > 0:
        return
    if frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        # The program prints, for example. What is on the way there is not to be torn.
        _left = 1
        return
    if at_jump and not _waits_for_line:
        # CPython 3.14.0 finds no `except` around a jump that is watched. So a line that follows soon is better.
        _waits_for_line = True
        sys.monitoring.set_events(_TOOL, sum(_EVENTS) | sys.monitoring.events.LINE)
        return
    _set(alarm.interval, alarm.interval)
    handler = signal.getsignal(signal.SIGALRM)
    if callable(handler):
        handler(signal.SIGALRM, frame)
    elif handler != signal.SIG_IGN:
        _exit(_DEFAULT_EXIT)


def sleep(seconds, /):
    """Delay execution for a given number of seconds. The argument may be a floating-point number for subsecond precision."""
    while _alarm is not None and (remaining := _alarm.remaining()) < seconds:
        _sleep(max(remaining, 0))
        seconds -= max(remaining, 0)
        _look(sys._getframe(1))
    _sleep(seconds)


def _set(seconds, interval):
    global _alarm, _left, _waits_for_line
    monitoring = sys.monitoring
    _waits_for_line = False
    if seconds > 0:
        _alarm, _left = Alarm(seconds, interval), _STEPS_BETWEEN_LOOKS
        if monitoring.get_tool(_TOOL) is None:
            monitoring.use_tool_id(_TOOL, "alarm")
            for event, callback in _CALLBACKS.items():
                monitoring.register_callback(_TOOL, event, callback)
        monitoring.set_events(_TOOL, sum(_EVENTS))
        time.sleep = sleep
    elif _alarm is not None:
        _alarm = None
        monitoring.set_events(_TOOL, 0)
        time.sleep = _sleep


def cancel():
    """Takes back an alarm, when the program is over."""
    _set(0, 0)


def setitimer(which, seconds, interval=0.0, /):
    """Sets given itimer (one of ITIMER_REAL, ITIMER_VIRTUAL or ITIMER_PROF). Only ITIMER_REAL is there."""
    if which != signal.ITIMER_REAL:
        raise signal.itimer_error(22, "Invalid argument")
    if seconds < 0 or interval < 0:
        raise signal.itimer_error(22, "Invalid argument")
    old = getitimer(which)
    _set(float(seconds), float(interval))
    return old


def getitimer(which, /):
    """Returns current value of given itimer."""
    if which != signal.ITIMER_REAL:
        raise signal.itimer_error(22, "Invalid argument")
    if _alarm is None:
        return 0.0, 0.0
    return max(_alarm.remaining(), 0.0), _alarm.interval


def alarm(seconds, /):
    """Arrange for SIGALRM to arrive after the given number of seconds."""
    seconds = operator.index(seconds)
    before = 0 if _alarm is None else max(1, math.ceil(_alarm.remaining()))
    _set(seconds, 0)
    return before


if hasattr(sys, "monitoring"):
    _events = sys.monitoring.events
    _CALLBACKS = {_events.JUMP: _jump, _events.PY_START: _call, _events.LINE: _line}
    _EVENTS = (_events.JUMP, _events.PY_START)


def install():
    """Adds the functions to `signal`, unless the system has its own."""
    if hasattr(signal, "alarm") or not hasattr(sys, "monitoring"):
        return
    signal.alarm, signal.setitimer, signal.getitimer = alarm, setitimer, getitimer
    signal.ITIMER_REAL = 0
    signal.ItimerError = signal.itimer_error = OSError
