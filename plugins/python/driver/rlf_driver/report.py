"""The end of a program, reported as python3 does."""

from .sound import __builtins__  # isort: skip

import linecache
import sys
import traceback

from .wit import EXITED, RAISED

_TracebackException = traceback.TracebackException
_excepthook = sys.excepthook
_unraisablehook = sys.unraisablehook
_cache = linecache.cache
_modules = sys.modules
_standard_modules = sys.stdlib_module_names
_ABSENT = object()

packages = ()
"""Names, for people, of the packages that programs can import beside the standard library."""

_UNSEEN = {f"{__package__}.{name}" for name in ("alarm", "machine", "passwords", "resource", "zones")}
"""Modules of the driver that stand in for parts of the library. Tracebacks do not show their frames."""


def _type_of_ignored():
    """The type of what `sys.unraisablehook` is given, which has no name anywhere."""

    class Failing:
        def __del__(self):
            raise ValueError

    seen = []
    sys.unraisablehook = lambda ignored: seen.append(type(ignored))
    try:
        Failing()
    finally:
        sys.unraisablehook = _unraisablehook
    return seen[0]


_Ignored = _type_of_ignored()


class Source(str):
    """A text whose lines are counted as the compiler counts them: a form feed ends none."""

    def splitlines(self, keepends=False):
        lines = self.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        return [line + "\n" for line in lines] if keepends else lines


def remember(name, source):
    """Lets tracebacks show lines of `source`, which was compiled under `name`."""
    if name.startswith("<"):
        # Under such a name no source is looked up lazily.
        _cache[name] = (len(source), None, Source(source).splitlines(True), name)
    else:
        _cache[name] = (lambda: Source(source),)


def add_line(error, name, source):
    """Gives a syntax error the line that it is about. The compiler's own errors read it from a file, which does not exist."""
    if isinstance(error, SyntaxError) and error.text is None and error.filename == name and error.lineno:
        error.text = "".join(Source(source).splitlines(True)[error.lineno - 1 : error.lineno]) or None


def own_frames(error, code):
    """Takes the frames that led to `code` out of the traceback: a program's begins with itself. Frames of `_UNSEEN` go, too,
    such as those that led to the handler of an alarm."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code is not code:
        step = step.tb_next
    error.__traceback__ = step
    while step is not None:
        while step.tb_next is not None and step.tb_next.tb_frame.f_globals.get("__name__") in _UNSEEN:
            step.tb_next = step.tb_next.tb_next
        step = step.tb_next


def describe(error):
    """The exception as `(kind, message, traceback)`."""
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "<exception str() failed>"
    try:
        text = "".join(_TracebackException(type(error), error, error.__traceback__, compact=True).format())
    except BaseException:
        text = f"{kind}: {message}\n" if message else f"{kind}\n"
    try:
        text += what_is_there(error)
    except BaseException:
        # The program's own exception class may fail when it is asked for its name.
        pass
    return plain(kind), plain(message), plain(text)


def what_is_there(error):
    """The line that follows the traceback of a failed import: what can be imported instead. Empty for other exceptions."""
    name = getattr(error, "name", None)
    if name == "tools" and isinstance(error, ImportError):
        opened = sys.modules.get(name)
        if hasattr(opened, "ToolError"):
            return f"The tools are: {', '.join(opened.__all__)}.\n"
    if not isinstance(error, ModuleNotFoundError) or not isinstance(name, str):
        return ""
    package = name.partition(".")[0]
    if package in _modules:
        return ""
    if package in _standard_modules:
        return f"The sandbox does not have {package!r} of the standard library.\n"
    there_are = ", ".join(["the standard library", *packages])
    return f"The sandbox has {there_are} and the program's own files. Nothing can be installed.\n"


def plain(text):
    """`text` without what UTF-8 cannot carry."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def uncaught(error):
    """Shows `error` as python3 does at its end. Returns its description, and the exit of a hook that exits, if it does."""
    description, exit = describe(error), None
    hook = getattr(sys, "excepthook", _ABSENT)
    if hook is _ABSENT:
        show("sys.excepthook is missing\n" + description[2])
    elif hook is _excepthook:
        show(description[2])
    else:
        try:
            hook(type(error), error, error.__traceback__)
        except SystemExit as raised:
            exit = raised
        except BaseException as another:
            another.__context__ = None
            own_frames(another, getattr(hook, "__code__", None))
            show("Error in sys.excepthook:\n" + describe(another)[2] + "\nOriginal exception was:\n" + description[2])
    return description, exit


def ignored(error, message, about):
    """Shows an exception that nobody can catch; `message` and `about` are what python3 has in `sys.unraisablehook`."""
    hook = getattr(sys, "unraisablehook", None) or _unraisablehook
    try:
        hook(_Ignored((type(error), error, error.__traceback__, message, about)))
    except BaseException as another:
        another.__context__ = None
        seen = (type(another), another, another.__traceback__.tb_next, "Exception ignored in sys.unraisablehook", hook)
        try:
            _unraisablehook(_Ignored(seen))
        except BaseException:
            # Without a standard error python3 is silent too.
            pass


def show(text):
    """Prints on the program's standard error, whatever that is by now."""
    try:
        sys.stderr.write(text)
    except BaseException:
        # Without a standard error python3 is silent too.
        pass


def exit_status(error):
    """The status that `SystemExit` asks for; anything but a number or None is shown and means 1."""
    try:
        status = error.code
    except BaseException:
        status = 1
    if status is None:
        return 0
    if isinstance(status, int):
        status = int(status)
        if not -(2**63) <= status < 2**63:
            return -1
        # As a C program passes it on: the lowest 32 bits, with a sign.
        return (status + 2**31) % 2**32 - 2**31
    try:
        text = str(status)
    except BaseException:
        text = ""
    show(text + "\n")
    return 1


def outcome(error):
    """The outcome of a program that ended with `error`, which is shown."""
    if isinstance(error, SystemExit):
        return (EXITED, exit_status(error))
    description, exit = uncaught(error)
    return (RAISED, description) if exit is None else (EXITED, exit_status(exit))
