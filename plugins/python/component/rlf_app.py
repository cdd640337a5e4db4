"""Binds the driver to what componentize-py generates from WIT. Its body runs once, before the snapshot is taken."""

import os
import sys

import rlf_driver
from wit_world import exports
from wit_world.exports import interpreter as interpreter_types
from wit_world.imports import code, data, gates, process

import interpreter
import memory
from rlf_values import OK, Err, files, forget, outcome, pairs, unwrap


class Lifecycle(exports.Lifecycle):
    """`lifecycle`."""

    def init(self, config):
        forget()
        unwrap(rlf_driver.configure(config))
        if rlf_driver.loaded.is_configured():
            memory.keep_all()


class Interpreter(exports.Interpreter):
    """`interpreter`, but for its resource, which lies in the module that componentize-py looks for it in."""

    def languages(self):
        return [interpreter_types.Language(*language) for language in rlf_driver.languages()]

    def compile(self, language, name, source):
        case, value = rlf_driver.compile(language, name, source)
        if case == OK:
            return code.Compiled(*value)
        raise Err(code.Exception(*value))

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


class Host:
    """The host, as the driver sees it."""

    write = staticmethod(process.write)
    exit = staticmethod(process.exit)
    ask = staticmethod(gates.ask)

    @staticmethod
    def entries(slot):
        try:
            return [(entry.path, entry.size) for entry in data.entries(slot)]
        except Err:
            raise LookupError("there is no such data slot") from None

    @staticmethod
    def read(slot, path, offset, length):
        try:
            return data.read(slot, path, offset, length)
        except Err:
            raise LookupError("there is no such file in the data slot") from None


def warm(program):
    """Runs a program of the warm-up as the host will run one."""
    *fields, limits = program
    Interpreter().execute(code.Program(*fields, code.Limits(*limits)))


this = sys.modules[__name__]
library = next(folder for folder in sys.path if os.path.exists(folder + "/tarfile.py"))
MISSING = rlf_driver.prepare(Host, library, warm)
# componentize-py looks them up by name until the build is over.
sys.modules.update(rlf_app=this, interpreter=interpreter)
memory.keep_all()
