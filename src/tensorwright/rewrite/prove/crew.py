"""Processes that do one thing at a time and can be killed.

What is done is a function of a module with one argument, both plain data, so that it could be done
anywhere.  A process that takes longer than the patience is killed, and another takes its place.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Generic, TypeVar

from tensorwright.base import TensorwrightError

__all__ = ["Crew", "Lost"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Lost:
    """No result: the process was killed or ended."""

    reason: str


class Crew(Generic[T, R]):
    """So many processes for one function; they start when there is work and stay until the end.

    Use it in a `with` block, from one thread.
    """

    def __init__(self, task: Callable[[T], R], workers: int, patience_s: float) -> None:
        self._task = task
        self._size = workers
        self._patience_s = patience_s
        self._workers: dict[Connection, _Worker] = {}

    def __enter__(self) -> Crew[T, R]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()

    def run(self, items: Sequence[T]) -> Iterator[tuple[int, R | Lost]]:
        """The results with the places of their items, as they come.

        Raises:  the TensorwrightError that the function raised.
        """
        waiting = list(enumerate(items))[::-1]
        while waiting or any(worker.place is not None for worker in self._workers.values()):
            self._employ(waiting)
            yield from self._collect()

    def _employ(self, waiting: list[tuple[int, T]]) -> None:
        for worker in tuple(self._workers.values()):
            if worker.place is None and not worker.process.is_alive():
                self._dismiss(worker)
        idle = [worker for worker in self._workers.values() if worker.place is None]
        while waiting and (idle or len(self._workers) < self._size):
            if not idle:
                idle.append(_Worker(self._task))
                self._workers[idle[-1].ours] = idle[-1]
            idle.pop().give(*waiting.pop())

    def _collect(self) -> Iterator[tuple[int, Any]]:
        """Wait until something happens, and say what."""
        busy = [worker for worker in self._workers.values() if worker.place is not None]
        first = min(worker.since for worker in busy) + self._patience_s
        ready = wait([worker.ours for worker in busy], max(0.0, first - time.monotonic()))
        for worker in busy:
            place = worker.place
            if place is None:
                continue
            if worker.ours in ready:
                result = worker.take()
                if isinstance(result, TensorwrightError):
                    raise result
                if isinstance(result, Lost):
                    self._dismiss(worker)
                yield place, result
            elif time.monotonic() - worker.since >= self._patience_s:
                self._dismiss(worker)
                yield place, Lost(f"no answer within {self._patience_s:g} seconds")

    def _dismiss(self, worker: _Worker) -> None:
        worker.stop()
        del self._workers[worker.ours]


class _Worker:
    """A process; `place` is that of the item it is at, None where it is idle."""

    def __init__(self, task: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, task), daemon=True)
        _start(self.process)
        theirs.close()
        self.place: int | None = None
        self.since = 0.0

    def give(self, place: int, item: object) -> None:
        self.place, self.since = place, time.monotonic()
        self.ours.send(item)

    def take(self) -> object:
        self.place = None
        try:
            return self.ours.recv()
        except EOFError:
            return Lost("the process ended")

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.ours.close()


def _start(process: BaseProcess) -> None:
    """Start a process that is deaf to Ctrl-C: its parent hears it and ends it."""
    if threading.current_thread() is not threading.main_thread():
        process.start()
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe: Connection, task: Callable[[Any], Any]) -> None:
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(task(item))
        except TensorwrightError as error:
            pipe.send(error)
