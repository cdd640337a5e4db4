"""Three ways to run an operation of the native part: wait for it, get a future of it, or await it."""

import asyncio
import threading
from collections.abc import Iterable
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
    lock = threading.Lock()
    settled = False

    def settle() -> bool:
        """Tells the future, once, that it is about to have a result. Returns False if it was cancelled."""
        nonlocal settled
        with lock:
            first, settled = not settled, True
        return first and future.set_running_or_notify_cancel()

    def done(answer: Any, error: Optional[BaseException]) -> None:
        if not settle():
            return
        if error is None:
            try:
                future.set_result(make(answer))
                return
            except Exception as failed:
                error = failed
        future.set_exception(error)

    def cancel(ended: "Future[T]") -> None:
        if ended.cancelled():
            started.cancel()
            settle()

    started = pending.start(done)
    future.add_done_callback(cancel)
    return future


async def settle(pending: Pending, make: Callable[[Any], T]) -> T:
    """Awaits the operation. Cancelling the task cancels the operation."""
    return await asyncio.wrap_future(submit(pending, make))


def gather(pending: Iterable[Pending], make: Callable[[Any], T]) -> list[T]:
    """Runs operations at once and returns their results in order. After an error or Ctrl-C, the rest is cancelled."""
    futures: "list[Future[T]]" = []
    try:
        futures.extend(submit(one, make) for one in pending)
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


async def gather_async(pending: Iterable[Pending], make: Callable[[Any], T]) -> list[T]:
    """Like `gather`, for asyncio."""
    futures: "list[asyncio.Future[T]]" = []
    try:
        futures.extend(asyncio.wrap_future(submit(one, make)) for one in pending)
        return [await future for future in futures]
    finally:
        for future in futures:
            future.cancel()
