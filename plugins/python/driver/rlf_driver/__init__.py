"""All that a program can notice of its interpreter, in plain Python, the same in every build of CPython.

The README beside this package says who calls it and how values cross. In order of reading: `run` has a program's whole
life, `session` a notebook's; `streams`, `files`, `modules` and `library` are what they live on, `stack` is what they see
of who runs them, `tools` is what they may call, `report` says how they ended, `snapshot` is what happens before any of it. `loaded` makes sessions
those of files that `init` has loaded.

The program shares the interpreter with this package and can change whatever it finds. So functions that matter are bound
to names of our own before any program runs, and what must not be fooled, such as a comparison with an expected value,
is not done in here at all.
"""

from .sound import __builtins__  # isort: skip

import platform

from . import loaded, modules, run, session
from .report import describe
from .snapshot import prepare
from .wit import ERROR, INTERNAL, NOT_FOUND, OK, Refused

__all__ = ["Session", "compile", "configure", "execute", "languages", "prepare"]

ID = "python"
_LANGUAGES = [(ID, platform.python_version(), True)]


def configure(config):
    """Takes what `init` is given: `(0, whether sessions wait for further requests)`, or `(1, error)`."""
    return answer(ID, loaded.configure, config)


def languages():
    """The one language, as `(id, version, sessions)`."""
    return _LANGUAGES


def compile(language, name, source):
    """A module to be imported by programs: `(0, (name, data))`, or `(1, exception)`."""
    if language != ID:
        return ERROR, ("LookupError", unknown(language), "")
    try:
        return OK, (name, modules.compile_module(name, source))
    except BaseException as error:
        error.__traceback__ = None
        return ERROR, describe(error)


def execute(program):
    """Runs a program in this fresh instance: `(0, (outcome, files))`, or `(1, error)` with what is wrong with the request."""
    return answer(program[0], run.execute, program)


class Session:
    """A notebook, or requests to files that `init` has loaded."""

    def __init__(self, notebook):
        self.notebook = notebook

    @classmethod
    def open(cls, language, files, modules, seed):
        """`(0, session)` or `(1, error)`."""
        if loaded.is_configured():
            return answer(language, lambda: cls(loaded.Requests.open(seed)))
        return answer(language, lambda: cls(session.Notebook(files, modules, seed)))

    def execute(self, code, limits):
        """Runs a cell: `(0, cell)`. Its limits are the host's to enforce."""
        return answer(ID, self.notebook.execute, code)

    def fetch(self, paths):
        """Those of `paths` that are files."""
        return run.files.fetch(paths)


def answer(language, function, *arguments):
    """The result of `function`, as a result of WIT."""
    if language != ID:
        return ERROR, (NOT_FOUND, unknown(language))
    try:
        return OK, function(*arguments)
    except Refused as refused:
        return ERROR, refused.error
    except BaseException as error:
        return ERROR, (INTERNAL, "the interpreter's driver failed: " + describe(error)[2])


def unknown(language):
    """The message about a language that this is not."""
    return f"there is no language {language!r} here, only {ID!r}"
