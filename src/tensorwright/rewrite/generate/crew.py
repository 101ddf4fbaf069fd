"""Chunks of work in processes of their own, or in this one.

Workers are spawned, given a job once and then chunk after chunk; a chunk goes to whoever is free.
What a chunk gives depends on the chunk alone, so the number of workers changes no result.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from tensorwright.base import MachineError, TensorwrightError

__all__ = ["work"]

_SINGLE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


Work = TypeVar("Work")
Found = TypeVar("Found")


def work(
    job: Callable[[Work], Found], chunks: Sequence[tuple[int, Work]], workers: int
) -> Iterator[tuple[int, Found]]:
    """Yield (number, result) of numbered chunks as they are done, in any order.

    job  a plain function of plain data: it, its argument and its result go to other processes

    Raises:  MachineError where a worker ends before its chunk does.
    """
    if workers < 2 or len(chunks) < 2:
        for number, chunk in chunks:
            yield number, job(chunk)
        return
    waiting = list(chunks)[::-1]
    crew: dict[Connection, _Worker] = {}
    try:
        with _one_thread_each():
            for _ in range(min(workers, len(chunks))):
                worker = _Worker(job)
                crew[worker.ours] = worker
        for worker in crew.values():
            worker.give(waiting.pop())
        busy = len(crew)
        while busy:
            for connection in wait(list(crew)):
                worker = crew[connection]  # type: ignore[index]
                number, result = worker.take()
                if waiting:
                    worker.give(waiting.pop())
                else:
                    busy -= 1
                yield number, result
    finally:
        for worker in crew.values():
            worker.stop()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start meanwhile use one thread for products of matrices."""
    before = {name: os.environ.get(name) for name in _SINGLE}
    os.environ.update(dict.fromkeys(_SINGLE, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Worker:
    def __init__(self, job: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, job), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, chunk: tuple[int, Any]) -> None:
        try:
            self.ours.send(chunk)
        except OSError as error:
            raise _ended() from error

    def take(self) -> tuple[int, Any]:
        try:
            answer = self.ours.recv()
        except (EOFError, OSError) as error:
            raise _ended() from error
        if isinstance(answer, TensorwrightError):
            raise answer
        number, result = answer
        return number, result

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.ours.close()


def _ended() -> MachineError:
    return MachineError(
        stage="rules",
        where="a worker process",
        reason="it ended before its work was done; perhaps there was not enough memory",
        remedy="run again with --resume and fewer workers",
    )


def _serve(pipe: Connection, job: Callable[[Any], Any]) -> None:
    """Do chunks until nobody asks; an interrupt of the group is the other side's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            number, chunk = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((number, job(chunk)))
        except TensorwrightError as error:
            pipe.send(error)
