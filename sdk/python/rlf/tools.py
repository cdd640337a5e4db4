"""`@rlf.tool`: a function that a model can call."""

import asyncio
import dataclasses
import inspect
import json
import re
import typing

from .docstrings import parsed
from .errors import InvalidPlugin
from .observations import Image, Observation, observation_of, plain
from .schemas import NoSchema, check_function, converted, described, holds, parameters, schema, with_definitions_at_root

_tools = {}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclasses.dataclass(frozen=True)
class Context:
    """Facts about one call, equal in every replay of it. A parameter with this type receives them."""

    call_id: str = "call"
    """Trajectory, turn and index of the call."""
    attempt: int = 0
    """Counts retries from 0."""
    trajectory_id: str = "trajectory"
    turn: int = 0
    seed: int = 0
    """Seeds everything random. `random` is seeded with it already."""
    budget_ms: int = 0
    """The limit of the call's time."""


@dataclasses.dataclass(frozen=True)
class Tool:
    """A function with the definition that a model reads."""

    name: str
    description: str
    input_schema: dict
    output_schema: dict | None
    hints: tuple
    function: object
    parameters: dict
    context: str | None

    def call(self, arguments, context):
        """The observation of a call with arguments from JSON. Raises what the function raises."""
        result = self.result(arguments, context)
        if self.output_schema is not None and not isinstance(result, Observation) and not holds(self.output_schema, plain(result)):
            raise TypeError(f"{self.name} returned {type(result).__name__}, or parts of it, that its annotation does not promise")
        return observation_of(result)

    def result(self, arguments, context):
        """The result of the function for arguments from JSON."""
        values = {name: converted(self.parameters[name], value) for name, value in arguments.items()}
        if self.context is not None:
            values[self.context] = context
        result = self.function(**values)
        if inspect.isawaitable(result):
            result = asyncio.run(awaited(result))
        return result


async def awaited(result):
    """The result of what can be awaited."""
    return await result


def tool(function=None, *, name=None, description=None, read_only=False, idempotent=False, deterministic=False, open_world=False, pure=False):
    """Makes a function a tool. The function stays what it is, so a test can call it.

    The model reads the function's name, the text of its docstring before the first section, and a JSON Schema made from
    the annotations. A section `Args:` of the docstring describes the parameters.

    Args:
        name: Another name for the model.
        description: Another description for the model.
        read_only: It has no side effects.
        idempotent: Repeating a call with the same arguments changes nothing more.
        deterministic: The same arguments give the same result, whatever the seed. The host may cache it.
        open_world: It talks to systems outside the sandbox. Its results are never cached.
        pure: It is read-only, idempotent and deterministic.
    """

    def register(function):
        check_function("tool", function)
        hints = {
            "read-only": read_only or pure,
            "idempotent": idempotent or pure,
            "deterministic": deterministic or pure,
            "open-world": open_world,
        }
        made = made_from(function, name, description, tuple(hint for hint, given in hints.items() if given))
        if made.name in _tools:
            raise InvalidPlugin(f"there are two tools named {made.name!r}; give one another with @rlf.tool(name=..)")
        _tools[made.name] = made
        return function

    return register if function is None else register(function)


def made_from(function, name=None, description=None, hints=()):
    """The `Tool` of a function."""
    name = name or function.__name__
    if not _NAME.fullmatch(name):
        raise InvalidPlugin(f"{name!r} cannot name a tool; use 1 to 64 of a-z A-Z 0-9 _ -")
    text, about = parsed(function)
    properties, required, annotations, context = {}, [], {}, None
    for parameter in parameters(function):
        if parameter.annotation is Context or Context in typing.get_args(parameter.annotation):
            if context is not None:
                raise InvalidPlugin(f"{name}: {context!r} and {parameter.name!r} are both the rlf.Context; keep one")
            context = parameter.name
            continue
        try:
            found = schema(parameter.annotation)
        except NoSchema as why:
            raise InvalidPlugin(f"{name}: parameter {parameter.name!r}: {why}") from None
        default = parameter.default
        if type(default).__module__.partition(".")[0] == "pydantic":
            raise InvalidPlugin(f"{name}: parameter {parameter.name!r}: write `{parameter.name}: Annotated[.., Field(..)] = ..`")
        if default is parameter.empty:
            required.append(parameter.name)
            default = dataclasses.MISSING
        properties[parameter.name] = described(found, about.get(parameter.name), default)
        annotations[parameter.name] = parameter.annotation
    if unknown := sorted(set(about) - set(properties) - {context}):
        raise InvalidPlugin(f"{name}: the docstring describes {unknown[0]!r}, which is not a parameter")
    inputs = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    try:
        inputs = with_definitions_at_root(inputs)
    except NoSchema as why:
        raise InvalidPlugin(f"{name}: {why}") from None
    return Tool(name, description or text, inputs, _output_schema(function), hints, function, annotations, context)


def _output_schema(function):
    """The schema of a result that is always an object, or `None`. Results may have fields that arguments may not."""
    try:
        annotation = inspect.signature(function, eval_str=True).return_annotation
        # They say how a result is shown, and nothing of its value.
        if annotation in (Observation, Image):
            return None
        found = with_definitions_at_root(schema(annotation)) if annotation is not inspect.Signature.empty else {}
    except (NoSchema, NameError):
        return None
    if found.get("type") != "object":
        return None
    return json.loads(json.dumps(found), object_hook=_opened)


def _opened(found):
    """A schema that allows further fields."""
    return {key: value for key, value in found.items() if (key, value) != ("additionalProperties", False)}


def registered():
    """The tools that were made so far, by name."""
    return _tools
