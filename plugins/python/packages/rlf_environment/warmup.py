"""An environment that is played before any other is loaded.

The interpreter specialises code as it runs and fills caches of many kinds. What is warm in the snapshot is warm in every
session, which then neither takes the time nor writes to the pages that this lies on. Nothing of this environment is left.
"""

import json

from . import session

NAME = "Warm"
ROUNDS = 4

SOURCE = '''
"""A store of boxes with things in them."""

import random
from datetime import datetime
from typing import Any, Dict, List, Literal, Optional, Union

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

LIMIT = 3
seen = []


class Thing(BaseModel):
    """What can be put away."""

    name: str = Field(..., min_length=1, description="What it is called")
    weight: float = Field(default=1.0, ge=0)
    count: int = Field(default=1, ge=0, le=1000)
    fragile: bool = False
    kind: Literal["tool", "toy"] = "tool"
    note: Optional[str] = None
    tags: List[str] = Field(default_factory=list)
    size: Union[int, str] = 1


class Box(BaseModel):
    things: Dict[str, Thing] = Field(default_factory=dict)
    order: List[Thing] = []
    more: Dict[str, Any] = {}


class Scenario(BaseModel):
    boxes: Dict[str, Box] = Field(default_factory=dict)
    cash: float = 0.0
    next_id: int = Field(default=1, ge=1)


Scenario_Schema = [Thing, Box, Scenario]


class Store:
    def __init__(self):
        self.state = Scenario()
        self.boxes: Dict[str, Box] = {}

    def load_scenario(self, scenario: dict) -> None:
        self.state = Scenario(**scenario)
        self.boxes = self.state.boxes

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def box(self, box_id: str) -> Box:
        if box_id not in self.state.boxes:
            raise ValueError(f"no box {box_id!r}")
        return self.state.boxes[box_id]


store = Store()
mcp = FastMCP(name="Warm")


@mcp.tool()
def find(text: str, limit: Optional[int] = None) -> List[dict]:
    """Things by a part of their name."""
    found = [
        {"box_id": box_id, "thing_id": thing_id, **thing.model_dump()}
        for box_id, box in store.state.boxes.items()
        for thing_id, thing in box.things.items()
        if text.lower() in thing.name.lower()
    ]
    return sorted(found, key=lambda one: one["thing_id"])[:limit]


@mcp.tool()
def put(box_id: str, thing: Thing) -> dict:
    """Puts a thing into a box."""
    box = store.box(box_id)
    if len(box.things) >= LIMIT:
        raise ValueError("the box is full")
    thing_id = f"t{store.state.next_id}"
    box.things[thing_id] = thing
    store.state.next_id += 1
    seen.append(thing_id)
    return {"thing_id": thing_id, "all": len(box.things)}


@mcp.tool()
def change(box_id: str, thing_id: str, weight: float, fragile: bool = False, tags: List[str] = []) -> Dict[str, Any]:
    """Changes a thing."""
    thing = store.box(box_id).things[thing_id]
    thing.weight, thing.fragile, thing.tags = weight, fragile, list(tags)
    store.state.cash += round(weight * 1.5, 2)
    return thing.model_dump()


@mcp.tool()
def show(box_id: str) -> Thing:
    """The first thing of a box."""
    return next(iter(store.box(box_id).things.values()))


@mcp.tool()
def draw(sides: int) -> str:
    """A random number."""
    return f"{random.randint(1, sides)}"


@mcp.tool()
def count() -> int:
    """How many boxes there are."""
    return len(store.state.boxes)
'''

FUNCTION = '''
import math


def area(radius, unit="m"):
    """The area of a circle."""
    return {"area": math.pi * radius ** 2, "unit": unit}
'''

TASK = {
    "servers": {
        NAME: {
            "boxes": {
                "b1": {"things": {"t0": {"name": "Hammer", "weight": 2, "tags": ["steel"], "size": "big"}}},
                "b2": {"order": [{"name": "Ball", "kind": "toy", "note": "red"}], "more": {"a": [1, None, {"b": 2.5}]}},
            },
            "cash": 1.5,
        }
    },
    "functions": [
        {"name": "area", "source": FUNCTION, "parameters": {"type": "object", "properties": {"radius": {"type": "number"}}}}
    ],
}

CALLS = (
    ("Warm-find", '{"text": "ham"}'),
    ("Warm-put", '{"box_id": "b1", "thing": {"name": "Nail", "count": 5}}'),
    ("Warm-put", '{"box_id": "b1", "thing": "{\\"name\\": \\"Saw\\"}"}'),
    ("Warm-put", '{"box_id": "b1", "thing": {"name": "Axe"}}'),
    ("Warm-put", '{"box_id": "b1", "thing": {"name": "", "count": "x"}}'),
    ("Warm-change", '{"box_id": "b1", "thing_id": "t1", "weight": 2.5, "fragile": true, "tags": ["a"]}'),
    ("Warm-change", '{"box_id": "b1", "thing_id": "t9", "weight": 2}'),
    ("Warm-show", '{"box_id": "b1"}'),
    ("Warm-show", '{"box_id": "b9"}'),
    ("Warm-draw", '{"sides": 6}'),
    ("Warm-count", "{}"),
    ("Warm-count", "["),
    ("area", '{"radius": 2}'),
    ("area", '{"diameter": 2}'),
)


def play(ask):
    """Loads and plays the environment through `ask(function, arguments)`, which gives what the function of the package does."""
    ask("load", [json.dumps({"servers": {NAME: {"source": SOURCE, "file": f"{NAME}.py"}}, "scenarios": []})])
    for _ in range(ROUNDS):
        ask("open", [json.dumps(TASK), 7])
        ask("state", [])
        for name, arguments in CALLS:
            ask("call", [name, arguments])
            ask("state", [])
        ask("restore", [ask("snapshot", [])])
        state = ask("state", [])
        ask("verify", [None, '{"state":' + state + "}"])
        ask("verify", [None, json.dumps({"state": {NAME: {"boxes": {}}}})])
        ask("say", ["done"])
    session.forget()
