"""Stateful environments: a session for each trajectory that acts in one."""

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from . import _native, _pending, _process
from .messages import dumps, readable
from .plugins import Plugins, Tool, ToolResult

_numbers = itertools.count()


@dataclass(frozen=True)
class Verdict:
    """An environment's judgement of its final state.

    Attributes:
        success: True if the task was solved.
        score: From 0 to 1.
        reason: An explanation for people.
    """

    success: bool
    score: float
    reason: str


@dataclass(frozen=True)
class Reply:
    """The reply of an environment's user to the model.

    Attributes:
        text: The user's words; None if the user says nothing or has left.
        step_reward: The reward of this step, from an environment that rewards steps.
    """

    text: Optional[str]
    step_reward: Optional[float]


class Environment:
    """An environment whose sessions are independent of each other.

        environment = Environment("Gym.py")
        with environment.open() as session:
            result = session.call("Gym-find_member", {"name": "Ada"})
            state = session.state()

    Args:
        source: A Python file or a folder of them, a specification, a component, or the name of an environment plugin.
        plugins: Loaded plugins, for an environment by its name. Default: the shipped one of that name.

    Raises:
        LookupError: There is no such environment.
        LoadError: It cannot be loaded. The message says why and how to mend it.
    """

    def __init__(self, source: str | os.PathLike[str], *, plugins: Optional[Plugins] = None) -> None:
        _process.start()
        servers: list[str] = []
        if plugins is not None:
            self.name, self._native = os.fspath(source), plugins._native
        elif Path(source).exists():
            self.name, servers, self._native = _native.load_environment(source, _process.directories(())).wait()
        else:
            self.name = os.fspath(source)
            self._native = _native.load(_process.directories(()), "{}", {self.name}).wait()
        if self.name not in self._native.environments():
            problems = [text for name, _, text in self._native.problems() if name == self.name]
            if problems:
                raise _native.LoadError(problems[0])
            raise LookupError(f"there is no file or folder {self.name}, and no environment of that name")
        self._setup: dict[str, Any] = {"servers": dict.fromkeys(servers)} if servers else {}

    def _open(self, setup: Optional[Mapping[str, Any]], seed: int, trajectory_id: Optional[str]) -> _native.Pending:
        trajectory_id = trajectory_id or f"{self.name}-{next(_numbers)}"
        return self._native.open_session(self.name, json.dumps(self._setup if setup is None else setup), seed, trajectory_id)

    def open(
        self, setup: Optional[Mapping[str, Any]] = None, *, seed: int = 0, trajectory_id: Optional[str] = None
    ) -> "Session":
        """Opens a session.

        Args:
            setup: The task's setup, such as its initial state. The model does not see it. Default: for Python files, all
                their servers in their own initial states; else an empty object.
            seed: Seed of all randomness in it.
            trajectory_id: Name of the trajectory that acts in it.

        Raises:
            ValueError: The environment refuses the setup.
            SessionError: It broke while it opened.
            Unavailable: The machine had no room or no time for it.
        """
        return _pending.wait(self._open(setup, seed, trajectory_id), Session)._looked()

    async def open_async(
        self, setup: Optional[Mapping[str, Any]] = None, *, seed: int = 0, trajectory_id: Optional[str] = None
    ) -> "Session":
        """Like `open`, for asyncio."""
        session = await _pending.settle(self._open(setup, seed, trajectory_id), Session)
        return await session._looked_async()


class Session:
    """One trajectory's copy of an environment. Made by `Environment.open`.

    Its actions run one after the other, in the order in which they were asked for. A call that a limit stops has no
    effect. Cancelling an action ends the session.

    Attributes:
        messages: The environment's first messages: `role` and `content`, as chat templates take them.
        tools: The tools on offer now, by their names.
        terminated: True if the environment has ended the episode.
        lost: The reason why the trajectory cannot continue, if there is one.
    """

    messages: list[dict[str, str]]
    tools: dict[str, Tool]
    terminated: bool
    lost: Optional[str]

    def __init__(self, native: _native.Session) -> None:
        self._native = native

    def _set_status(self, text: str) -> "Session":
        status = json.loads(text)
        tools = map(Tool._from_json, status["tools"])
        self.messages = status["messages"]
        self.tools = {tool.name: tool for tool in tools}
        self.terminated = status["terminated"]
        self.lost = status["lost"]
        return self

    def _looked(self) -> "Session":
        return _pending.wait(self._native.status(), self._set_status)

    async def _looked_async(self) -> "Session":
        return await _pending.settle(self._native.status(), self._set_status)

    def _acted(self, text: str) -> dict[str, Any]:
        acted: dict[str, Any] = json.loads(text)
        self.terminated = acted["terminated"]
        self.lost = acted["lost"]
        return acted

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls one of its tools. However the call ends, the result says so."""
        acted = _pending.wait(self._native.call(name, dumps(arguments)), self._acted)
        if acted["tools_changed"]:
            self._looked()
        return ToolResult._from_outcome(acted["outcome"])

    async def call_async(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Like `call`, for asyncio."""
        acted = await _pending.settle(self._native.call(name, dumps(arguments)), self._acted)
        if acted["tools_changed"]:
            await self._looked_async()
        return ToolResult._from_outcome(acted["outcome"])

    def say(self, text: str) -> Reply:
        """Sends a message of the model that calls no tool, and returns the reply of the environment's user.

        Raises:
            SessionError: The trajectory cannot continue.
        """
        acted = _pending.wait(self._native.say(readable(text)), self._acted)
        if acted["tools_changed"]:
            self._looked()
        return _reply(acted)

    async def say_async(self, text: str) -> Reply:
        """Like `say`, for asyncio."""
        acted = await _pending.settle(self._native.say(readable(text)), self._acted)
        if acted["tools_changed"]:
            await self._looked_async()
        return _reply(acted)

    def state(self) -> Any:
        """The state of the environment."""
        return _pending.wait(self._native.state(), json.loads)

    async def state_async(self) -> Any:
        """Like `state`, for asyncio."""
        return await _pending.settle(self._native.state(), json.loads)

    def verify(self, reference: Any, answer: Optional[str] = None) -> Verdict:
        """The environment's judgement of its state.

        Args:
            reference: What the task expects, in the environment's own form.
            answer: The model's answer, if it gave one.

        Raises:
            ValueError: The environment cannot read the reference.
        """
        return _pending.wait(self._native.verify(answer if answer is None else readable(answer), json.dumps(reference)), _verdict)

    async def verify_async(self, reference: Any, answer: Optional[str] = None) -> Verdict:
        """Like `verify`, for asyncio."""
        return await _pending.settle(self._native.verify(answer if answer is None else readable(answer), json.dumps(reference)), _verdict)

    def snapshot(self) -> bytes:
        """The whole session as bytes, for `restore` in this or another session of the same environment."""
        return _pending.wait(self._native.snapshot(), bytes)

    async def snapshot_async(self) -> bytes:
        """Like `snapshot`, for asyncio."""
        return await _pending.settle(self._native.snapshot(), bytes)

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot. A snapshot that cannot be restored changes nothing.

        Raises:
            ValueError: The snapshot is damaged, or of another environment.
        """
        self._native.restore(snapshot).wait()
        self._looked()

    async def restore_async(self, snapshot: bytes) -> None:
        """Like `restore`, for asyncio."""
        await _pending.settle(self._native.restore(snapshot), json.loads)
        await self._looked_async()

    def close(self) -> None:
        """Frees its instance."""
        self._native.close().wait()

    async def close_async(self) -> None:
        """Like `close`, for asyncio."""
        await _pending.settle(self._native.close(), _nothing)

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reply(acted: dict[str, Any]) -> Reply:
    return Reply(acted["text"], acted["step_reward"])


def _verdict(text: str) -> Verdict:
    return Verdict(**json.loads(text))


def _nothing(_: object) -> None:
    return None
