"""Standard input, output and error as real streams over descriptors 0, 1 and 2.

Output leaves at every newline. Nothing inside can tell that the program is about to loop for ever or to be stopped for
another reason, and what it printed before must not be lost then; on a terminal python3 does the same. What has no newline
leaves in pieces of 8 KiB, and at the latest when the program waits or ends.
"""

from .sound import __builtins__  # isort: skip

import io
import os
import sys

from . import files, report

_PIECE = 8192
_send = None


def connect(send):
    """From now on output goes to `send(descriptor, bytes)`; where that is None, as at first, to the descriptors."""
    global _send
    _send = send


class Output(io.FileIO):
    """Descriptor 1 or 2, past the descriptor's own way out: one call of the host's for each piece."""

    def __init__(self, descriptor, name):
        super().__init__(descriptor, "wb", closefd=False)
        self.name = name

    def isatty(self):
        """Never a terminal, which is not worth a question to the system."""
        return False

    def write(self, data):
        if _send is None:
            return super().write(data)
        data = bytes(data)
        _send(self.fileno(), data)
        return len(data)


def output(descriptor, name, errors):
    """A text stream that programs print to."""
    raw = Output(descriptor, name)
    stream = io.TextIOWrapper(io.BufferedWriter(raw, _PIECE), "utf-8", errors, newline="\n", line_buffering=True)
    stream.mode = "w"
    return stream


def input_(raw):
    """A text stream that programs read."""
    raw.name = "<stdin>"
    stream = io.TextIOWrapper(io.BufferedReader(raw), "utf-8", "strict", newline="\n")
    stream.mode = "r"
    return stream


def fresh():
    """Standard streams that nobody has used, standard input at its end."""
    sys.stdin = sys.__stdin__ = input_(io.FileIO(0, "rb", closefd=False))
    sys.stdout = sys.__stdout__ = output(1, "<stdout>", "strict")
    sys.stderr = sys.__stderr__ = output(2, "<stderr>", "backslashreplace")
    _mine[:] = sys.stdout, sys.stderr, sys.stdout.buffer, sys.stderr.buffer


_mine = []
_OWN = (("stdin", "__stdin__"), ("stdout", "__stdout__"), ("stderr", "__stderr__"))
_open, _close = os.open, os.close
_READ = os.O_RDONLY


descriptors = True
"""Whether input may take descriptor 0; not while the snapshot is made."""


class Memory(io.BytesIO):
    """Standard input where no descriptor can be had."""

    name = "<stdin>"


def feed(data):
    """Makes `data` the program's standard input: descriptor 0, for `open(0)` and `os.read(0, n)` too, and `/dev/stdin`."""
    raw = _descriptor_0(data) if descriptors else None
    sys.stdin = sys.__stdin__ = input_(raw or Memory(data))


def _descriptor_0(data):
    """A file with `data` as descriptor 0; None where no room is left for it or another number was given."""
    path = files.below(["dev", "stdin"])
    try:
        files.save(path, data)
        _close(0)
        descriptor = _open(path, _READ)
    except OSError:
        return None
    return io.FileIO(0, "rb", closefd=False) if descriptor == 0 else None


def settle():
    """Sends what is pending, first on standard error, as python3 does after a program's last statement. Failures are
    ignored: the end of the program meets them again."""
    try:
        sys.stderr.flush()
    except BaseException:
        pass
    try:
        sys.stdout.flush()
    except BaseException:
        pass


def finish():
    """Sends what is pending, as python3 does after the exit functions, and gives `sys` its own streams back. Returns
    whether both streams could be flushed; a failure of standard output is shown."""
    stdout, stderr, *_ = _mine
    try:
        if sys.stdout is stdout and sys.stderr is stderr:
            stdout.flush()
            stderr.flush()
            return True
    except BaseException:
        # Closed, detached or deleted.
        pass
    whole = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or _is_closed(stream):
            continue
        try:
            stream.flush()
        except BaseException as error:
            whole = False
            if name == "stdout":
                error.__traceback__ = error.__traceback__.tb_next
                report.ignored(error, *_flushing(stream))
    stream = None
    for name, own in _OWN:
        setattr(sys, name, getattr(sys, own, None))
    return whole


def _is_closed(stream):
    try:
        return bool(stream.closed)
    except BaseException:
        return False


def _flushing(stream):
    """The words of python3, and the object they are about, if standard output cannot be flushed."""
    if sys.version_info < (3, 13):
        return None, stream
    return "Exception ignored while flushing sys.stdout" if sys.version_info >= (3, 14) else "Exception ignored on flushing sys.stdout", None


def flush():
    """Sends what is pending: in the streams that the program put in place of its own, then in its own."""
    settle()
    flush_own()


def flush_own():
    """Sends what is pending in the program's own streams, whatever it put in their place."""
    for stream in _mine:
        try:
            stream.flush()
        except BaseException:
            # Closed or detached.
            pass
