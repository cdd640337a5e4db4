"""Plugins: their tools and their rewards."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Optional

from . import _native, _pending, _process
from ._native import GradeError, LoadError
from .messages import Conversation, conversation, dumps

#: How the answer is found in the model's last message: all of it, `<answer>..</answer>`, or `\\boxed{..}`.
AnswerRule = Literal["final-turn", "tag", "boxed"]


@dataclass(frozen=True)
class Tool:
    """A tool that a model may call.

    Attributes:
        name: The name that models see.
        description: The description for the model.
        input_schema: A JSON Schema of its arguments.
        output_schema: A JSON Schema of its structured result, if it always has one.
        read_only: It promises that it has no side effects.
        idempotent: It promises that repeating a call changes nothing more.
        deterministic: It promises that the same arguments give the same result.
        open_world: It talks to systems outside the sandbox.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: Optional[dict[str, Any]] = None
    read_only: bool = False
    idempotent: bool = False
    deterministic: bool = False
    open_world: bool = False

    @classmethod
    def _from_json(cls, definition: dict[str, Any]) -> "Tool":
        hints = {name.replace("-", "_"): value for name, value in definition["hints"].items()}
        return cls(
            definition["name"],
            definition["description"],
            definition["input-schema"],
            definition.get("output-schema"),
            **hints,
        )

    def openai(self) -> dict[str, Any]:
        """The tool as chat completions and chat templates take it."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class ToolResult:
    """The result of a call.

    Attributes:
        ended: `ok`, `failed`, `invalid-arguments`, `timeout`, `memory-limit`, `output-limit`, `trap`, `exited`, `denied`,
            `unavailable` or `cancelled`.
        fault: Who caused the end: `none` if the call ended well, otherwise `model`, `plugin`, `infrastructure` or `nobody`. After
            an infrastructure failure the trajectory must be left out, never scored 0.
        text: What the model reads; None after an infrastructure failure.
        content: The parts of that text, as the host keeps them: `{"text": ..}`, `{"structured": ..}`, `{"image": ..}`.
        metrics: Numbers for logs.
        detail: The limit or the error, for people. The model must not read it.
        step_reward: The reward of this step, from an environment that rewards steps.
        state_hash: A hash of the environment's state after the call.
        wall_seconds: Real time, waiting for an instance included.
    """

    ended: str
    fault: str
    text: Optional[str]
    content: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    detail: Optional[str] = None
    step_reward: Optional[float] = None
    state_hash: Optional[str] = None
    wall_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if the tool answered and does not report a failure."""
        return self.ended == "ok"

    @property
    def is_infrastructure(self) -> bool:
        """True if the machine failed. The trajectory must not be scored."""
        return self.fault == "infrastructure"

    @classmethod
    def _from_outcome(cls, outcome: dict[str, Any]) -> "ToolResult":
        seen = outcome["observation"]
        return cls(
            ended=outcome["ended"],
            fault=outcome["fault"],
            text=outcome["text"],
            content=seen["content"] if seen else [],
            metrics={metric["name"]: metric["value"] for metric in (seen or {}).get("metrics", ())},
            detail=outcome.get("detail"),
            step_reward=outcome.get("step-reward"),
            state_hash=outcome.get("state"),
            wall_seconds=outcome["wall-us"] / 1e6,
        )


@dataclass(frozen=True)
class Score:
    """A reward's score of one trajectory.

    Attributes:
        terms: The values of its terms, by their names; None if the trajectory could not be graded. Leave it out then,
            and do not score it 0.
        per_event: Credit for single events: index of the event, term, value.
        metrics: Numbers for logs.
        error: The reason why there are no terms.
    """

    terms: Optional[dict[str, float]]
    per_event: list[tuple[int, str, float]]
    metrics: dict[str, float]
    error: Optional[str]

    def term(self, name: str) -> float:
        """The value of a term.

        Raises:
            GradeError: The trajectory could not be graded.
            LookupError: The reward has no such term.
        """
        if self.terms is None:
            raise GradeError(self.error)
        if name not in self.terms:
            raise LookupError(f"the reward has no term `{name}`; it has: {', '.join(self.terms)}")
        return self.terms[name]


class Plugins:
    """Plugins of several directories, loaded once.

    A plugin directory contains components (`*.wasm`), folders with a `plugin.toml`, and Python or JavaScript files with
    tools or rewards. The first use of a plugin on a machine compiles it; later ones find it in the cache.

        >>> plugins = Plugins(only=["calculator", "numeric-match"])
        >>> plugins.call("calculate", {"expression": "(2+3)*4"}).text
        '20'
        >>> plugins.grade("numeric-match", ["21", "It is 20."], reference="20")[1].term("match")
        1.0

    Args:
        *directories: Plugin directories. The ones that ship with the package come after them.
        grants: What the plugins are granted: the table `[plugins]` of a configuration, by the plugins' names.
        only: The names of the plugins to load. Default: all.
        strict: If true, a plugin of your own directories that cannot be loaded is an error. Others are among `problems`.

    Raises:
        LoadError: A plugin of your own directories cannot be loaded, or the sandbox cannot be started.
        LookupError: There is no plugin with a name in `only`.
        ValueError: The grants are invalid.
    """

    def __init__(
        self,
        *directories: str | os.PathLike[str],
        grants: Optional[Mapping[str, Any]] = None,
        only: Optional[Iterable[str]] = None,
        strict: bool = True,
    ) -> None:
        if isinstance(only, str):
            raise TypeError(f"only={only!r}: give a list of names")
        _process.start()
        names = None if only is None else set(only)
        table = json.dumps(grants or {}, default=os.fspath)
        loaded = _native.load(_process.directories(directories), table, names)
        self._native: _native.Plugins = loaded.wait()
        unknown = (names or set()) - self._native.names()
        if unknown:
            raise LookupError(f"there is no plugin {', '.join(sorted(unknown))} in {', '.join(_process.directories(directories))}")
        own = [Path(directory) for directory in directories]
        missing = [
            text
            for _, path, text in self._native.problems()
            if any(Path(path).is_relative_to(directory) for directory in own)
        ]
        if strict and missing:
            raise LoadError("; ".join(missing))

    @property
    def problems(self) -> dict[str, str]:
        """The plugins that were not loaded, by their names, each with the reason and how to mend it."""
        return {name: text for name, _, text in self._native.problems()}

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools, by their names, in the order in which models see them."""
        tools = map(Tool._from_json, json.loads(self._native.tools()))
        return {tool.name: tool for tool in tools}

    def select(self, names: Optional[Iterable[str]] = None) -> list[Tool]:
        """The tools with these names, in this order. Without names, all.

        Raises:
            LookupError: There is no such tool.
        """
        tools = self.tools
        chosen = list(tools if names is None else names)
        for name in chosen:
            if name not in tools:
                raise LookupError(f"there is no tool `{name}`; there are: {', '.join(tools)}")
        return [tools[name] for name in chosen]

    @property
    def rewards(self) -> list[str]:
        """The names of the rewards."""
        return self._native.rewards()

    @property
    def environments(self) -> list[str]:
        """The names of the environments. `Environment(name, plugins=plugins)` opens one."""
        return self._native.environments()

    @property
    def languages(self) -> list[str]:
        """The languages in which programs can run. `Sandbox(language, plugins=plugins)` runs them."""
        return self._native.languages()

    def _call(
        self, name: str, arguments: Mapping[str, Any], seed: int, trajectory_id: str, turn: int, index: int
    ) -> _native.Pending:
        return self._native.call(name, dumps(arguments), seed, trajectory_id, turn, index)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        seed: int = 0,
        trajectory_id: str = "python",
        turn: int = 0,
        index: int = 0,
    ) -> ToolResult:
        """Calls a tool in a fresh instance. However the call ends, the result says so.

        Args:
            name: The tool's name.
            arguments: Its arguments. They are checked against the tool's schema.
            seed: Seed of all randomness. Calls with the same seed, trajectory, turn and index give the same result.
            trajectory_id: Name of the trajectory that the call belongs to.
            turn: Number of the turn.
            index: Number of the call in its turn.

        Raises:
            LookupError: There is no such tool.
        """
        return _pending.wait(self._call(name, arguments, seed, trajectory_id, turn, index), _tool_result)

    async def call_async(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        seed: int = 0,
        trajectory_id: str = "python",
        turn: int = 0,
        index: int = 0,
    ) -> ToolResult:
        """Like `call`, for asyncio. Cancelling the task stops the call."""
        return await _pending.settle(self._call(name, arguments, seed, trajectory_id, turn, index), _tool_result)

    def call_many(
        self, calls: Iterable[tuple[str, Mapping[str, Any]]], *, seed: int = 0, trajectory_id: str = "python", turn: int = 0
    ) -> list[ToolResult]:
        """Makes the calls of one turn at once and returns their results in order."""
        return _pending.gather(self._calls(calls, seed, trajectory_id, turn), _tool_result)

    async def call_many_async(
        self, calls: Iterable[tuple[str, Mapping[str, Any]]], *, seed: int = 0, trajectory_id: str = "python", turn: int = 0
    ) -> list[ToolResult]:
        """Like `call_many`, for asyncio."""
        return await _pending.gather_async(self._calls(calls, seed, trajectory_id, turn), _tool_result)

    def _calls(
        self, calls: Iterable[tuple[str, Mapping[str, Any]]], seed: int, trajectory_id: str, turn: int
    ) -> Iterator[_native.Pending]:
        for index, (name, arguments) in enumerate(calls):
            yield self._call(name, arguments, seed, trajectory_id, turn, index)

    def _grade(self, reward: str, conversations: Sequence[Conversation], order: dict[str, Any]) -> _native.Pending:
        if isinstance(conversations, (str, Mapping)):
            raise TypeError("grade takes a list of attempts; for one attempt, put it into a list")
        order["conversations"] = [conversation(given) for given in conversations]
        return self._native.grade(reward, json.dumps(order))

    def grade(
        self,
        reward: str,
        conversations: Sequence[Conversation],
        *,
        reference: Any,
        prompt: Conversation = (),
        answer: AnswerRule = "final-turn",
        extra: Optional[Mapping[str, Any]] = None,
        task_id: str = "task",
        source: str = "",
        split: Literal["train", "validation", "test"] = "train",
        step: int = 0,
        steps: int = 0,
        seed: int = 0,
    ) -> list[Score]:
        """Grades attempts at one task with one reward, and returns their scores in order.

        Args:
            reward: The reward plugin's name.
            conversations: The attempts: each a text, which is the model's only message, or messages in the form of
                OpenAI's chat completions. Text in think blocks is never taken for an answer.
            reference: The task's answer, tests or end state, as the reward expects it.
            prompt: The task's messages, if the reward reads them.
            answer: How the answer is found in the model's last message.
            extra: Other values of the task, for rewards that read them.
            task_id: The task's id.
            source: The name of its data set.
            split: The split that the task is from.
            step: Number of the training step, for rewards with a schedule.
            steps: Number of steps of the run.
            seed: Seed of the run.

        Raises:
            LookupError: There is no such reward.
        """
        order = _order(reference, prompt, answer, extra, task_id, source, split, step, steps, seed)
        return _pending.wait(self._grade(reward, conversations, order), _scores)

    async def grade_async(
        self,
        reward: str,
        conversations: Sequence[Conversation],
        *,
        reference: Any,
        prompt: Conversation = (),
        answer: AnswerRule = "final-turn",
        extra: Optional[Mapping[str, Any]] = None,
        task_id: str = "task",
        source: str = "",
        split: Literal["train", "validation", "test"] = "train",
        step: int = 0,
        steps: int = 0,
        seed: int = 0,
    ) -> list[Score]:
        """Like `grade`, for asyncio."""
        order = _order(reference, prompt, answer, extra, task_id, source, split, step, steps, seed)
        return await _pending.settle(self._grade(reward, conversations, order), _scores)


def _order(
    reference: Any,
    prompt: Conversation,
    answer: str,
    extra: Optional[Mapping[str, Any]],
    task_id: str,
    source: str,
    split: str,
    step: int,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else conversation(prompt)
    task = {
        "id": task_id,
        "source": source,
        "prompt": messages,
        "reference": reference,
        "extra": dict(extra or {}),
    }
    return {"task": task, "answer": answer, "split": split, "step": step, "steps": steps, "seed": seed}


def _tool_result(text: str) -> ToolResult:
    return ToolResult._from_outcome(json.loads(text))


def _scores(text: str) -> list[Score]:
    scores = json.loads(text)
    for score in scores:
        score["per_event"] = [tuple(credit) for credit in score["per_event"]]
    return [Score(**score) for score in scores]
