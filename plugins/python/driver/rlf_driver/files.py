"""Files that come with a request and go with its answer.

They lie in the file system that a run finds empty at `/`; what is kept where, and how much of it, is decided below this
module, by whoever answers WASI.
"""

from .sound import __builtins__  # isort: skip

import errno
import os
import stat

from .wit import EXHAUSTED, INVALID_ARGUMENTS, Refused

_open, _close, _read, _write, _mkdir, _access = os.open, os.close, os.read, os.write, os.mkdir, os.access
_fstat, _is_file = os.fstat, stat.S_ISREG
_IS_THERE = os.F_OK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_READ = os.O_RDONLY
_PIECE = 1 << 20

ROOT = "/"
"""The root of all paths. Tests under the machine's own python3 put it elsewhere."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM}


def segments(path):
    """The parts of `path` below the root; `Refused` where it names no file there."""
    if "\0" in path:
        raise Refused(INVALID_ARGUMENTS, f"the path {path!r} contains a NUL")
    parts = path.split("/")
    if ".." in parts:
        raise Refused(INVALID_ARGUMENTS, f"the path {path!r} contains `..`: name files by where they lie below the root")
    if parts[-1] in ("", "."):
        raise Refused(INVALID_ARGUMENTS, f"the path {path!r} names no file")
    return [part for part in parts if part not in ("", ".")]


def place(files, limit):
    """Writes `files`, pairs of path and bytes, their folders made as needed; `limit` is the sum of their bytes, 0 for none."""
    total = 0
    for path, data in files:
        total += len(data)
        if limit and total > limit:
            raise Refused(EXHAUSTED, f"the files have more than {limit} bytes")
        parts = segments(path)
        try:
            for depth in range(1, len(parts)):
                folder(parts[:depth])
            save(below(parts), data)
        except OSError as error:
            if error.errno in _FULL:
                raise Refused(EXHAUSTED, f"no room is left for the file {path!r}") from None
            why = "a file and a folder have one name" if error.errno in (errno.ENOTDIR, errno.EISDIR) else error.strerror
            raise Refused(INVALID_ARGUMENTS, f"the file {path!r} cannot be placed: {why}") from None


def below(parts):
    """The path of `parts` below the root."""
    return ROOT + "/".join(parts)


def folder(parts):
    """Makes the folder if it is not there."""
    try:
        _mkdir(below(parts))
    except FileExistsError:
        pass


def make_standard_paths():
    """Makes `/tmp` and, if the build has no devices, an ordinary file `/dev/null`. Ignores errors, such as a full file system."""
    null = below(["dev", "null"])
    has_null = _access(null, _IS_THERE)
    if has_null and _access(below(["tmp"]), _IS_THERE):
        return
    try:
        folder(["tmp"])
        if not has_null:
            folder(["dev"])
            save(null, b"")
    except OSError:
        pass


def save(path, data):
    """Writes the file at `path`."""
    descriptor = _open(path, _CREATE, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[_write(descriptor, view) :]
    finally:
        _close(descriptor)


def check(paths):
    """Refuses what can be no file's path."""
    for path in paths:
        segments(path)


def expect(paths):
    """Makes the folders of those of `paths` that begin with `/`: who asks for a file there means a folder of the system,
    which programs do not make. Other folders are theirs to make."""
    for path in paths:
        if path[:1] != "/":
            continue
        parts = segments(path)
        try:
            for depth in range(1, len(parts)):
                folder(parts[:depth])
        except OSError:
            # A file is in the way, or there is no room. The program meets the error itself.
            pass


def fetch(paths):
    """Those of `paths` that are files, with what they hold."""
    found = []
    for path in paths:
        try:
            descriptor = _open(below(segments(path)), _READ)
        except (OSError, ValueError, Refused):
            continue
        pieces = []
        try:
            if not _is_file(_fstat(descriptor).st_mode):
                # A device can be read for ever.
                continue
            while piece := _read(descriptor, _PIECE):
                pieces.append(piece)
        except OSError:
            # The folder exists but cannot be read.
            continue
        finally:
            _close(descriptor)
        found.append((path, b"".join(pieces)))
    return found
