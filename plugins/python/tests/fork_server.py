"""The driver under the machine's own python3: prepared once, then forked for every run, as an instance is for a snapshot.

Reads requests from descriptor 3, one line of JSON each, and answers on descriptor 4. Only the driver's own behaviour is
tested this way, not a sandbox: the programs have the machine before them.
"""

import base64
import builtins
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("driver", "packages", "../../sdk/python")]

import rlf_driver
from rlf_driver import files


class Host:
    """What a build gives the driver."""

    @staticmethod
    def write(descriptor, data):
        while data:
            data = data[send(descriptor, data) :]

    @staticmethod
    def exit(code):
        leave(code & 0xFF)


leave, send = os._exit, os.write
SOUND = {module: dict(vars(module)) for module in (builtins, os)}


def text(data):
    return base64.b64encode(data).decode()


def data(text):
    return base64.b64decode(text)


def pairs(given):
    return [(name, data(value)) for name, value in given]


def answer(request):
    """Calls what the request names; bytes travel in base64."""
    kind, *given = request
    if kind == "compile":
        case, result = rlf_driver.compile(*given)
        return [case, [result[0], text(result[1])] if case == 0 else result]
    if kind == "configure":
        return rlf_driver.configure(*given)
    if kind == "execute":
        language, code, arguments, stdin, placed, fetch, modules, seed, limits = given
        case, result = rlf_driver.execute(
            (language, code, arguments, data(stdin), pairs(placed), fetch, pairs(modules), seed, limits)
        )
        if case == 0:
            result = [result[0], [[path, text(content)] for path, content in result[1]]]
        return [case, result]
    if kind == "session":
        placed, modules, seed, cells, fetch = given
        case, session = rlf_driver.Session.open("python", pairs(placed), pairs(modules), seed)
        if case == 1:
            return [case, session]
        results = []
        for cell in cells:
            printed = [os.path.getsize(f"/proc/self/fd/{fd}") for fd in (1, 2)]
            _, (outcome, value, displays) = session.execute(cell, (0, 0, 0, 0))
            streams = [open(f"/proc/self/fd/{fd}", "rb").read()[before:] for fd, before in zip((1, 2), printed)]
            results.append([outcome, value, [[kind, text(shown)] for kind, shown in displays], *map(text, streams)])
        return [0, [results, [[path, text(content)] for path, content in session.fetch(fetch)]]]
    raise ValueError(kind)


def main():
    requests, answers = os.fdopen(3), os.fdopen(4, "w")
    library, root = tempfile.mkdtemp(), tempfile.mkdtemp()
    files.ROOT = root + "/"
    # Collecting the whole library takes longer than all tests, so other modules are imported from their files.
    real = sys.path[1:]
    rlf_driver.prepare(Host, library)
    for line in requests:
        child = os.fork()
        if child == 0:
            run = tempfile.mkdtemp(dir=root)
            files.ROOT = run + "/"
            os.chdir(run)
            sys.path[:] = [run, *real]
            out, err, end = (os.open(os.path.join(root, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("out", "err", "end"))
            os.dup2(out, 1)
            os.dup2(err, 2)
            result = answer(json.loads(line))
            # Programs may patch names that the rest of this file needs; it only matters that the driver got this far.
            for module, names in SOUND.items():
                module.__dict__.update(names)
            result = json.dumps(result)
            os.write(end, result.encode())
            leave(0)
        _, status = os.waitpid(child, 0)
        whole = {"status": os.waitstatus_to_exitcode(status)}
        for name in ("out", "err", "end"):
            with open(os.path.join(root, name), "rb") as file:
                whole[name] = text(file.read())
        print(json.dumps(whole), file=answers, flush=True)


if __name__ == "__main__":
    main()
