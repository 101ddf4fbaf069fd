"""Worker processes that do jobs at the same time; a job that crashes or hangs harms no other one.

The processes stay, so that each starts once; a process that dies or exceeds its time is replaced.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing.connection import wait
from typing import Self

from tensorwright.base import InternalError
from tensorwright.processes.child import GET_READY, Child
from tensorwright.processes.job import Job, Outcome, Raised, Stopped, never

_TICK_S = 0.2  # between two calls of `should_stop`


class WorkerPool:
    """Worker processes; use it in a `with` block, from one thread.

    count      the most processes; they start when there are jobs for them, or by `start`
    first      a job that every process does before all others
    variables  added to the processes' environment

    A job goes to any process, in any order, so jobs must not depend on each other. Every method
    that needs processes raises InternalError if they cannot be started.
    """

    def __init__(
        self,
        count: int,
        first: Job = GET_READY,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._count = count
        self._first = first
        self._variables = dict(variables or {})
        self._children: list[Child] = []
        self._is_closed = False

    def start(self) -> None:
        """Start all processes, and return while they get ready."""
        self._start(self._count)

    def run(
        self, jobs: Sequence[Job], limit_s: float, should_stop: Callable[[], bool] = never
    ) -> list[Outcome]:
        """Do the jobs, each within `limit_s` from its start; returns the outcomes in order.

        Once `should_stop` is true, no job is begun, and jobs under way are abandoned.
        """
        outcomes: list[Outcome] = [Stopped() for _ in jobs]
        for index, outcome in self._outcomes(jobs, limit_s, should_stop):
            outcomes[index] = outcome
        return outcomes

    def results(
        self,
        jobs: Iterable[Job],
        limit_s: float = math.inf,
        should_stop: Callable[[], bool] = never,
    ) -> Iterator[tuple[int, Outcome]]:
        """Do the jobs; yields the index and the outcome of each as it ends, never `Stopped`.

        One job for each process is taken ahead, so jobs may be many and large.
        Raises:  the TensorwrightError that a job raised.
        """
        for index, outcome in self._outcomes(jobs, limit_s, should_stop):
            if isinstance(outcome, Raised) and outcome.error is not None:
                raise outcome.error
            yield index, outcome

    def replace(self) -> None:
        """End all processes; new ones do the next jobs."""
        for child in self._children:
            child.kill()

    def close(self) -> None:
        """End the processes. Closing twice does no harm."""
        self._is_closed = True
        for child in self._children:
            child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, count: int) -> None:
        """Forget the processes that have ended, and start new ones up to `count`."""
        if self._is_closed:
            raise InternalError(stage="processes", where="worker pool", reason="it is closed")
        self._children = [child for child in self._children if child.end is None]
        for _ in range(len(self._children), count):
            self._children.append(Child(self._first, self._variables))

    def _outcomes(
        self, jobs: Iterable[Job], limit_s: float, should_stop: Callable[[], bool]
    ) -> Iterator[tuple[int, Outcome]]:
        rest = enumerate(jobs)
        waiting = deque(islice(rest, self._count))
        busy: dict[Child, int] = {}
        try:
            while (waiting or busy) and not should_stop():
                self._start(min(self._count, len(waiting) + len(busy)))
                for child in self._children:
                    if child.get_ready() and waiting and child not in busy:
                        busy[child], job = waiting.popleft()
                        child.send(job, min(limit_s, job.limit_s))
                waiting += islice(rest, self._count - len(waiting))
                for child in self._answered(busy):
                    yield busy.pop(child), child.receive()
        finally:
            for child in busy:
                child.kill()

    def _answered(self, busy: Mapping[Child, int]) -> list[Child]:
        """The processes that have answered, died or run out of time; waits a moment for one."""
        watched = [child for child in self._children if child in busy or not child.is_ready]
        remaining_s = min(child.deadline for child in watched) - time.monotonic()
        wait([child.connection for child in watched], max(0.0, min(_TICK_S, remaining_s)))
        return [child for child in busy if child.connection.poll() or child.is_late]
