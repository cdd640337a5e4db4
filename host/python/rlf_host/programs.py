"""Programs that a model wrote, and notebooks."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from . import _native, _pending
from .messages import readable
from .plugins import Plugins

#: The limits of a program that names none.
SECONDS = 10.0
MEMORY_BYTES = 256 << 20
OUTPUT_BYTES = 64 << 10
FILE_BYTES = 16 << 20

#: The largest limits that a program may name, as grants.
_GRANTS = {
    "programs": {
        "time_ms": 86_400_000,
        "memory_bytes": 4 << 30,
        "output_bytes": 16 << 20,
    }
}


@dataclass(frozen=True)
class Program:
    """A program and everything that it is given.

    Attributes:
        code: The source text.
        stdin: Standard input, as text or bytes.
        arguments: The arguments, the program's name first.
        files: Files that exist when it starts, by their paths.
        fetch: Paths of files to return at the end. Missing ones are left out.
        seed: Seed of all randomness.
        seconds: Limit of CPU time, and of the time that the program sees. At most a day.
        memory_bytes: Limit of all memory together, about 33 MiB of the interpreter included. At most 512 MiB, or
            `configure(max_memory_bytes=..)`.
        output_bytes: Bytes kept of each output stream: half of its head and half of its tail. At most 16 MiB.
        file_bytes: Limit of the total size of its files. At most 16 MiB.
    """

    code: str
    stdin: str | bytes = b""
    arguments: Sequence[str] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    fetch: Sequence[str] = ()
    seed: int = 0
    seconds: float = SECONDS
    memory_bytes: int = MEMORY_BYTES
    output_bytes: int = OUTPUT_BYTES
    file_bytes: int = FILE_BYTES

    def _request(self) -> dict[str, Any]:
        for name in ("arguments", "fetch"):
            if isinstance(getattr(self, name), (str, bytes)):
                raise TypeError(f"{name} is a list of texts, and this is one: {getattr(self, name)!r}")
        return {
            "code": readable(self.code),
            "stdin": _bytes("stdin", self.stdin),
            "arguments": [readable(argument) for argument in self.arguments],
            "files": _files(self.files),
            "fetch": list(dict.fromkeys(self.fetch)),
            "seed": _count("seed", self.seed),
            "limits": _limits(self.seconds, self.memory_bytes, self.output_bytes, self.file_bytes),
        }


@dataclass(frozen=True)
class ProgramException:
    """An exception that a program did not catch.

    Attributes:
        kind: The class, such as `ZeroDivisionError`.
        message: The message.
        traceback: The traceback, as the interpreter prints it.
    """

    kind: str
    message: str
    traceback: str


@dataclass(frozen=True)
class ProgramResult:
    """The result of a program.

    Attributes:
        ended: `ok`, `failed`, `timeout`, `memory-limit`, `output-limit`, `trap`, `denied` or `unavailable`.
        fault: Who caused the end: `none` if it ended well, otherwise `model` or `infrastructure`. A program that the infrastructure
            stopped says nothing about the model: leave it out, never score it 0.
        exit_code: The exit code that a process would have, 0 to 255; None if the program was stopped.
        exception: The exception that ended it, if one did.
        stopped: The reason why it was stopped, if it was.
        stdout: Standard output, with U+FFFD for bytes that are not UTF-8. If there was more than `output_bytes`, its head and
            its tail around a note.
        stderr: Standard error, tracebacks included.
        stdout_omitted_bytes: Bytes of standard output that were left out.
        stderr_omitted_bytes: Bytes of standard error that were left out.
        files: The files of `Program.fetch` that exist, by their paths. None are returned after `os._exit`, or if they are
            larger than `file_bytes` together.
        files_refused: The limit that refused the program a file, if one did.
        cpu_seconds: CPU time.
        wall_seconds: Real time, waiting for a place included.
        queued_seconds: Real time until it got a place.
        memory_bytes: The most memory that it used at once.
    """

    ended: str
    fault: str
    exit_code: Optional[int]
    exception: Optional[ProgramException]
    stopped: Optional[str]
    stdout: str
    stderr: str
    stdout_omitted_bytes: int
    stderr_omitted_bytes: int
    files: dict[str, bytes]
    files_refused: Optional[str]
    cpu_seconds: float
    wall_seconds: float
    queued_seconds: float
    memory_bytes: int

    @property
    def ok(self) -> bool:
        """True if a process would have exited with 0."""
        return self.ended == "ok"

    @property
    def is_infrastructure(self) -> bool:
        """True if the machine failed and not the program. Such a result must not be scored."""
        return self.fault == "infrastructure"


@dataclass(frozen=True)
class CellResult:
    """The result of a cell of a notebook. The attributes mean the same as in `ProgramResult`, apart from these:

    Attributes:
        value: The value of a trailing expression, as text.
        displays: Rich output besides that value: media type and data, in order.
        cpu_seconds: CPU time; 0 if the cell was stopped.
        memory_bytes: The most memory that the notebook has used at once so far; 0 if the cell was stopped.
    """

    ended: str
    fault: str
    exit_code: Optional[int]
    exception: Optional[ProgramException]
    stopped: Optional[str]
    value: Optional[str]
    displays: list[tuple[str, bytes]]
    stdout: str
    stderr: str
    stdout_omitted_bytes: int
    stderr_omitted_bytes: int
    cpu_seconds: float
    memory_bytes: int

    @property
    def ok(self) -> bool:
        """True if the cell reached its end."""
        return self.ended == "ok"

    @property
    def is_infrastructure(self) -> bool:
        """True if the machine failed and not the cell. Such a result must not be scored."""
        return self.fault == "infrastructure"


class Sandbox:
    """Runs programs, each in a fresh instance of an interpreter that sees nothing of the others.

    The first `Sandbox` on a machine compiles the interpreter, which takes up to half a minute. Later ones find it in the
    cache (`rlf-host cache` shows it).

        >>> sandbox = Sandbox()
        >>> sandbox.run("print(input() * 2)", stdin="ab").stdout
        'abab\\n'
        >>> result = sandbox.run("1 / 0")
        >>> result.ended, result.exception.kind
        ('failed', 'ZeroDivisionError')
        >>> sandbox.run("while True: pass", seconds=0.2).ended
        'timeout'

    Args:
        language: `python`, `javascript`, or the name of an interpreter plugin.
        *directories: Plugin directories, besides the one that ships with the package.
        plugins: Loaded plugins, instead of directories.

    Raises:
        LookupError: No interpreter runs the language.
        LoadError: The sandbox cannot be started on this machine.
    """

    def __init__(
        self, language: str = "python", *directories: str | os.PathLike[str], plugins: Optional[Plugins] = None
    ) -> None:
        if plugins is not None and directories:
            raise TypeError("give directories or plugins, not both")
        self.language = language
        if plugins is None:
            plugins = Plugins(*directories, only=[language], grants={language: _GRANTS})
        self._interpreters = plugins._native
        # Fails now and not at the first program.
        self._interpreters.check(language)

    def _pending(self, program: str | Program, fields: dict[str, Any]) -> _native.Pending:
        if isinstance(program, Program):
            program = replace(program, **fields) if fields else program
        else:
            program = Program(program, **fields)
        return self._interpreters.run(self.language, program._request())

    def run(self, program: str | Program, **fields: Any) -> ProgramResult:
        """Runs a program from start to end. However it ends, the result says so.

        Args:
            program: The source text, or a `Program`.
            **fields: Other fields of `Program`, such as `stdin`, `files` or `seconds`.

        Raises:
            ValueError: The request is invalid, such as a path out of the program's folder or a limit that is not allowed.
            Unavailable: Open notebooks have all the memory for programs.
        """
        return _pending.wait(self._pending(program, fields), _program_result)

    async def run_async(self, program: str | Program, **fields: Any) -> ProgramResult:
        """Like `run`, for asyncio. Cancelling the task stops the program."""
        return await _pending.settle(self._pending(program, fields), _program_result)

    def submit(self, program: str | Program, **fields: Any) -> "Future[ProgramResult]":
        """Starts a program and returns a future of its result. Cancelling the future stops the program."""
        return _pending.submit(self._pending(program, fields), _program_result)

    def run_many(self, programs: Iterable[str | Program], **fields: Any) -> list[ProgramResult]:
        """Runs programs at once, as many as the machine has room for, and returns their results in order.

            >>> sandbox = Sandbox()
            >>> [result.stdout for result in sandbox.run_many(f"print({n} ** 2)" for n in range(4))]
            ['0\\n', '1\\n', '4\\n', '9\\n']
        """
        return _pending.gather(self._all_pending(programs, fields), _program_result)

    async def run_many_async(self, programs: Iterable[str | Program], **fields: Any) -> list[ProgramResult]:
        """Like `run_many`, for asyncio."""
        return await _pending.gather_async(self._all_pending(programs, fields), _program_result)

    def _all_pending(self, programs: Iterable[str | Program], fields: dict[str, Any]) -> Iterator[_native.Pending]:
        if isinstance(programs, (str, Program)):
            raise TypeError("run_many takes a list of programs; run takes one")
        return (self._pending(program, fields) for program in programs)

    def notebook(
        self,
        *,
        files: Optional[Mapping[str, str | bytes]] = None,
        seed: int = 0,
        memory_bytes: int = MEMORY_BYTES,
        output_bytes: int = OUTPUT_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> "Notebook":
        """Opens a notebook. It keeps its memory limit of the memory for programs until it is closed.

        Args:
            files: Files that exist when it starts, by their paths.
            seed: Seed of all randomness.
            memory_bytes: As in `Program`, for all cells together.
            output_bytes: As in `Program`, for each cell.
            file_bytes: As in `Program`, for all cells together.

        Raises:
            Unavailable: Other open notebooks have all the memory for programs.
        """
        return _pending.wait(self._notebook(files, seed, memory_bytes, output_bytes, file_bytes), Notebook)

    async def notebook_async(
        self,
        *,
        files: Optional[Mapping[str, str | bytes]] = None,
        seed: int = 0,
        memory_bytes: int = MEMORY_BYTES,
        output_bytes: int = OUTPUT_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> "Notebook":
        """Like `notebook`, for asyncio."""
        return await _pending.settle(self._notebook(files, seed, memory_bytes, output_bytes, file_bytes), Notebook)

    def _notebook(
        self,
        files: Optional[Mapping[str, str | bytes]],
        seed: int,
        memory_bytes: int,
        output_bytes: int,
        file_bytes: int,
    ) -> _native.Pending:
        limits = _limits(SECONDS, memory_bytes, output_bytes, file_bytes)
        return self._interpreters.open_notebook(self.language, _files(files or {}), _count("seed", seed), limits)


class Notebook:
    """Cells that share a namespace and files. Made by `Sandbox.notebook`.

    >>> with Sandbox().notebook() as notebook:
    ...     _ = notebook.run("x = 20")
    ...     notebook.run("x + 1").value
    '21'

    Cells run in the order in which they were asked for. A cell that is stopped or cancelled ends the notebook: whatever is
    asked for later raises `SessionError`.
    """

    def __init__(self, native: _native.Notebook) -> None:
        self._native = native

    def run(self, code: str, *, seconds: float = SECONDS) -> CellResult:
        """Runs a cell. `seconds` limits its CPU time and the time that it sees."""
        return _pending.wait(self._cell(code, seconds), _cell_result)

    async def run_async(self, code: str, *, seconds: float = SECONDS) -> CellResult:
        """Like `run`, for asyncio."""
        return await _pending.settle(self._cell(code, seconds), _cell_result)

    def _cell(self, code: str, seconds: float) -> _native.Pending:
        return self._native.run(readable(code), {**_NO_LIMITS, "seconds": seconds})

    def fetch(self, *paths: str) -> dict[str, bytes]:
        """The files at these paths. Missing ones are left out."""
        return _pending.wait(self._native.fetch(list(paths)), dict)

    async def fetch_async(self, *paths: str) -> dict[str, bytes]:
        """Like `fetch`, for asyncio."""
        return await _pending.settle(self._native.fetch(list(paths)), dict)

    def close(self) -> None:
        """Frees its place."""
        self._native.close().wait()

    async def close_async(self) -> None:
        """Like `close`, for asyncio."""
        await _pending.settle(self._native.close(), _nothing)

    def __enter__(self) -> "Notebook":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Notebook":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()


#: A cell has no limits but of time: the others are those of the notebook.
_NO_LIMITS = {"memory_bytes": None, "output_bytes": None, "file_bytes": None}


def _bytes(name: str, given: str | bytes) -> bytes:
    if isinstance(given, str):
        return readable(given).encode()
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    raise TypeError(f"{name} is a text or bytes, and this is {type(given).__name__}")


def _files(files: Mapping[str, str | bytes]) -> list[tuple[str, bytes]]:
    return [(path, _bytes(f"file {path!r}", data)) for path, data in files.items()]


def _count(name: str, value: int) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, and this is {type(value).__name__}")
    if not 0 <= value < 2**64:
        raise ValueError(f"{name} = {value}: write 0 to 2**64 - 1")
    return value


def _limits(seconds: float, memory_bytes: int, output_bytes: int, file_bytes: int) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "memory_bytes": _count("memory_bytes", memory_bytes),
        "output_bytes": _count("output_bytes", output_bytes),
        "file_bytes": _count("file_bytes", file_bytes),
    }


def _nothing(_: object) -> None:
    return None


def _with_exception(fields: dict[str, Any]) -> dict[str, Any]:
    if fields["exception"] is not None:
        fields["exception"] = ProgramException(*fields["exception"])
    return fields


def _program_result(fields: dict[str, Any]) -> ProgramResult:
    return ProgramResult(**_with_exception(fields))


def _cell_result(fields: dict[str, Any]) -> CellResult:
    return CellResult(**_with_exception(fields))
