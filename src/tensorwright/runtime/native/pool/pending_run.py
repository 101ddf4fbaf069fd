"""Calls that run in the background: `Executable.run_async`.

    run = executable.run_async({"image": array})
    run.result()              waits, and returns the results of `run`
    run.cancel()              before it has begun, or between two of its steps
    await run                 in a coroutine; cancelling the task cancels the run

The runs of a process start in order, on as many threads as calls share cores.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from tensorwright.base import Array, knobs

Results = dict[str, Array]


class Stop:
    """A word that says whether a call must stop; native code looks at it before each step."""

    __slots__ = ("_word", "address")

    def __init__(self) -> None:
        self._word = ctypes.c_int64(0)
        self.address = ctypes.addressof(self._word)

    def set(self) -> None:
        """Ask the call to stop."""
        self._word.value = 1

    def __bool__(self) -> bool:
        return bool(self._word.value)


NEVER = Stop()
"""The stop of calls that cannot be stopped."""


class PendingRun(Future[Results]):
    """The results of a call that runs in the background, as a Future of the standard library.

    The arrays that the call reads must not change before it is done.
    """

    def __init__(self, work: Callable[[Stop], Results]) -> None:
        super().__init__()
        self._stop = Stop()
        self._work = work

    def cancel(self) -> bool:
        """Cancel the call; False if it is done. A running call stops before its next step."""
        if super().cancel():
            return True
        if self.done():
            return self.cancelled()
        self._stop.set()
        return True

    def cancelled(self) -> bool:
        """Whether it was cancelled; a running call counts once it has stopped."""
        return super().cancelled() or (self.done() and isinstance(self.exception(), CancelledError))

    def __await__(self) -> Generator[Any, None, Results]:
        asyncio = importlib.import_module("asyncio")  # imported late, so that others start sooner
        waiting: Generator[Any, None, Results] = asyncio.wrap_future(self).__await__()
        return waiting

    def _do(self) -> Results:
        return self._work(self._stop) if self.set_running_or_notify_cancel() else {}

    def _end(self, done: Future[Results]) -> None:
        error = done.exception()
        if super().cancelled():
            return
        if self._stop:
            self.set_exception(CancelledError())
        elif error is not None:
            self.set_exception(error)
        else:
            self.set_result(done.result())


def start_run(work: Callable[[Stop], Results]) -> PendingRun:
    """Run a function in the background; if its stop is set, it ends early, with any result."""
    run = PendingRun(work)
    _threads().submit(run._do).add_done_callback(run._end)
    return run


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(knobs.CORES.get(), thread_name_prefix="tensorwright-run")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)
