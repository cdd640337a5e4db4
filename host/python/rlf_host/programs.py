"""Programs that a model wrote, and notebooks."""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from . import _native, _pending
from .plugins import Plugins


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
        seconds: Limit of CPU time, and of the time that the program sees. Default: 10.
        memory_bytes: Limit of all memory together. Default: 256 MiB.
        output_bytes: Bytes kept of each output stream. Default: 64 KiB. At most 1 MiB.
        file_bytes: Limit of the total size of its files. Default: 16 MiB.
    """

    code: str
    stdin: str | bytes = b""
    arguments: Sequence[str] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    fetch: Sequence[str] = ()
    seed: int = 0
    seconds: Optional[float] = None
    memory_bytes: Optional[int] = None
    output_bytes: Optional[int] = None
    file_bytes: Optional[int] = None

    def _request(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "stdin": _bytes(self.stdin),
            "arguments": list(self.arguments),
            "files": _files(self.files),
            "fetch": list(self.fetch),
            "seed": self.seed,
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
    """How a program went.

    Attributes:
        ended: `ok`, `failed`, `timeout`, `memory-limit`, `output-limit`, `trap`, `denied` or `unavailable`.
        fault: Who caused the end: `model`, or `infrastructure`. A program that the infrastructure stopped says nothing
            about the model: leave it out, never score it 0.
        exit_code: The exit code that a process would have; None if the program was stopped.
        exception: The exception that ended it, if one did.
        stopped: The reason why it was stopped, if it was.
        stdout: Standard output. If there was more than the limit, its head and its tail around a note.
        stderr: Standard error, tracebacks included.
        stdout_omitted_bytes: Bytes of standard output that were left out.
        stderr_omitted_bytes: Bytes of standard error that were left out.
        files: The files of `Program.fetch` that exist, by their paths.
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
    """How a cell of a notebook went. The attributes are those of `ProgramResult`, and:

    Attributes:
        value: The value of a trailing expression, as text.
        displays: Rich output besides that value: media type and data, in order.
    """

    ended: str
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
        loaded = plugins if plugins is not None else Plugins(*directories, only=[language])
        self._interpreters = loaded._native
        # Fails now and not at the first program.
        self._interpreters.run(language, Program("")._request())

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
            ValueError: The request is invalid, such as a path out of the program's folder.
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
        return _pending.gather([self.submit(program, **fields) for program in programs])

    def notebook(
        self,
        *,
        files: Optional[Mapping[str, str | bytes]] = None,
        seed: int = 0,
        memory_bytes: Optional[int] = None,
        output_bytes: Optional[int] = None,
        file_bytes: Optional[int] = None,
    ) -> "Notebook":
        """Opens a notebook. It keeps a place among programs until it is closed.

        Args:
            files: Files that exist when it starts, by their paths.
            seed: Seed of all randomness.
            memory_bytes: As in `Program`, for all cells together.
            output_bytes: As in `Program`, for each cell.
            file_bytes: As in `Program`, for all cells together.
        """
        limits = _limits(None, memory_bytes, output_bytes, file_bytes)
        pending = self._interpreters.open_notebook(self.language, _files(files or {}), seed, limits)
        return _pending.wait(pending, Notebook)


class Notebook:
    """Cells that share a namespace and files. Made by `Sandbox.notebook`.

    >>> with Sandbox().notebook() as notebook:
    ...     _ = notebook.run("x = 20")
    ...     notebook.run("x + 1").value
    '21'

    A cell that is stopped ends the notebook: all later cells are reported as stopped.
    """

    def __init__(self, native: _native.Notebook) -> None:
        self._native = native

    def run(self, code: str, *, seconds: Optional[float] = None) -> CellResult:
        """Runs a cell. `seconds` limits its CPU time and the time that it sees; the default is 10."""
        return _pending.wait(self._native.run(code, _limits(seconds)), _cell_result)

    async def run_async(self, code: str, *, seconds: Optional[float] = None) -> CellResult:
        """Like `run`, for asyncio."""
        return await _pending.settle(self._native.run(code, _limits(seconds)), _cell_result)

    def fetch(self, *paths: str) -> dict[str, bytes]:
        """The files at these paths. Missing ones are left out."""
        return _pending.wait(self._native.fetch(list(paths)), dict)

    def close(self) -> None:
        """Frees its place."""
        self._native.close().wait()

    def __enter__(self) -> "Notebook":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _files(files: Mapping[str, str | bytes]) -> list[tuple[str, bytes]]:
    return [(path, _bytes(data)) for path, data in files.items()]


def _limits(
    seconds: Optional[float],
    memory_bytes: Optional[int] = None,
    output_bytes: Optional[int] = None,
    file_bytes: Optional[int] = None,
) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "memory_bytes": memory_bytes,
        "output_bytes": output_bytes,
        "file_bytes": file_bytes,
    }


def _with_exception(fields: dict[str, Any]) -> dict[str, Any]:
    if fields["exception"] is not None:
        fields["exception"] = ProgramException(*fields["exception"])
    return fields


def _program_result(fields: dict[str, Any]) -> ProgramResult:
    return ProgramResult(**_with_exception(fields))


def _cell_result(fields: dict[str, Any]) -> CellResult:
    return CellResult(**_with_exception(fields))
