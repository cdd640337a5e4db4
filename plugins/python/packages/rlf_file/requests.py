"""What a host calls. Each function takes and returns JSON texts, and none raises for a mistake of a plugin or a model."""

import importlib.abc
import importlib.machinery
import json
import linecache
import random
import sys
import traceback
import types

import rlf
from rlf import gates, rewards, setup, tools
from rlf.observations import part
from rlf.trajectories import task_from, trajectory_from

from . import foreign

_INVALID, _NOT_FOUND, _INTERNAL, _EXHAUSTED, _UNAVAILABLE = "invalid-arguments", "not-found", "internal", "exhausted", "unavailable"


_PIECE_BYTES = 1 << 20
_MAX_TEXT = 2000
"""Characters of an exception's text that are told."""


class Failure(str):
    """The text of an error."""


def connect(host):
    """Reads data slots from the host: `entries(slot)` lists paths and sizes, `read(slot, path, offset, length)` reads. `ask(kind,
    requests)` carries out requests to gates."""

    def files(slot):
        return {path: b"".join(_pieces(host, slot, path, size)) for path, size in host.entries(slot)}

    setup.read_with(files)
    gates.ask_with(host.ask)


def _pieces(host, slot, path, size):
    for offset in range(0, size, _PIECE_BYTES):
        yield host.read(slot, path, offset, _PIECE_BYTES)


def load(given):
    """Executes the file of a plugin: `{"file", "source", "beside": {file: source}, "config"}`, as JSON.

    The file can import the files beside it.
    """
    given = json.loads(given)
    random.seed(0)
    if given.get("beside"):
        sys.meta_path.append(Beside(given["beside"]))
    try:
        if any(framework in given["source"] for framework in foreign.FRAMEWORKS):
            foreign.offer()
        module = execute(given["source"], given["file"])
        foreign.adopt(module)
        setup.initialise(given.get("config", {}))
    except BaseException as fault:
        place = _place(fault, given["file"], given.get("beside") or ())
        return _error(_INVALID, f"{place}: {_described(fault)}{_hint(fault)}")
    if {"load_scenario", "save_scenario"} <= set(tools.registered()):
        hint = "tools with `load_scenario` and `save_scenario` are an environment: docs/environments.md"
        return _error(_INVALID, f"{given['file']}: {hint}")
    if not tools.registered() and not rewards.registered():
        hint = "; a class with `reset` is an environment: docs/environments.md" if _has_environment(module) else ""
        return _error(_INVALID, f"{given['file']}: no function has @rlf.tool or @rlf.reward{hint}")
    return "{}"


def _has_environment(module):
    """True if a file has an environment class, as for TRL."""
    classes = (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__)
    return any(callable(getattr(cls, "reset", None)) for cls in classes)


def execute(source, file):
    """Executes a file as a module of its name, and returns the module."""
    name = file.rsplit("/", 1)[-1].removesuffix(".py")
    module = types.ModuleType("plugin" if name in sys.modules or name in sys.stdlib_module_names else name)
    module.__file__ = file
    sys.modules[module.__name__] = module
    _run(source, file, module)
    return module


def _run(source, file, module):
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), vars(module))


class Beside(importlib.abc.Loader):
    """Finds and loads the other files of the plugin's folder."""

    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        if path is None and f"{name}.py" in self.sources:
            return importlib.machinery.ModuleSpec(name, self, origin=f"{name}.py")

    def exec_module(self, module):
        file = module.__spec__.origin
        module.__file__ = file
        _run(self.sources[file], file, module)


def describe():
    """The definitions of the tools, and the names of the rewards."""
    definitions = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.input_schema,
            "output_schema": tool.output_schema,
            "hints": list(tool.hints),
        }
        for tool in tools.registered().values()
    ]
    return _encoded({"tools": definitions, "rewards": list(rewards.registered())})


def call(name, arguments, context):
    """Calls a tool; `arguments` is JSON. Answers the observation."""
    tool = tools.registered().get(name)
    if tool is None:
        return _error(_NOT_FOUND, f"there is no tool {name!r}")
    random.seed(context["seed"])
    try:
        observation = tool.call(json.loads(arguments), rlf.Context(**context))
        content = [part(one) for one in observation.content]
        metrics = [[name, float(value)] for name, value in observation.metrics.items()]
        return _encoded({"content": content, "failed": bool(observation.failed), "metrics": metrics})
    except rlf.Failure as failed:
        return _encoded({"content": [{"text": str(failed)}], "failed": True, "metrics": []})
    except MemoryError:
        return _error(_EXHAUSTED, "the call used up its memory")
    except BaseException as fault:
        return _bug(fault)


def grade(task, group, grading):
    """Grades a group. Answers for each trajectory its score, or the reason why it is excluded."""
    random.seed(grading.get("seed", 0))
    try:
        scores = rewards.grade(task_from(task), [trajectory_from(one) for one in group], rlf.Grading(**grading))
    except BaseException as fault:
        return _bug(fault)
    for score in scores:
        # Not the plugin's doing, so no trajectory is graded without it.
        if isinstance(score, rlf.GateError) and score.kind == _UNAVAILABLE:
            return _error(score.kind, score.message)
    return _encoded([_score(score) for score in scores])


def _score(score):
    if isinstance(score, BaseException):
        _print(score)
        return {"error": _described(score)}
    return {
        "terms": [[name, float(value)] for name, value in score.terms.items()],
        "per_event": [[event, name, float(value)] for event, name, value in score.per_event],
        "metrics": [[name, float(value)] for name, value in score.metrics.items()],
    }


def _bug(fault):
    """The answer about an exception that is a bug. Its traceback goes to the plugin's author."""
    _print(fault)
    if isinstance(fault, rlf.GateError) and fault.kind in (_EXHAUSTED, _UNAVAILABLE):
        return _error(fault.kind, fault.message)
    return _error(_INTERNAL, _described(fault))


def _print(fault):
    """Prints a traceback that begins in the plugin."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("rlf", "rlf_file"):
        trace = trace.tb_next
    traceback.print_exception(type(fault), fault, trace or fault.__traceback__, file=sys.stderr)


def _encoded(value):
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A surrogate on its own has no place in UTF-8.
    return text.encode("utf-8", "replace").decode()


def _error(kind, message):
    return Failure(_encoded({"error": {"kind": kind, "message": message}}))


def _described(fault):
    """`Type: message`, also of an exception that cannot say what it is. `rlf.InvalidPlugin` says enough by its text."""
    try:
        if isinstance(fault, rlf.InvalidPlugin):
            return _short(str(fault))
        if isinstance(fault, MemoryError):
            return "MemoryError: it needs more memory than its limit `memory_bytes`"
        # A syntax error's own text repeats the place.
        return _short(f"{type(fault).__name__}: {fault.msg if isinstance(fault, SyntaxError) else fault}")
    except BaseException:
        return type(fault).__name__


def _short(text):
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + " .."


def _place(fault, file, beside):
    """`file:line`: the innermost line of the plugin's files that the exception passed."""
    place, files = file, {file, *beside}
    trace = fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in files:
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(fault, SyntaxError) and fault.filename in files:
        place = f"{fault.filename}:{fault.lineno}"
    return place


def _hint(fault):
    """Advice about a module that the sandbox does not have."""
    if isinstance(fault, ModuleNotFoundError) and fault.name:
        return f"; the sandbox has the standard library, rlf, pydantic and a part of mcp, but not {fault.name!r}"
    return ""
