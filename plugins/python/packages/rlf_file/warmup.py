"""A plugin that is played before any other is loaded.

The interpreter specialises code as it runs and fills caches of many kinds. What is warm in the snapshot is warm in every
call, which then neither takes the time nor writes to the pages that this lies on. Nothing of this plugin is left.
"""

import json
import linecache
import sys

from rlf import testing

ROUNDS = 4
FILE = "warm.py"

SOURCE = '''
import dataclasses
from typing import Annotated, Literal

import rlf


@dataclasses.dataclass
class Place:
    """A place."""

    name: str
    x: float = 0.0


@rlf.init
def begin(config):
    global places
    places = {"a": Place("a", 1.0)}


@rlf.tool(pure=True)
def add(a: float, b: float = 2) -> float:
    """Adds two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@rlf.tool
def find(name: str, near: Place | None = None, kind: Literal["a", "b"] = "a", limit: Annotated[int, {"minimum": 1}] = 3) -> Place:
    """Finds a place."""
    if name not in places:
        raise rlf.Failure(f"there is no place {name!r}")
    return places[name]


@rlf.tool
def draw(sides: int, names: list[str], context: rlf.Context) -> dict:
    """Draws a number."""
    return {"drawn": 1 + context.seed % sides, "names": names}


@rlf.reward
def right(task: rlf.Task, trajectory: rlf.Trajectory) -> float:
    return float(trajectory.answer in task.accepted_answers())


@rlf.reward
def effort(trajectory):
    return {"calls": len(trajectory.calls()), "failed": sum(outcome.ended != "ok" for outcome in trajectory.outcomes())}
'''

CALLS = (
    ("add", {"a": 1, "b": 2.5}),
    ("add", {"a": 1.5}),
    ("find", {"name": "a", "near": {"name": "b"}, "limit": 2}),
    ("find", {"name": "c"}),
    ("draw", {"sides": 6, "names": ["a", "b"]}),
)

TASK = {"id": "t", "source": "warm", "prompt": [{"role": "user", "content": [{"text": "?"}]}], "reference": "\"3\"", "extra": []}
TRAJECTORY = {
    "id": "a",
    "tools": ["add"],
    "events": [
        {
            "turn": {
                "text": "",
                "reasoning": None,
                "visible": "",
                "calls": [{"call_id": "c", "name": "add", "arguments": '{"a":1}'}],
                "malformed": [],
                "tokens": 3,
            }
        },
        {"outcome": {"call_id": "c", "ended": "ok", "content": [{"text": "3"}], "step_reward": None}},
    ],
    "answer": "3",
    "finish": "answered",
    "final_state": None,
    "verdict": None,
    "extra": [],
}
CONTEXT = {"call_id": "c", "attempt": 0, "trajectory_id": "t", "turn": 1, "seed": 9, "budget_ms": 1000}
GRADING = {"split": "train", "step": 1, "steps": 2, "seed": 3}


def play(ask):
    """Loads and plays the plugin through `ask(function, arguments)`, which gives what the function of the package does."""
    ask("load", [json.dumps({"file": FILE, "source": SOURCE, "config": {}})])
    for _ in range(ROUNDS):
        ask("describe", [])
        for name, arguments in CALLS:
            ask("call", [name, json.dumps(arguments), CONTEXT])
        ask("grade", [TASK, [TRAJECTORY, TRAJECTORY], GRADING])
    testing.forget()
    linecache.cache.pop(FILE, None)
    del sys.modules[FILE.removesuffix(".py")]
