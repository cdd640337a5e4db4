"""Binds the driver to the C of this build: calls and results are bytes that `_host` carries.

`prepare` and `tidy` run once, before the snapshot is taken. `serve` makes one call.
"""

import builtins
import contextlib
import importlib
import io
import itertools
import marshal
import os
import struct
import sys
import traceback

import _host
import rlf_archive
import rlf_driver
import rlf_exercises
from rlf_driver import immortal, warmup

LIBRARY = "/usr/local/lib/python315.zip"
_VERSION = 2
"""The form of `marshal` that the C reads."""
_MAX_SEED = 2**32
_HINT = ". Site initialization is disabled"

_call, _dumps, _loads = _host.call, marshal.dumps, marshal.loads
_sessions = []
_noted = []

NOTE = b"note: numpy's default integers have 32 bits here and overflow without an error; dtype=np.int64 has 64\n"
"""Marks every run that uses numpy, on standard error. The SDK for rewards knows its beginning."""


def serve():
    """Makes the call of the driver that is waiting, and sends its result."""
    name, arguments = _loads(_call(b"?"))
    _call(b"=" + _dumps(_FUNCTIONS[name](*arguments), _VERSION))


def open_session(*arguments):
    """Opens a session: its number in place of the object."""
    case, value = rlf_driver.Session.open(*arguments)
    if case == 0:
        _sessions.append(value)
        value = len(_sessions) - 1
    return case, value


def configure(config):
    """Takes what `init` is given. What it loads is kept as all else in the snapshot is."""
    answer = rlf_driver.configure(config)
    if rlf_driver.loaded.is_configured():
        immortal.keep_all(keep)
    return answer


def keep(objects):
    """Makes objects immortal; those that were not yet."""
    were_mortal = _call(b"K" + struct.pack(f"<{len(objects)}I", *map(id, objects)))
    return list(itertools.compress(objects, were_mortal))


_FUNCTIONS = {
    "configure": configure,
    "languages": rlf_driver.languages,
    "compile": rlf_driver.compile,
    "execute": rlf_driver.execute,
    "open": open_session,
    "session_execute": lambda number, *arguments: _sessions[number].execute(*arguments),
    "session_fetch": lambda number, *arguments: _sessions[number].fetch(*arguments),
}


class Host:
    """The host, as the driver sees it. WASI is answered inside, so output and exit need no other way."""

    exit = staticmethod(os._exit)

    @staticmethod
    def write(descriptor, data):
        while data:
            data = data[os.write(descriptor, data) :]

    @staticmethod
    def entries(slot):
        raise LookupError("there is no such data slot")

    @staticmethod
    def read(slot, path, offset, length):
        raise LookupError("there is no such file in the data slot")


def begin_numpy(module, seed):
    """Seeds numpy's global generator for a run, whichever package the run imported, and says what differs."""
    sys.modules["numpy.random"].seed(seed % _MAX_SEED)
    if not _noted:
        _noted.append(True)
        rlf_driver.run.host().write(2, NOTE)


def piece_of_library(offset, size):
    """Bytes of the archive, which the C keeps."""
    return _call(b"L" + struct.pack("<II", offset, size))


def without_hint():
    """Keeps tracebacks from guessing that a package is missing because the module `site` did not run."""
    function = traceback.TracebackException.__init__
    code = function.__code__
    constants = ["" if isinstance(one, str) and one.startswith(_HINT) else one for one in code.co_consts]
    function.__code__ = code.replace(co_consts=tuple(constants))


def prepare():
    """Imports and exercises the libraries, and prepares the driver."""
    # The module's own end its session, not the program.
    del builtins.exit, builtins.quit
    without_hint()
    archive = rlf_archive.Archive(LIBRARY, piece_of_library)
    for name in rlf_exercises.PRELOADED:
        importlib.import_module(name)
    # A module that a library imports only when it needs it has to be there before the warm-up, which forgets new ones.
    with contextlib.redirect_stdout(io.StringIO()):
        for program in rlf_exercises.PROGRAMS:
            exec(program, {"__name__": "__main__"})
    begin = {name: begin_numpy for name in rlf_exercises.WITH_NUMPY}
    rlf_driver.prepare(Host, archive, rlf_driver.execute, warmup.PROGRAMS + rlf_exercises.PROGRAMS, begin, rlf_exercises.KNOWN)
    _noted.clear()


def tidy():
    """Leaves nothing of the start where a program could find it."""
    del sys.modules["rlf_archive"], sys.modules["rlf_exercises"]
    immortal.keep_all(keep)
