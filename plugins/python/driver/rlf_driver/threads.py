"""Threads that run one after the other.

There is one thread of control. A thread runs to its end before `start` returns, so the order is the same in every run. That
serves programs that want a larger stack, or a pool for tasks that need nothing of each other. A thread that would wait for
another cannot go on. It gets an error, and so does the program that started it.
"""

from .sound import __builtins__  # isort: skip

import _thread
import _threading_local
import asyncio
import concurrent.futures.thread
import contextvars
import queue
import sys
import threading
import time
import weakref

from . import report

IN_THREAD = "threads run one after the other in the sandbox: this thread waits for another, which cannot run meanwhile"
STARTED = "threads run one after the other in the sandbox: a started thread waits for another, which cannot run meanwhile"
IN_MAIN = "threads run one after the other in the sandbox: no thread is left that could end this wait"

_LEAST_STACK = 32768

_running = []
"""The identifiers of the threads that run, each started by the one before."""
_started = []
"""The identifiers of all threads so far."""
_refused = []
"""Has an entry if a thread waited for another, and the program has not been told."""
_stack = [0]
_main = _thread.get_ident()
_arguments = weakref.WeakKeyDictionary()
"""What the tasks of a pool are run with. A pool is in it once its initializer has returned."""

_start, _wait = threading.Thread.start, threading.Condition.wait
_sleep = time.sleep
_Pool = concurrent.futures.ThreadPoolExecutor
_submit = _Pool.submit


class Handle:
    """The state of a thread, as `threading` asks for it."""

    def __init__(self):
        self.ident = None
        self._done = False

    def is_done(self):
        return self._done

    def _set_done(self):
        self._done = True

    def join(self, timeout=None):
        if not self._done and (timeout is None or timeout > 0):
            refuse()


def refuse():
    """Ends a wait that nobody could end."""
    if not _running:
        raise RuntimeError(IN_MAIN)
    _refused.append(get_ident())
    raise RuntimeError(IN_THREAD)


def tell():
    """Raises an error if a started thread waited for another, even if it caught its own, until the program itself is told."""
    if _refused:
        if not _running:
            _refused.clear()
        raise RuntimeError(STARTED)


def get_ident():
    """Return a non-zero integer that uniquely identifies the current thread amongst other threads that exist simultaneously."""
    return _running[-1] if _running else _main


def play(ident, function, *arguments, **named):
    """Calls `function` as a thread: with a context of its own, and with no event loop."""
    watches, loop = (sys.gettrace(), sys.getprofile()), asyncio.events._get_running_loop()
    if loop is not None:
        task = asyncio.tasks._swap_current_task(loop, None)
        asyncio.events._set_running_loop(None)
    _running.append(ident)
    try:
        contextvars.Context().run(function, *arguments, **named)
    finally:
        _running.pop()
        if loop is not None:
            asyncio.events._set_running_loop(loop)
            asyncio.tasks._swap_current_task(loop, task)
        sys.settrace(watches[0])
        sys.setprofile(watches[1])


def new_ident():
    """An identifier that no thread had."""
    _started.append(_main + 1 + len(_started))
    return _started[-1]


def start_joinable_thread(function, handle=None, daemon=True):
    """Start a new thread. It has ended when this returns."""
    handle = handle or Handle()
    handle.ident = new_ident()
    try:
        play(handle.ident, function)
    finally:
        handle._set_done()
    return handle


def start_new_thread(function, args, kwargs={}, /):
    """Start a new thread and return its identifier. It has ended when this returns."""
    ident = new_ident()
    try:
        play(ident, function, *args, **kwargs)
    except SystemExit:
        pass
    except BaseException as error:
        report.ignored(error, f"Exception ignored in thread started by {function!r}", None)
    tell()
    return ident


def stack_size(size=0, /):
    """Return the thread stack size used when creating new threads. All threads share one stack, whatever this says."""
    if size and size < _LEAST_STACK:
        raise ValueError(f"size not valid: {size} bytes")
    old, _stack[0] = _stack[0], size
    return old


def start(self):
    """Start the thread's activity. It has ended when this returns."""
    _start(self)
    tell()


def wait(self, timeout=None):
    """Wait until notified or until a timeout occurs. Only a timeout can end it, because no other thread runs."""
    if self._is_owned() and (timeout is None or _running and timeout > 0):
        refuse()
    if self._is_owned() and timeout is not None:
        _sleep(max(timeout, 0))
        return False
    return _wait(self, timeout)


def submit(self, fn, /, *args, **kwargs):
    """Calls `fn` in a thread of the pool. The future is done when this returns."""
    future = _submit(self, fn, *args, **kwargs)
    threading.Thread(target=work, args=(self,), name=f"{self._thread_name_prefix or self}_0").start()
    return future


submit.__doc__ = _submit.__doc__


def work(pool):
    """Runs the tasks of a pool, in their order."""
    try:
        arguments = initialize(pool)
    except BaseException:
        concurrent.futures._base.LOGGER.critical("Exception in initializer:", exc_info=True)
        pool._initializer_failed()
        return
    while True:
        try:
            task = pool._work_queue.get_nowait()
        except queue.Empty:
            return
        if task is not None:
            task.run(*arguments)


def initialize(pool):
    """Calls the pool's initializer, once. Returns what its tasks are run with."""
    if pool in _arguments:
        return _arguments[pool]
    if hasattr(pool, "_create_worker_context"):
        context = pool._create_worker_context()
        context.initialize()
        _arguments[pool] = (context,)
    else:
        if pool._initializer is not None:
            pool._initializer(*pool._initargs)
        _arguments[pool] = ()
    return _arguments[pool]


def no_thread(self):
    """A pool keeps no threads."""


def install():
    """Makes every thread one that runs at once. An older python3, which may run the tests, keeps its own threads."""
    if sys.version_info < (3, 13):
        return
    threading._start_joinable_thread = _thread.start_joinable_thread = start_joinable_thread
    _thread.start_new_thread = _thread.start_new = start_new_thread
    threading._ThreadHandle = Handle
    threading.get_ident = _thread.get_ident = get_ident
    threading.stack_size = _thread.stack_size = stack_size
    # The C type keeps one set of values for all of them, because they are one to the system.
    threading.local = _threading_local.local
    threading.Thread.start = start
    threading.Condition.wait = wait
    _Pool.submit = submit
    _Pool._adjust_thread_count = no_thread
