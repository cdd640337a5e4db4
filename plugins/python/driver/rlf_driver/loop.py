"""An asyncio event loop with nothing to wait for but time.

There are no sockets, pipes or signals, and no two threads at once, so a loop needs no way to be woken, and its selector only sleeps.
"""

from .sound import __builtins__  # isort: skip

import selectors
import time
from asyncio import selector_events, unix_events

_DAY = 86400


class Sleeper(selectors._BaseSelectorImpl):
    """Waits for the time to come."""

    def select(self, timeout=None):
        if timeout is None:
            # No event will ever come. python3 would wait forever, and so does this, until a limit ends it.
            while True:
                time.sleep(_DAY)
        if timeout > 0:
            time.sleep(timeout)
        return []


def _nothing(self):
    """There is no pipe to make, close or write to."""


def _close(self):
    self._ssock = self._csock = None


def _no_signals(self, *arguments):
    raise NotImplementedError("there are no signals in the sandbox")


def install():
    """Makes every event loop one that only sleeps."""
    selectors.DefaultSelector = Sleeper
    loop = selector_events.BaseSelectorEventLoop
    loop._make_self_pipe = loop._close_self_pipe = _close
    loop._write_to_self = _nothing
    unix_events._UnixSelectorEventLoop.add_signal_handler = _no_signals
    unix_events._UnixSelectorEventLoop.remove_signal_handler = _no_signals
