"""Three ways to run an operation of the native part: wait for it, get a future of it, or await it."""

import asyncio
from concurrent.futures import Future
from typing import Any, Callable, Optional, TypeVar

from ._native import Pending

T = TypeVar("T")


def wait(pending: Pending, make: Callable[[Any], T]) -> T:
    """Runs the operation while other Python threads go on."""
    return make(pending.wait())


def submit(pending: Pending, make: Callable[[Any], T]) -> "Future[T]":
    """Starts the operation. Cancelling the future cancels the operation."""
    future: "Future[T]" = Future()

    def done(answer: Any, error: Optional[BaseException]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        if error is None:
            try:
                future.set_result(make(answer))
                return
            except Exception as failed:
                error = failed
        future.set_exception(error)

    started = pending.start(done)
    future.add_done_callback(lambda ended: started.cancel() if ended.cancelled() else None)
    return future


async def settle(pending: Pending, make: Callable[[Any], T]) -> T:
    """Awaits the operation. Cancelling the task cancels the operation."""
    return await asyncio.wrap_future(submit(pending, make))


def gather(futures: "list[Future[T]]") -> list[T]:
    """The results of all futures, in order. After an error or Ctrl-C, those that still run are cancelled."""
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
