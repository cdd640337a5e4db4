"""Preparation, done once before the snapshot that every run starts from is taken."""

from .sound import __builtins__  # isort: skip

import atexit
import builtins
import linecache
import os
import sys
import types
import typing
import weakref

from . import (
    alarm,
    files,
    library,
    loaded,
    loop,
    machine,
    network,
    passwords,
    report,
    resource,
    run,
    session,
    sizes,
    stack,
    streams,
    threads,
    tools,
    warmup,
    zones,
)

_ROUNDS = 4
_INPUT = b"first line\nsecond line\n"


def prepare(host, root, execute=run.execute, programs=warmup.PROGRAMS, begin={}, packages=()):
    """Imports and collects the standard library, which `library.load` takes, warms up and leaves the interpreter as a program
    expects to find it. `execute` runs a program through all that lies between the host and the driver, to be warmed up as
    well. `programs` are those of the warm-up, `begin` is for `library.withhold`, and `packages` names what programs can
    import beside the standard library. Returns the modules that this build of CPython lacks."""
    report.packages = packages
    missing = library.load(root)
    loaded.collect()
    loop.install()
    network.install()
    threads.install()
    alarm.install()
    zones.install()
    machine.install()
    passwords.install()
    sizes.install()
    run.keep_exits_of_threads()
    stack.install(run.run, session.Notebook.step)
    add_builtins()
    library.withhold(begin)
    sys.meta_path[:0] = [library.Withheld, resource.Finder]
    sys.meta_path.append(tools.Tools)
    warm_up(execute, programs)
    loaded.prepare()
    tidy()
    run.belong_to(host)
    return missing


def add_builtins():
    """`exit`, `quit`, `help` and the like, which the module `site` gives python3 and a build may not run."""
    if not hasattr(builtins, "exit"):
        import site

        site.setquit()
        site.setcopyright()
        site.sethelper()


def warm_up(execute, programs):
    """Runs programs as they will be run, without files and with nobody to hear them."""
    modules = set(sys.modules)
    streams.descriptors = False
    for _ in range(_ROUNDS):
        for source in programs:
            streams.fresh()
            execute(("python", source, ["main.py"], _INPUT, [], [], [], 0, (0, 0, 0, 0)))
            for name in set(sys.modules) - modules:
                del sys.modules[name]
    streams.descriptors = True
    streams.connect(None)


def tidy():
    """Leaves nothing of the building machine and of the warm-up where a program could find it."""
    for name in [name for name in linecache.cache if not name.startswith("<")]:
        del linecache.cache[name]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = [run.NAME]
    sys.path[:] = [files.ROOT]
    sys.path_importer_cache.clear()
    os.environ.clear()
    sys.executable = ""
    sys.setrecursionlimit(1000)
    # The ends in the warm-up called and removed what modules had registered; `library.Withheld` handles `logging`.
    atexit._clear()
    weakref.finalize._registered_with_atexit = False
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    library.withdraw(0)
    # A cache hit for `List[int]` would move it to the front, which writes to more memory pages than making it.
    for cleanup in typing._cleanups:
        cleanup()
    streams.fresh()
