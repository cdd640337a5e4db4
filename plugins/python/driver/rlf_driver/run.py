"""A program from start to end, as `python3 main.py` runs it."""

from .sound import __builtins__  # isort: skip

import atexit
import builtins
import gc
import os
import sys
import threading
import types
import weakref

from . import alarm, files, library, modules, report, streams
from .wit import COMPLETED, EXITED, REJECTED

NAME = "main.py"
"""The name of a program without arguments."""

_compile, _exec = compile, exec
_settrace, _setprofile, _setrecursionlimit = sys.settrace, sys.setprofile, sys.setrecursionlimit
_run_exitfuncs = atexit._run_exitfuncs
_collect, _ref = gc.collect, weakref.ref
_RECURSION_LIMIT = 1000
_NOT_FLUSHED = 120
"""The status of a program whose output could not be flushed, whatever else it would have been."""
_ENDS = ("__del__", "async", "open", "weakref", "warn", "GeneratorExit")
_IN_GENERATORS = ("finally", "with")
"""Words without one of which nothing ends visibly; the latter only beside `yield`."""

_BY_STDIN, STDIN = "-", "<stdin>"
"""The argument for a program on standard input, and what it is called."""

_exits_of_threads = []
"""The functions that `threading` calls at the end, as the snapshot has them: none does what a program could see."""

_mains = []
"""The module `__main__` of the program that runs; here alone, so that its end can be its end."""


ATTEMPTS = range(3)
"""One for each of the functions that may watch, and one more."""


class _Nobody:
    """A host for programs of the warm-up, which drops what they print."""

    @staticmethod
    def write(descriptor, data):
        """Takes what is printed."""


_host = _Nobody


class Remnant:
    """Stands in a namespace, to tell whether that is still there."""


def prepare(arguments, stdin, offered, seed):
    """Everything around a program but the program: `sys.argv`, standard input, modules, the seed of `random`, and a
    fresh `__main__`."""
    streams.connect(_host.write)
    library.withdraw(seed)
    sys.argv = list(arguments) or [NAME]
    modules.offer(offered)
    files.make_standard_paths()
    if stdin:
        streams.feed(stdin)
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    _mains[:] = [main]


def run(source):
    """Runs the program in `__main__`, short of what is done when it is over; its outcome."""
    name = STDIN if sys.argv[0] == _BY_STDIN else sys.argv[0]
    namespace = _mains[0].__dict__
    namespace["__file__"] = name
    namespace["__cached__"] = None
    if sys.version_info < (3, 14):
        namespace["__annotations__"] = {}
    report.remember(name, source)
    try:
        code = _compile(source, name, "exec", dont_inherit=True)
    except BaseException as error:
        error.__traceback__ = None
        report.add_line(error, name, source)
        return (REJECTED, report.uncaught(error)[0])
    outcome, error = (COMPLETED,), None
    try:
        _exec(code, namespace)
    except BaseException as raised:
        error = raised
    for attempt in ATTEMPTS:
        try:
            quiet()
            break
        except BaseException:
            # A tracing function saw this call, raised an exception, and is removed because of it.
            pass
    streams.settle()
    if error is not None:
        report.own_frames(error, code)
        outcome = report.outcome(error)
        # An exception must not keep any of the program's objects alive.
        error.__traceback__ = error.__context__ = error.__cause__ = error = None
    return outcome


def quiet():
    """Ends what the program had installed to watch each step: the steps from here on are not its own."""
    alarm.cancel()
    _settrace(None)
    _setprofile(None)
    _setrecursionlimit(_RECURSION_LIMIT)


def end(searches):
    """Ends the program as python3 does, in the order of `Py_FinalizeEx`: exit functions, those of threads first; the flush of both
    streams; then the end of everything that `__main__` named, which closes files that are still open and calls `__del__`.
    With one of `searches` also of what only refers to itself. With two as python3 does it: that ends first, then all that
    is left ends together, while every name still means what it meant. All that was printed is sent when this returns,
    which says whether both streams could be flushed."""
    end_threads()
    try:
        _run_exitfuncs()
    except BaseException as error:
        report.uncaught(error)
    whole = streams.finish()
    end_main(searches)
    streams.flush_own()
    return whole


def end_threads():
    """Calls what `threading` was told to call before all other exit functions."""
    if threading._threading_atexits == _exits_of_threads:
        return
    try:
        threading._shutdown()
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        old = sys.version_info < (3, 13)
        report.ignored(error, None if old else "Exception ignored on threading shutdown", threading if old else None)


def keep_exits_of_threads():
    """Takes what `threading` was told to call so far as the library's own."""
    _exits_of_threads[:] = threading._threading_atexits


def end_main(searches):
    """Ends everything that `__main__` named."""
    namespace = _mains.pop().__dict__
    if searches > 1:
        _collect()
        remnant = Remnant()
        remnant.namespace, namespace[""] = namespace, remnant
        seen = _ref(remnant)
        namespace = remnant = None
        forget_main()
        _collect()
        remnant = seen()
        if remnant is None:
            return
        # An object of the library refers to the program's definitions.
        namespace = remnant.namespace
        del namespace[""], remnant
    for name in list(namespace):
        if name[:1] == "_" and name[:2] != "__":
            namespace[name] = None
    for name in list(namespace):
        if name != "__builtins__":
            namespace[name] = None
    if searches:
        _collect()


def forget_main():
    """Takes `__main__` out of the imported modules, whatever the program made of them."""
    try:
        del sys.modules["__main__"]
    except BaseException:
        pass


def searches(program):
    """The number of searches for objects that only refer to themselves before a program is over. Each costs a tenth of a
    short run, and nearly no program has any object whose end does more than free memory."""
    _, source, _, _, placed, fetched, offered, _, _ = program
    if any(word in source for word in _ENDS) or "yield" in source and any(word in source for word in _IN_GENERATORS):
        return 2
    return 1 if placed or fetched or offered else 0


def execute(program):
    """`interpreter.execute`, short of the shape of its result; `Refused` where the request is wrong."""
    _, source, arguments, stdin, placed, fetched, offered, seed, limits = program
    files.check(fetched)
    files.place(placed, limits[3])
    files.expect(fetched)
    prepare(arguments, stdin, offered, seed)
    outcome = run(source)
    if not end(searches(program)):
        outcome = (EXITED, _NOT_FLUSHED)
    return outcome, files.fetch(fetched)


def host():
    """The host: its own way out for what is printed, and the data of a plugin."""
    return _host


def belong_to(host):
    """Makes programs print to `host`, and `os._exit` end the instance with its status, which WASI's own exit cannot
    carry. What is printed stays."""
    global _host
    _host = host

    def _exit(status):
        """Exit to the system with specified status, without normal exit processing."""
        streams.flush()
        host.exit(report.exit_status(SystemExit(int(status))))

    os._exit = sys.modules["posix"]._exit = _exit
