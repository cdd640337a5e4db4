"""The file system while `init` loads files: empty but for `/tmp` and `/dev/null`, and not asked.

A C library that is asked once keeps descriptors open, which no snapshot can hold. So questions are answered here: there
are the folders `/` and `/tmp`, and the device `/dev/null`. What creates or changes something reaches the system, and so does
what opens `/dev/null`. From then on everything does; where that was is kept, for whoever wants to know why there is no
snapshot. A build that answers WASI itself has its snapshot all the same.
"""

from .sound import __builtins__  # isort: skip

import ast
import builtins
import errno
import io
import os
import posix
import stat
import sys
import traceback

from . import files

_FOLDERS = {"/": ["tmp"], "/tmp": []}
_READS = {name for name in ("stat", "lstat", "access", "listdir", "scandir", "readlink") if hasattr(posix, name)}
_CHANGES = {
    name
    for name in ("chdir", "chmod", "mkdir", "open", "remove", "rename", "replace", "rmdir", "truncate", "unlink", "utime")
    if hasattr(posix, name)
}
_STREAMS = {name for name in ("write", "isatty", "fstat", "read", "dup", "dup2") if hasattr(posix, name)}
_FIRST = {"io.open": "file", "rename": "src", "replace": "src"} | dict.fromkeys(_STREAMS, "fd")
"""Names of first parameters other than `path`."""

_state = {"on": False, "files": frozenset(), "write": None, "first": None}


class _Folder:
    """The result of `os.scandir` for a folder without files."""

    def __init__(self, path, names):
        self.entries = iter([_Entry(path, name) for name in names])

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.entries)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.entries = iter(())


class _Entry:
    """A folder in a folder."""

    def __init__(self, folder, name):
        self.name, self.path = name, os.path.join(folder, name)

    def __fspath__(self):
        return self.path

    def is_dir(self, *, follow_symlinks=True):
        return True

    def is_file(self, *, follow_symlinks=True):
        return False

    is_symlink = is_junction = is_file

    def stat(self, *, follow_symlinks=True):
        return _stat(stat.S_IFDIR | 0o700)

    def inode(self):
        return 0


def _stat(mode):
    return os.stat_result((mode, 0, 1, 1, 0, 0, 0, 0, 0, 0))


def _known(path):
    """The path from the root."""
    path = os.fsdecode("." if path is None else path)
    return os.path.normpath("/" + path).replace("//", "/")


def _missing(path):
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _read(name, path):
    """Answers a question as a system without files would."""
    at = _known(path)
    if name == "access":
        return at in _FOLDERS or at == os.devnull
    if at == os.devnull and name in ("stat", "lstat"):
        return _stat(stat.S_IFCHR | 0o666)
    if at not in _FOLDERS:
        raise _missing(path)
    if name == "listdir":
        return list(_FOLDERS[at])
    if name == "scandir":
        return _Folder("." if path is None else os.fsdecode(path), _FOLDERS[at])
    if name == "readlink":
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return _stat(stat.S_IFDIR | 0o700)


def _fails(name, path, creates):
    """Raises what a change comes to where that needs no file system."""
    at = _known(path)
    if at == os.devnull:
        return
    if at in _FOLDERS:
        if name == "mkdir":
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    elif not creates or os.path.dirname(at) not in _FOLDERS:
        raise _missing(path)


def _creates(name, more, keywords):
    """Whether what is not there would be made."""
    if name == "open":
        flags = more[0] if more else keywords.get("flags", 0)
        return bool(flags & os.O_CREAT)
    if name == "io.open":
        mode = more[0] if more else keywords.get("mode", "r")
        return isinstance(mode, str) and not mode.startswith("r")
    return name == "mkdir"


def _note(name):
    """Keeps where the first call was that reached the system; all others go there too."""
    if _state["first"] is None:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename not in _state["files"]:
            frame = frame.f_back
        shown = "open" if name == "io.open" else f"os.{name}"
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "a file"
        _state["first"] = f"{place} opens or changes files while it is loaded (`{shown}`)"
    _state["on"] = False


def _wrapped(name, real):
    """`real` as it is while files are loaded."""

    first = _FIRST.get(name, "path")

    def call(*arguments, **keywords):
        if not _state["on"]:
            return real(*arguments, **keywords)
        path, *more = arguments or (keywords.get(first),)
        by_path = not isinstance(path, int) and all(keywords.get(key) is None for key in ("dir_fd", "src_dir_fd", "dst_dir_fd"))
        if name == "isatty":
            return False
        if name == "write" and path in (1, 2) and more:
            data = bytes(more[0])
            _state["write"](path, data)
            return len(data)
        if by_path and name in _READS:
            return _read(name, path)
        if by_path:
            _fails(name, path, _creates(name, more, keywords))
            if _known(path) == os.devnull:
                files.make_standard_paths()
        _note(name)
        return real(*arguments, **keywords)

    call.__name__ = call.__qualname__ = name.removeprefix("io.")
    return call


def _anchors(segment):
    """The parts of a line that a traceback underlines, as `traceback` has it. But for an error in what is compiled as a
    file, which the line of a statement may be here, CPython opens a file in search of the line."""
    try:
        compile(f"(\n{segment}\n)", "<unknown>", "eval", ast.PyCF_ONLY_AST)
    except SyntaxError:
        return None
    return _real["anchors"](segment)


_real = {name: getattr(posix, name) for name in sorted(_READS | _CHANGES | _STREAMS)}
_real["io.open"] = io.open
_ours = {name: _wrapped(name, real) for name, real in _real.items()}
_real["anchors"], _ours["anchors"] = traceback._extract_caret_anchors_from_line_segment, _anchors


def _exchange(table):
    """Puts one function in the place of another wherever a module of the library has it."""
    table = {id(old): new for old, new in table}
    for module in [builtins, *sys.modules.values()]:
        if getattr(module, "__spec__", None) is None or module.__name__.startswith(__package__):
            continue
        names = module.__dict__
        for name in [name for name, value in names.items() if id(value) in table]:
            names[name] = table[id(names[name])]


def begin(files, write):
    """From now on code in `files` finds what this module says; `write` takes what it writes to descriptors 1 and 2."""
    _state.update(on=True, files=frozenset(files), write=write, first=None)
    _exchange((_real[name], _ours[name]) for name in _real)


def end():
    """Ends that. Returns which line was the first that reached the system, in words, or None."""
    _state.update(on=False, write=None)
    _exchange((_ours[name], _real[name]) for name in _real)
    sys.path_importer_cache.clear()
    return _state["first"]
