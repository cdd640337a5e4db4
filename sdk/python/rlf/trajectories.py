"""What a reward is given: a task, and the trajectory of an attempt at it."""

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Message:
    """A message, such as the task's prompt."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    text: str
    """Its text, with a placeholder in the place of an image, audio or a file."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A call to a tool, as the model wrote it."""

    call_id: str
    name: str
    arguments: Any


@dataclasses.dataclass(frozen=True)
class MalformedCall:
    """Text of the model that could not be parsed as a call."""

    text: str
    diagnostic: str
    """What is wrong, such as `bad-json`."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """One turn of the model, parsed by the host."""

    text: str
    """Exactly as decoded, special tokens included."""
    reasoning: str | None
    """The text inside the think block, if there was one."""
    visible: str
    """The text outside think blocks and calls."""
    calls: list[Call]
    malformed: list[MalformedCall]
    tokens: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The end of a call."""

    call_id: str
    ended: str
    """`ok`, `failed`, `invalid-arguments`, `timeout`, `memory-limit`, `output-limit`, `trap`, `exited`, `denied`,
    `unavailable` or `cancelled`."""
    text: str | None
    """What the model read, if anything."""
    structured: list[Any]
    """The parts of the observation that are JSON, parsed."""
    step_reward: float | None
    """The environment's reward for the call, if it rewards steps."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """An environment's judgement of its final state."""

    success: bool
    score: float
    reason: str


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of a data set."""

    id: str
    source: str
    """The name of the data set."""
    prompt: list[Message]
    reference: Any
    """The data set's answer, tests or end state."""
    extra: dict[str, Any]
    """Further columns of the data set."""

    def accepted_answers(self):
        """The answers that the reference accepts: a text, a number or a boolean, a list of them, or an object with one of
        them under `target`, `answer`, `answers`, `ground_truth` or `text`."""
        answers = list(_answers(self.reference))
        if not answers:
            raise ValueError("the task's reference lists no answers")
        return answers


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """One attempt at a task."""

    id: str
    tools: list[str]
    """The names of the tools that the model had."""
    events: list[Turn | Outcome | Message]
    """Turns of the model, ends of calls, and messages of a user, in order."""
    answer: str | None
    """The final answer, which the host took from the model's own text outside the think block."""
    finish: str
    """`answered`, `terminated`, `max-turns`, `length` or `aborted`."""
    final_state: Any
    """The environment's final state, or `None`."""
    verdict: Verdict | None
    """The environment's verdict, or `None`."""
    extra: dict[str, Any]

    def turns(self):
        """The model's turns, in order."""
        return [event for event in self.events if isinstance(event, Turn)]

    def outcomes(self):
        """The ends of calls, in order."""
        return [event for event in self.events if isinstance(event, Outcome)]

    def calls(self):
        """The calls of all turns, in order."""
        return [call for turn in self.turns() for call in turn.calls]


@dataclasses.dataclass(frozen=True)
class Grading:
    """The moment of training, for rewards with a schedule."""

    split: str = "train"
    """`train`, `validation` or `test`."""
    step: int = 0
    steps: int = 0
    """Planned steps of the run; 0 outside training."""
    seed: int = 0


def task_from(given):
    """A task in the form in which the host sends it."""
    prompt = [message_from(message) for message in given["prompt"]]
    return Task(given["id"], given["source"], prompt, json.loads(given["reference"]), _extra(given["extra"]))


def trajectory_from(given):
    """A trajectory in the form in which the host sends it."""
    verdict = given["verdict"]
    return Trajectory(
        id=given["id"],
        tools=given["tools"],
        events=[_event(event) for event in given["events"]],
        answer=given["answer"],
        finish=given["finish"],
        final_state=None if given["final_state"] is None else json.loads(given["final_state"]),
        verdict=None if verdict is None else Verdict(**verdict),
        extra=_extra(given["extra"]),
    )


_ANSWER_KEYS = ("target", "answer", "answers", "ground_truth", "text")
"""Keys under which data sets keep the answer."""


def _answers(reference):
    if isinstance(reference, str):
        yield reference
    elif isinstance(reference, bool):
        yield "yes" if reference else "no"
    elif isinstance(reference, (int, float)):
        yield json.dumps(reference)
    elif isinstance(reference, list):
        for item in reference:
            yield from _answers(item)
    elif isinstance(reference, dict) and (key := next((key for key in _ANSWER_KEYS if key in reference), None)):
        yield from _answers(reference[key])
    else:
        found = f"an object with the keys {list(reference)}" if isinstance(reference, dict) else "null"
        raise ValueError(
            f"the task's reference is {found}; expected text, a number, a list of them, or an object with one under "
            "`target`, `answer`, `answers` or `ground_truth`"
        )


def _extra(pairs):
    return {name: json.loads(value) for name, value in pairs}


def message_from(given):
    return Message(given["role"], _text(given["content"]))


def _text(content):
    return "".join(part["text"] if "text" in part else part.get("structured") or f"[{part['media_type']}]" for part in content)


def text_and_structured(content):
    """The text that a model reads of parts of an observation, and the parts that are JSON, parsed."""
    if content is None:
        return None, []
    return _text(content), [json.loads(part["structured"]) for part in content if "structured" in part]


def _event(given):
    if turn := given.get("turn"):
        calls = [Call(call["call_id"], call["name"], json.loads(call["arguments"])) for call in turn["calls"]]
        malformed = [MalformedCall(**one) for one in turn["malformed"]]
        return Turn(turn["text"], turn["reasoning"], turn["visible"], calls, malformed, turn["tokens"])
    if outcome := given.get("outcome"):
        text, structured = text_and_structured(outcome["content"])
        return Outcome(outcome["call_id"], outcome["ended"], text, structured, outcome["step_reward"])
    return message_from(given["user"])
