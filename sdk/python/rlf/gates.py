"""Other tools, programs, HTTP and language models, for plugins to which the operator opens the gates `tools`, `execute`, `http` and
`model`.

`plugin.toml` asks for a gate (`gates = ["tools"]`), and the operator decides what it leads to. `rlf.call_tool`, `rlf.run_program`,
`rlf.fetch` and `rlf.ask_model` make one request and wait for its answer. `rlf.call_tools`, `rlf.run_programs`, `rlf.fetch_all` and
`rlf.ask_models` make several side by side. All of them end at the deadline of the call that makes them. `rlf.chat` is for agents: it asks
the policy in a trajectory that the plugin leads.
"""

import base64
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .trajectories import text_and_structured


class GateError(Exception):
    """A request that was not carried out. `kind` is `denied` (the gate is not open), `not-found`, `invalid-arguments`,
    `exhausted` (more requests than a call may make, or a budget is spent) or `unavailable` (a model's answer does not fit the schema)."""

    def __init__(self, kind: str, message: str):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


@dataclasses.dataclass(frozen=True)
class ToolResult:
    """The result of a call to another tool."""

    ended: str
    """`ok`, `failed`, `invalid-arguments`, `timeout`, `memory-limit`, `output-limit`, `trap`, `exited` or `denied`."""
    text: str | None
    """The text that a model would read; None if the call showed nothing."""
    structured: list[Any] = dataclasses.field(default_factory=list)
    """Its parts that are JSON, parsed."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A program to run. A limit of 0 means the operator's limit. A program that may take as long as the call that runs it can
    cost that call its result."""

    code: str
    language: str = "python"
    arguments: Sequence[str] = ()
    stdin: bytes | str = b""
    files: Mapping[str, bytes | str] = dataclasses.field(default_factory=dict)
    """Files that exist when it starts."""
    fetch: Sequence[str] = ()
    """Paths of files to return."""
    seed: int = 0
    time_ms: int = 2_000
    memory_bytes: int = 0
    output_bytes: int = 0
    file_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Report:
    """The end of a program, its output and its files."""

    ended: str
    """`ok` if it ran to its end or ended itself, or the limit that stopped it."""
    outcome: str | None
    """`completed`, `exited`, `raised` or `rejected` (it did not compile); None if it was stopped."""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    exception: dict[str, str] | None = None
    """`kind`, `message` and `traceback`."""
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)
    cpu_us: int = 0

    @property
    def completed(self) -> bool:
        """True if it ran to its end."""
        return self.outcome == "completed"


@dataclasses.dataclass(frozen=True)
class Secret:
    """The value of a header that the host inserts: the name of a secret in the grants."""

    name: str


@dataclasses.dataclass(frozen=True)
class Request:
    """An HTTP request. Redirects are not followed."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str | Secret] = dataclasses.field(default_factory=dict)
    body: bytes | str = b""


@dataclasses.dataclass(frozen=True)
class Response:
    """The answer of a server."""

    status: int
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body, as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


@dataclasses.dataclass(frozen=True)
class Question:
    """A question to a language model."""

    messages: str | Sequence[tuple[str, str]]
    """A message of the user, or several messages: `(role, text)` each, with the role `system`, `user` or `assistant`."""
    model: str = ""
    """The operator's name for the model. If empty, the first one is asked."""
    max_tokens: int = 0
    """Maximum length of the answer. 0 means all that the operator allows."""
    temperature: float | None = None
    """From 0 to 2. None means the operator's temperature."""
    chat: Mapping[str, Any] | None = None
    """A request in the form of OpenAI's chat completions, instead of messages: see `rlf.chat`."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema that the answer must fit; its root has the type `object`. The answer's text is then the JSON alone. The messages must
    say the form, too: not every model is told the schema."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a language model."""

    text: str
    """Without the model's think block. May be empty."""
    cut_short: bool = False
    """True if the limit of tokens cut it short."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    message: dict[str, Any] | None = None
    """The whole message in OpenAI's form, if the question was a request in that form."""


def list_tools() -> list[dict[str, Any]]:
    """`name`, `description` and `input_schema` of each tool that can be called."""
    return [] if not _askers else json.loads(_askers[0]("tools.list", "[]"))


def call_tool(name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
    """Calls another tool. Raises `GateError` if no call was made."""
    return _only(call_tools([(name, arguments or {})]))


def call_tools(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[ToolResult | GateError]:
    """Calls tools side by side, and returns one result each, in order."""
    return _answers("tools.invoke", list(calls), _call, _tool_result)


def run_program(code: str, language: str = "python", **options: Any) -> Report:
    """Runs a program. `options` are the fields of `rlf.Program`. Raises `GateError` if it was not run."""
    return _only(run_programs([Program(code, language, **options)]))


def run_programs(programs: Iterable[Program]) -> list[Report | GateError]:
    """Runs programs side by side, each in an instance of its own, and returns one report each, in order."""
    return _answers("execute.run", list(programs), _program, _report)


def fetch(url: str, method: str = "GET", headers: Mapping[str, str | Secret] | None = None, body: bytes | str = b"") -> Response:
    """Makes an HTTP request. Raises `GateError` if there is no answer."""
    return _only(fetch_all([Request(url, method, headers or {}, body)]))


def fetch_all(requests: Iterable[Request]) -> list[Response | GateError]:
    """Makes HTTP requests side by side, and returns one answer each, in order."""
    return _answers("http.fetch", list(requests), _request, _response)


def list_models() -> list[dict[str, Any]]:
    """`name`, `max_tokens` and `context_tokens` of each model that can be asked. A limit of 0 is not known."""
    return [] if not _askers else json.loads(_askers[0]("model.list", "[]"))


def ask_model(
    messages: str | Sequence[tuple[str, str]],
    model: str = "",
    max_tokens: int = 0,
    temperature: float | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Answer:
    """Asks a language model. `messages` is the user's message, or several: `(role, text)` each. Raises `GateError` if the question
    was not asked, if the model refused it, or if its answer does not fit `schema`."""
    return _only(ask_models([Question(messages, model, max_tokens, temperature, schema=schema)]))


def ask_models(questions: Iterable[Question]) -> list[Answer | GateError]:
    """Asks questions side by side, and returns one answer each, in order."""
    return _answers("model.ask", list(questions), _question, _answer)


def chat(request: Mapping[str, Any], model: str = "") -> dict[str, Any]:
    """Asks the policy for its turn in a trajectory that the plugin leads. `request` has the form of OpenAI's chat completions: `messages`,
    and perhaps `tools` and `max_tokens`. Returns the assistant's message in OpenAI's form. Raises `GateError` if there is no turn."""
    answer = _only(ask_models([Question((), model, chat=request)]))
    return answer.message or {"role": "assistant", "content": answer.text}


_askers: list[Callable[[str, str], str]] = []
"""At most one function that asks the host: kind and JSON to JSON."""
_stand_ins: dict[str, Callable[[Any], Any]] = {}
"""Functions that answer in tests, by kind: see `rlf.testing`."""


def ask_with(asker):
    """Makes requests with a function, as in the sandbox."""
    _askers[:] = [asker]


def stand_in(kind, function):
    """Makes `function` answer each request of one kind in tests."""
    _stand_ins[kind] = function


def forget():
    """Removes all stand-ins."""
    _stand_ins.clear()


def _answers(kind, requests, encode, decode):
    if kind in _stand_ins:
        return [_stood_in(_stand_ins[kind], request) for request in requests]
    if not _askers:
        return [GateError("denied", f"the gate `{kind.partition('.')[0]}` is not open") for _ in requests]
    answers = json.loads(_askers[0](kind, json.dumps([encode(request) for request in requests])))
    if isinstance(answers, dict):
        raise _error(answers)
    return [_error(answer) if "error" in answer else decode(answer) for answer in answers]


def _stood_in(function, request):
    try:
        return function(request)
    except GateError as error:
        return error


def _only(answers):
    (answer,) = answers
    if isinstance(answer, GateError):
        raise answer
    return answer


def _error(answer):
    return GateError(answer["error"]["kind"], answer["error"]["message"])


def _base64(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _call(call):
    name, arguments = call
    return {"name": name, "arguments": json.dumps(arguments)}


def _tool_result(answer):
    observation = answer["observation"] or {"content": None}
    text, structured = text_and_structured(observation["content"])
    return ToolResult(answer["ended"], text, structured)


def _program(program):
    return {
        "language": program.language,
        "code": program.code,
        "arguments": list(program.arguments),
        "stdin": _base64(program.stdin),
        "files": {path: _base64(data) for path, data in program.files.items()},
        "fetch": list(program.fetch),
        "seed": program.seed,
        "limits": {
            "wall_ms": program.time_ms,
            "memory_bytes": program.memory_bytes,
            "output_bytes": program.output_bytes,
            "file_bytes": program.file_bytes,
        },
    }


def _report(answer):
    return Report(
        ended=answer["ended"],
        outcome=answer["outcome"],
        stdout=answer["stdout"],
        stderr=answer["stderr"],
        exit_code=answer["exit_code"],
        exception=answer["exception"],
        files={path: base64.b64decode(data) for path, data in answer["files"].items()},
        cpu_us=answer["cpu_us"],
    )


def _request(request):
    headers = [
        (name, {"secret": value.name} if isinstance(value, Secret) else {"text": value}) for name, value in request.headers.items()
    ]
    return {"method": request.method, "url": request.url, "headers": headers, "body": _base64(request.body)}


def _response(answer):
    return Response(answer["status"], [tuple(header) for header in answer["headers"]], base64.b64decode(answer["body"]))


def _question(question):
    messages = [("user", question.messages)] if isinstance(question.messages, str) else question.messages
    encoded = {
        "model": question.model,
        "messages": [{"role": role, "text": text} for role, text in messages],
        "max_tokens": question.max_tokens,
        "temperature": question.temperature,
    }
    for key, value in (("chat", question.chat), ("schema", question.schema)):
        if value is not None:
            encoded[key] = json.dumps(value)
    return encoded


def _answer(answer):
    return Answer(answer["text"], answer["cut_short"], answer["prompt_tokens"], answer["completion_tokens"], answer.get("message"))
