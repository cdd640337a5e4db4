"""Programs that a model wrote, tools, rewards and environments, sandboxed inside this Python process.

    >>> from rlf_host import Sandbox
    >>> sandbox = Sandbox()
    >>> sandbox.run("print(6 * 7)").stdout
    '42\\n'

Everything runs in WebAssembly sandboxes with limits on time and memory, without files, network or environment variables.
Each method that runs something there lets other Python threads go on, and has a twin for asyncio whose name ends in
`_async`.

| looking for | class |
|---|---|
| programs, thousands at once | `Sandbox`, `Program`, `ProgramResult` |
| cells that share a namespace | `Notebook`, `CellResult` |
| tools and rewards of plugins | `Plugins`, `Tool`, `ToolResult`, `Score` |
| stateful environments | `Environment`, `Session`, `Verdict` |
| settings of the sandbox | `configure` |
| errors | `Error`, `LoadError`, `GradeError`, `SessionError`, `Unavailable` |

A process that was forked from one that had used this package cannot use it: every call raises `RuntimeError` there.
"""

from ._native import Error, GradeError, LoadError, SessionError, Unavailable, __version__
from ._process import configure
from .environments import Environment, Reply, Session, Verdict
from .plugins import AnswerRule, Plugins, Score, Tool, ToolResult
from .programs import CellResult, Notebook, Program, ProgramException, ProgramResult, Sandbox

__all__ = [
    "AnswerRule",
    "CellResult",
    "Environment",
    "Error",
    "GradeError",
    "LoadError",
    "Notebook",
    "Plugins",
    "Program",
    "ProgramException",
    "ProgramResult",
    "Reply",
    "Sandbox",
    "Score",
    "Session",
    "SessionError",
    "Tool",
    "ToolResult",
    "Unavailable",
    "Verdict",
    "__version__",
    "configure",
]
