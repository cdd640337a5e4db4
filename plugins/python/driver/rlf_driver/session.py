"""A notebook: cells that share the module `__main__`.

As IPython has it: a cell's value is that of its last expression, unless a semicolon follows; `_`, `__` and `___` are the
last three values, `Out` has all and `In` the cells; `display` shows things; `await` works outside of functions.
An exception ends its cell and not the session, and is the cell's result rather than a text on standard error.
"""

from .sound import __builtins__  # isort: skip

import ast
import asyncio
import builtins
import inspect
import sys

from . import display, files, report, run, streams
from .wit import COMPLETED, EXITED, RAISED, REJECTED

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_compile, _eval = compile, eval
_COROUTINE = inspect.CO_COROUTINE
_HINT = (
    "A line that begins with `%`, `!` or `?` is IPython's, and this is Python alone: use the standard library, for "
    "example `time.perf_counter()` for `%time`. There are no shell and no packages to install."
)


class Notebook:
    """One session; an instance has one."""

    def __init__(self, placed, offered, seed):
        files.place(placed, 0)
        run.prepare([""], b"", offered, seed)
        self.main = sys.modules["__main__"]
        self.names = self.main.__dict__
        self.names.update(In=[""], Out={}, _="", __="", ___="", display=display.display)
        builtins.display = display.display
        self.loop = None
        self.count = 0

    def execute(self, code):
        """Runs a cell: outcome, value and displays."""
        self.count += 1
        name = f"<cell {self.count}>"
        self.names["In"].append(code)
        report.remember(name, code)
        shown = display.collect()
        value = None
        try:
            body, last = parse(code, name)
        except BaseException as error:
            error.__traceback__ = None
            if is_magic(code, error):
                error.add_note(_HINT)
            return (REJECTED, report.describe(error)), None, []
        code = error = None
        try:
            for code in body:
                self.step(code)
            if last is not None:
                code, silent = last
                result = self.step(code)
                if result is not None and not silent:
                    self.keep(result)
                    value = report.plain(repr(result))
                    if shown:
                        # From here on the text belongs to the value, not to the last display.
                        shown.append(("text/plain", value.encode()))
                    display.rich(result)
        except BaseException as raised:
            error = raised
        for attempt in run.ATTEMPTS:
            try:
                run.quiet()
                break
            except BaseException:
                # As in `run.run`.
                pass
        if error is None:
            outcome = (COMPLETED,)
        else:
            report.own_frames(error, code)
            if isinstance(error, SystemExit):
                outcome = (EXITED, report.exit_status(error))
            else:
                outcome = (RAISED, report.describe(error))
        streams.flush()
        return outcome, value, list(shown)

    def step(self, code):
        """Evaluates a part of a cell, to its end where it awaits."""
        result = _eval(code, self.names)
        if not code.co_flags & _COROUTINE:
            return result
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(result)

    def keep(self, value):
        """Remembers a cell's value under IPython's names, as far as the program has not taken them."""
        names = self.names
        names["Out"][self.count] = value
        names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), value
        names[f"_{self.count}"] = value


def parse(source, name):
    """The cell as code objects: its statements, and its last expression with whether its value is to be silent."""
    tree = _compile(source, name, "exec", _FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        expression = tree.body.pop()
        silent = ends_with_semicolon(source, expression)
        tree_of_last = ast.Expression(expression.value)
        last = _compile(tree_of_last, name, "eval", _FLAGS, dont_inherit=True), silent
    body = [_compile(tree, name, "exec", _FLAGS, dont_inherit=True)] if tree.body else []
    return body, last


def ends_with_semicolon(source, expression):
    """Whether a semicolon follows the last expression: only it, brackets, space and comments can."""
    lines = source.splitlines()[expression.end_lineno - 1 :]
    lines[0] = lines[0].encode()[expression.end_col_offset :].decode()
    return any(";" in line.split("#")[0] for line in lines)


def is_magic(source, error):
    """Whether what does not compile is meant for IPython."""
    if not isinstance(error, SyntaxError) or not error.lineno:
        return False
    lines = source.splitlines()
    line = lines[error.lineno - 1].strip() if error.lineno <= len(lines) else ""
    return line.startswith(("%", "!", "?")) or line.endswith("?")


