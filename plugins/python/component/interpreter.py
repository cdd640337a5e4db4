"""The resource of `interface interpreter`: componentize-py looks for it in a module of the interface's name."""

import rlf_driver
from rlf_values import files, forget, outcome, pairs, unwrap
from wit_world.exports import interpreter
from wit_world.imports import code, types


class Session(interpreter.Session):
    """A notebook."""

    def __init__(self, session):
        self.session = session

    @classmethod
    def open(cls, language, placed, modules, seed):
        forget()
        return cls(unwrap(rlf_driver.Session.open(language, pairs(placed), pairs(modules), seed)))

    def execute(self, source, limits):
        ended, value, displays = unwrap(self.session.execute(source, tuple(vars(limits).values())))
        return code.Cell(outcome(ended), value, [types.Blob(*display) for display in displays])

    def fetch(self, paths):
        return files(self.session.fetch(paths))
