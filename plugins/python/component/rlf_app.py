"""Binds the driver to what componentize-py generates from WIT. Its body runs once, before the snapshot is taken."""

import gc
import os
import sys

import componentize_py_types
import rlf_driver
from wit_world import exports
from wit_world.exports import interpreter as interpreter_types
from wit_world.imports import code, process, types

import holes

_OUTCOMES = (code.Outcome_Completed, code.Outcome_Exited, code.Outcome_Raised, code.Outcome_Rejected)
_ERRORS = (
    types.Error_InvalidArguments,
    types.Error_NotFound,
    types.Error_Denied,
    types.Error_Exhausted,
    types.Error_Unavailable,
    types.Error_Cancelled,
    types.Error_Internal,
)
_Err, _OK = componentize_py_types.Err, 0


def outcome(plain):
    """`code.outcome` from the driver's tuple."""
    case = _OUTCOMES[plain[0]]
    if len(plain) == 1:
        return case()
    value = plain[1]
    return case(code.Exception(*value) if isinstance(value, tuple) else value)


def files(plain):
    """`list<file>` from pairs."""
    return [code.File(path, data) for path, data in plain]


def pairs(records):
    """Files and modules as the driver takes them."""
    return [tuple(vars(record).values()) for record in records]


def unwrap(result):
    """The value of a result; raises what componentize-py makes an error of."""
    case, value = result
    if case == _OK:
        return value
    raise _Err(_ERRORS[value[0]](value[1]))


class Lifecycle(exports.Lifecycle):
    """`lifecycle`."""

    def init(self, config):
        forget()
        unwrap(rlf_driver.configure(config))


class Interpreter(exports.Interpreter):
    """`interpreter`, but for its resource, which lies in the module that componentize-py looks for it in."""

    def languages(self):
        return [interpreter_types.Language(*language) for language in rlf_driver.languages()]

    def compile(self, language, name, source):
        case, value = rlf_driver.compile(language, name, source)
        if case == _OK:
            return code.Compiled(*value)
        raise _Err(code.Exception(*value))

    def execute(self, program):
        forget()
        plain = (
            program.language,
            program.code,
            program.arguments,
            program.stdin,
            pairs(program.files),
            program.fetch,
            pairs(program.modules),
            program.seed,
            tuple(vars(program.limits).values()),
        )
        ended, found = unwrap(rlf_driver.execute(plain))
        return interpreter_types.Run(outcome(ended), files(found))


_OURS = ("rlf_app", "interpreter", "holes")


def forget():
    """Frees the names of our own modules for the program's."""
    for name in _OURS:
        sys.modules.pop(name, None)


def warm(program):
    """Runs a program of the warm-up as the host will run one."""
    *fields, limits = program
    Interpreter().execute(code.Program(*fields, code.Limits(*limits)))


# It needs the definitions above, and after `prepare` nothing can be imported from files.
import interpreter  # noqa: E402, F401

this = sys.modules[__name__]
library = next(folder for folder in sys.path if os.path.exists(folder + "/tarfile.py"))
MISSING = rlf_driver.prepare(process, library, warm)
# componentize-py looks them up by name until the build is over.
sys.modules.update(rlf_app=this, interpreter=interpreter)
KEPT = holes.fill()
gc.freeze()
