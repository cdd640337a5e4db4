"""Tests of plugins, natively: calls with JSON as the host makes them, and trajectories to grade.

    from rlf import testing
    import dice

    def test_no_dice_is_a_failure_that_says_why():
        assert "at least one" in testing.call("roll", {"count": 0}).text

Calls go through the same code as in the sandbox. There the host checks arguments against the schema before a call;
here they are only converted.
"""

import dataclasses
import json
from typing import Any

from . import gates, rewards, setup, tools
from .errors import Failure
from .observations import part
from .setup import bind
from .trajectories import Call, Grading, MalformedCall, Message, Outcome, Task, Trajectory, Turn

__all__ = ["TrajectoryBuilder", "answer_programs", "answer_questions", "answer_requests", "answer_tools", "bind", "call", "context", "forget", "grade", "init", "schema", "task", "trajectory"]


@dataclasses.dataclass(frozen=True)
class Result:
    """What a model reads of a call."""

    text: str
    failed: bool
    metrics: dict[str, float]

    def json(self):
        """The text, parsed as JSON."""
        return json.loads(self.text)


def init(config=None):
    """Calls the function with `@rlf.init`."""
    setup.initialise(config or {})


def answer_tools(function):
    """Has `function(name, arguments)` answer calls of other tools, as through the gate `tools`. It returns what the tool would show,
    text or JSON, or a `rlf.ToolResult`, or raises `rlf.GateError`."""

    def answered(request):
        name, arguments = request
        shown = function(name, json.loads(json.dumps(arguments)))
        if isinstance(shown, gates.ToolResult):
            return shown
        if isinstance(shown, str):
            return gates.ToolResult("ok", shown)
        return gates.ToolResult("ok", json.dumps(shown), [shown])

    gates.stand_in("tools.invoke", answered)


def answer_programs(function):
    """Has `function(program)` run programs, as through the gate `execute`. It returns a `rlf.Report`, or what was printed."""

    def answered(program):
        report = function(program)
        return gates.Report("ok", "completed", report) if isinstance(report, str) else report

    gates.stand_in("execute.run", answered)


def answer_requests(function):
    """Has `function(request)` answer HTTP requests, as through the gate `http`. It returns a `rlf.Response`."""
    gates.stand_in("http.fetch", function)


def answer_questions(function):
    """Has `function(question)` answer for language models, as through the gate `model`. It returns a text, or a `rlf.Answer`. A question
    of `rlf.chat` has its request in `question.chat`."""

    def answered(question):
        answer = function(question)
        return gates.Answer(answer) if isinstance(answer, str) else answer

    gates.stand_in("model.ask", answered)


def forget():
    """Forgets every tool, reward, data slot and answer, so that a test can load another file."""
    setup.forget()
    gates.forget()
    tools.registered().clear()
    rewards.registered().clear()


def context(**facts):
    """The facts about a call; those that are not given have their defaults."""
    return dataclasses.asdict(tools.Context(**facts))


def call(name, arguments=None, **facts):
    """Calls a tool with arguments that JSON has. `facts` are fields of `rlf.Context`. A bug in the tool raises."""
    try:
        tool = tools.registered()[name]
    except KeyError:
        raise LookupError(f"there is no tool {name!r}; there are: {', '.join(tools.registered()) or 'none'}") from None
    arguments = json.loads(json.dumps(arguments or {}))
    try:
        observation = tool.call(arguments, tools.Context(**facts))
    except Failure as failed:
        return Result(str(failed), True, {})
    parts = [part(one) for one in observation.content]
    text = "".join(one.get("text", one.get("structured", "")) for one in parts)
    return Result(text, observation.failed, observation.metrics)


def schema(name):
    """The JSON Schema of a tool's arguments."""
    return tools.registered()[name].input_schema


def task(reference, prompt="", **fields):
    """A task with a reference."""
    prompt = [Message("user", prompt)] if prompt else []
    return Task(**{"id": "task", "source": "test", "prompt": prompt, "reference": reference, "extra": {}, **fields})


def trajectory():
    """Begins a trajectory: `trajectory().called("add", {"a": 1}, "3").answered("3")`."""
    return TrajectoryBuilder()


class TrajectoryBuilder:
    """A trajectory that grows by what the model does."""

    def __init__(self):
        self._events = []

    def called(self, name, arguments, result, ended="ok"):
        """The model calls a tool in a turn of its own, and reads the result."""
        call_id = f"call-{len(self._events)}"
        self._turn(calls=[Call(call_id, name, arguments)])
        structured = [] if isinstance(result, (str, type(None))) else [result]
        text = json.dumps(result) if structured else result
        self._events.append(Outcome(call_id, ended, text, structured, None))
        return self

    def malformed(self, text, diagnostic="bad-json"):
        """The model writes a call that cannot be parsed."""
        self._turn(text=text, malformed=[MalformedCall(text, diagnostic)])
        return self

    def said(self, text):
        """The model writes text without a call."""
        self._turn(text=text, visible=text)
        return self

    def answered(self, answer, **fields):
        """The model answers: this is the trajectory."""
        self._turn(text=f"<answer>{answer}</answer>", visible=f"<answer>{answer}</answer>")
        return self.ended(answer=answer, **fields)

    def ended(self, finish="answered", answer=None, final_state=None, verdict=None, extra=None):
        """The trajectory as it is, without a further turn."""
        tools = sorted({call.name for event in self._events if isinstance(event, Turn) for call in event.calls})
        return Trajectory("trajectory", tools, self._events, answer, finish, final_state, verdict, extra or {})

    def _turn(self, text="", visible="", calls=(), malformed=()):
        self._events.append(Turn(text, None, visible, list(calls), list(malformed), len(text.split())))


def grade(task: Task, *group: Trajectory, **grading: Any):
    """Grades trajectories of one task by all rewards: for one its terms, a dictionary; for several a list of them.

    What a reward raises is raised.
    """
    scores = rewards.grade(task, list(group), Grading(**grading))
    for score in scores:
        if isinstance(score, Exception):
            raise score
    terms = [score.terms for score in scores]
    return terms[0] if len(terms) == 1 else terms


