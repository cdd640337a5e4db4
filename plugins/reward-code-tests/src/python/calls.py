"""Runs a candidate's code and evaluates steps beside it.

Nothing here is a secret, and nothing here decides anything: what the candidate can do to this module is to send other
data than its functions return, and it does not know which data would be right.
"""

import io
import os
import sys
import types
from json import loads

from rlf_values import Refused, encode

MARK = "\x1e"

PRINTED = 24 << 10
"""Bytes of answers that are printed, and so survive whatever ends the program; the rest goes to a file."""


class _Nowhere(io.RawIOBase):
    """Takes a candidate's own output."""

    def writable(self):
        return True

    def write(self, data):
        return len(data)


def _nowhere():
    return io.TextIOWrapper(io.BufferedWriter(_Nowhere()), encoding="utf-8", errors="replace", write_through=True)


def _told(error):
    # Text of the candidate's may be as long as it likes, or raise itself.
    try:
        return ascii(f"{type(error).__name__}: {error}"[:200])
    except BaseException:
        return ascii(type(error).__name__)


def main(steps, write=os.write, open=open, encode=encode, Refused=Refused):
    left = PRINTED

    def say(what, text):
        nonlocal left
        data = f"\n{MARK}{what} {text}\n".encode("ascii")
        if len(data) > left:
            # There only if the program gets to its end; hence no `os._exit` there.
            with open("results", "ab") as file:
                file.write(data)
            return
        left -= len(data)
        while data:
            data = data[write(1, data):]

    wanted = loads(sys.argv[1])
    with open("candidate.py", "rb") as file:
        source = file.read()
    module = types.ModuleType("candidate")
    module.__file__ = "candidate.py"
    sys.modules["candidate"] = module
    sys.stdout, sys.stderr = _nowhere(), _nowhere()
    try:
        code = compile(source, "candidate.py", "exec")
    except BaseException as error:
        say("rejected", _told(error))
        return
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        say("raised", _told(error))
        return
    say("loaded", "")
    for step in wanted:
        try:
            value = types.FunctionType(steps[step].__code__, module.__dict__)()
            text = encode(value)
        except Refused as error:
            say(f"{step} refused", _told(error))
        except BaseException as error:
            say(f"{step} raised", _told(error))
        else:
            say(f"{step} value", text)
