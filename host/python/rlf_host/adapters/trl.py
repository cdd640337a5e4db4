"""For TRL: plugins' rewards as `reward_funcs`, and environments as an `environment_factory`.

    from rlf_host import Environment, Plugins
    from rlf_host.adapters.trl import environment_class, reward_func

    trainer = GRPOTrainer(
        model=..., train_dataset=...,                       # with a column `answer`, or `setup` and `reference`
        reward_funcs=[reward_func(Plugins(), "numeric-match", "match", reference="answer")],
        environment_factory=environment_class(Environment("Gym.py")),
    )
"""

import inspect
import json
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import Any, Optional

from .. import AnswerRule, Environment, Error, Plugins, Tool
from ..schemas import PYTHON_TYPES, check_parameter, default_of, simple_property


def reward_func(
    plugins: Plugins, reward: str, term: str, *, reference: str = "answer", answer: AnswerRule = "final-turn"
) -> Callable[..., Awaitable[list[Optional[float]]]]:
    """One term of a reward as a reward function. `reference` is the column of the data set that the reward grades against.

    A completion that cannot be graded gets None, which TRL leaves out.
    """

    async def graded(prompts: list[Any], completions: list[Any], **columns: Any) -> list[Optional[float]]:
        rewards: list[Optional[float]] = []
        rows = zip(prompts, columns[reference], completions, strict=True)
        # The completions of one prompt are a group, which a reward grades at once.
        for _, group in groupby(rows, key=lambda row: json.dumps(row[:2], default=str)):
            members = list(group)
            prompt, gold, _ = members[0]
            scores = await plugins.grade_async(
                reward, [row[2] for row in members], reference=gold, prompt=prompt, answer=answer
            )
            rewards.extend(None if score.terms is None else score.term(term) for score in scores)
        return rewards

    graded.__name__ = f"{reward}.{term}"
    return graded


def environment_class(environment: Environment, *, setup: str = "setup", reference: str = "reference") -> type:
    """A class for `environment_factory`: each instance is a session, whose methods are the environment's tools.

    `setup` and `reference` are columns of the data set: objects, or the same as JSON. A column `seed` seeds the session.
    The tools are those that a session begins with. `get_reward` is the environment's verdict, from 0 to 1. If the session
    was lost, or the machine failed, it is None, which TRL leaves out.
    """

    def reset(self: Any, **row: Any) -> Optional[str]:
        if self._session is not None:
            self._session.close()
        self._failed = False
        self._reference = _value(row.get(reference))
        self._session = environment.open(_value(row.get(setup)), seed=int(row.get("seed") or 0))
        said = [message["content"] for message in self._session.messages if message["role"] == "user"]
        return "\n".join(said) or None

    def get_reward(self: Any) -> Optional[float]:
        if self._failed or self._session.lost:
            return None
        try:
            return float(self._session.verify(self._reference).score)
        except Error:
            return None

    members: dict[str, Any] = {"_session": None, "reset": reset, "get_reward": get_reward}
    with environment.open() as session:
        for tool in session.tools.values():
            if tool.name in members:
                raise ValueError(f"tool `{tool.name}` has the name of a method that TRL calls; rename it")
            members[tool.name] = _method(tool)
    return type(environment.name, (), members)


def _value(given: Any) -> Any:
    return json.loads(given) if isinstance(given, str) else given


def _method(tool: Tool) -> Callable[..., str]:
    """A method with the signature and the docstring from which TRL makes the tool's schema again."""

    def method(self: Any, **arguments: Any) -> str:
        result = self._session.call(tool.name, arguments)
        # TRL shows the model what a tool raises, and trains on it, unless there is no reward.
        self._failed = self._failed or result.is_infrastructure
        return str(result.text)

    properties = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", [])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", kind)]
    lines = [tool.description or tool.name, "", "Args:"] if properties else [tool.description or tool.name]
    annotations: dict[str, type] = {"return": str}
    # Parameters without a default come first.
    for name in sorted(properties, key=lambda name: name not in required):
        check_parameter(tool, name)
        simple = simple_property(properties[name])
        annotations[name] = PYTHON_TYPES[simple["type"]]
        default = inspect.Parameter.empty if name in required else default_of(properties[name])
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotations[name]))
        choices = f" (choices: {json.dumps(simple['enum'])})" if "enum" in simple else ""
        lines.append(f"    {name}: {simple.get('description') or name}{choices}")
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join(lines)
    method.__annotations__ = annotations
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method
