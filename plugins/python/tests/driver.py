"""Speaks with the fork server, which runs the driver as a component's instances do: fresh for every request."""

import base64
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SERVER = HERE / "fork_server.py"
sys.path.insert(0, str(HERE.parent / "conformance"))

NO_LIMITS = [0, 0, 0, 0]


def text(data):
    return base64.b64encode(data).decode()


def data(text):
    return base64.b64decode(text)


def pairs(table):
    return [[name, text(value)] for name, value in table.items()]


class Driver:
    """One prepared interpreter."""

    def __init__(self):
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        move = f'exec "$0" "$1" 3<&{requests} 4>&{answers}'
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", move, sys.executable, str(SERVER)],
            pass_fds=(requests, answers),
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"},
        )
        os.close(requests)
        os.close(answers)
        self.requests, self.answers = os.fdopen(self.requests, "w"), os.fdopen(self.answers)

    def close(self):
        """Ends the server, which reads the end of its requests."""
        self.requests.close()
        self.process.wait()
        self.answers.close()

    def ask(self, *request):
        """The result, None where the program ended the process, with what was printed and the process's status."""
        print(json.dumps(request), file=self.requests, flush=True)
        whole = json.loads(self.answers.readline())
        end = data(whole["end"])
        return json.loads(end) if end else None, data(whole["out"]).decode(), data(whole["err"]).decode(), whole["status"]

    def compile(self, name, source):
        """A module's bytes in base64; the test fails where it does not compile."""
        (case, result), *_ = self.ask("compile", "python", name, source)
        assert case == 0, result
        return result[1]

    def execute(self, code, arguments=(), stdin=b"", files=(), fetch=(), modules=(), seed=0, limits=NO_LIMITS, language="python"):
        """Runs a program; `files` by path as bytes, `modules` by name as source."""
        compiled = [[name, self.compile(name, source)] for name, source in dict(modules).items()]
        return self.ask(
            "execute", language, code, list(arguments), text(stdin), pairs(dict(files)), list(fetch), compiled, seed, limits
        )

    def session(self, cells, files=(), modules=(), seed=0, fetch=()):
        """Runs the cells of a notebook."""
        compiled = [[name, self.compile(name, source)] for name, source in dict(modules).items()]
        return self.ask("session", pairs(dict(files)), compiled, seed, cells, list(fetch))
