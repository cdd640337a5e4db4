"""A program from start to end, as `python3 main.py` runs it."""

from .sound import __builtins__  # isort: skip

import atexit
import builtins
import gc
import os
import sys
import types

from . import files, library, modules, report, streams
from .wit import COMPLETED, REJECTED

NAME = "main.py"
"""What a program without arguments is called."""

_compile, _exec = compile, exec
_settrace, _setprofile, _setrecursionlimit = sys.settrace, sys.setprofile, sys.setrecursionlimit
_run_exitfuncs = atexit._run_exitfuncs
_collect = gc.collect
_RECURSION_LIMIT = 1000
_ENDS = ("__del__", "async", "open", "weakref", "warn")
"""Words without one of which nothing ends visibly."""



ATTEMPTS = range(3)
"""One for each of the functions that may watch, and one more."""


class _Nobody:
    """Whom programs of the warm-up print to."""

    @staticmethod
    def write(descriptor, data):
        """Takes what is printed."""


_host = _Nobody


def prepare(arguments, stdin, offered, seed):
    """Everything around a program but the program: `sys.argv`, standard input, modules, the seed of `random`. The fresh
    `__main__`."""
    streams.connect(_host.write)
    library.Withheld.seed = seed
    library.withdraw()
    sys.argv = list(arguments) or [NAME]
    modules.offer(offered)
    files.temporary()
    if stdin:
        streams.feed(stdin)
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    return main


def run(source, main, collect):
    """Runs the program in the module `main`; its outcome. Whatever it prints, its end included, is on its way."""
    name = sys.argv[0]
    namespace = main.__dict__
    namespace["__file__"] = name
    report.remember(name, source)
    try:
        code = _compile(source, name, "exec", dont_inherit=True)
    except BaseException as error:
        error.__traceback__ = None
        outcome = (REJECTED, report.uncaught(error))
        end(namespace, collect)
        return outcome
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
            # A function that watches calls saw this one, raised, and is removed for it.
            pass
    if error is not None:
        report.own_frames(error, code)
        outcome = report.outcome(error)
        # Nothing of the program's may be held by what it raised.
        error.__traceback__ = error.__context__ = error.__cause__ = error = None
    end(namespace, collect)
    return outcome


def quiet():
    """Ends what the program had installed to watch each step: the steps from here on are not its own."""
    _settrace(None)
    _setprofile(None)
    _setrecursionlimit(_RECURSION_LIMIT)


def end(namespace, collect):
    """What python3 does last: functions registered with `atexit`, then the end of everything that `__main__` named, which
    closes files that are still open and calls `__del__`. With `collect` also of what only refers to itself."""
    try:
        _run_exitfuncs()
    except BaseException as error:
        report.uncaught(error)
    for name in list(namespace):
        if name[:1] == "_" and name[:2] != "__":
            namespace[name] = None
    for name in list(namespace):
        if name != "__builtins__":
            namespace[name] = None
    if collect:
        _collect()
    streams.flush()


def ends_visibly(program):
    """Whether the end of an object that is only referred to by itself could be seen. Looking for such objects costs a
    tenth of a short run, and nearly no program has any whose end does more than free memory."""
    _, source, _, _, placed, fetched, offered, _, _ = program
    return bool(placed or fetched or offered) or any(word in source for word in _ENDS)


def execute(program):
    """`interpreter.execute`, short of the shape of its result; `Refused` where the request is wrong."""
    _, source, arguments, stdin, placed, fetched, offered, seed, limits = program
    files.check(fetched)
    files.place(placed, limits[3])
    files.expect(fetched)
    main = prepare(arguments, stdin, offered, seed)
    outcome = run(source, main, ends_visibly(program))
    return outcome, files.fetch(fetched)


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
