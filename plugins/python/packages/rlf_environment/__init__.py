"""Environments written as one Python file, as sessions: what a host calls, with texts of JSON in and out.

`load` runs once, before the snapshot that every session starts from; `open` begins the one session of this process
image. No function raises for what a task, a model or a file of tools does: what went wrong is in the answer.

In order of reading:

| module | what it does |
|---|---|
| `loading` | executes files |
| `servers` | environments in EnvFactory's format |
| `trl` | environment classes of TRL |
| `functions` | tools that are single functions |
| `session` | one episode |
| `snapshots` | carries an episode to another image |
| `comparison` | judges a final state |
| `warmup` | played before any of it counts |
"""

from . import warmup
from .answers import Failure
from .session import call, load, open, restore, say, scenarios, snapshot, state, verify

REQUESTS = ("open", "restore", "call", "say", "state", "snapshot", "verify", "scenarios")
"""The functions that the host calls, besides `load`."""


def connect(host):
    """Takes the host, of which environments need nothing."""


__all__ = ["REQUESTS", "connect", "Failure", "call", "load", "open", "restore", "say", "scenarios", "snapshot", "state", "verify", "warmup"]
