"""Tools and rewards for rlf-host, written as Python functions.

A file with decorated functions is a plugin. Put it into the plugin directory as it is:

    import rlf

    @rlf.tool(pure=True)
    def add(a: float, b: float) -> float:
        '''Adds two numbers.'''
        return a + b

The same file runs natively, in a test (see `rlf.testing`), and in the sandbox.

| looking for | module |
|---|---|
| `@rlf.tool`, and what a tool may return | `tools`, `observations` |
| `@rlf.reward`, and what it is given | `rewards`, `trajectories` |
| `@rlf.init`, and data that the operator binds | `setup` |
| other tools, programs, HTTP and language models, through gates | `gates` |
| from annotations to a JSON Schema, and from JSON to values | `schemas` |
| tests | `testing` |
"""

from .errors import Failure, InvalidPlugin
from .gates import (
    Answer,
    GateError,
    Program,
    Question,
    Report,
    Request,
    Response,
    Secret,
    ToolResult,
    ask_model,
    ask_models,
    call_tool,
    call_tools,
    chat,
    fetch,
    fetch_all,
    list_models,
    list_tools,
    run_program,
    run_programs,
)
from .observations import Image, Observation
from .rewards import Terms, reward
from .setup import data, init
from .tools import Context, tool
from .trajectories import (
    Call,
    Grading,
    MalformedCall,
    Message,
    Outcome,
    Task,
    Trajectory,
    Turn,
    Verdict,
)

__all__ = [
    "Answer",
    "Call",
    "Context",
    "Failure",
    "GateError",
    "Grading",
    "Image",
    "InvalidPlugin",
    "MalformedCall",
    "Message",
    "Observation",
    "Outcome",
    "Program",
    "Question",
    "Report",
    "Request",
    "Response",
    "Secret",
    "Task",
    "Terms",
    "ToolResult",
    "Trajectory",
    "Turn",
    "Verdict",
    "ask_model",
    "ask_models",
    "call_tool",
    "call_tools",
    "chat",
    "data",
    "fetch",
    "fetch_all",
    "init",
    "list_models",
    "list_tools",
    "reward",
    "run_program",
    "run_programs",
    "tool",
]
