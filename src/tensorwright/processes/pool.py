"""Worker processes that do jobs at the same time, and outlive jobs that crash or hang.

Workers are spawned, never forked: the first parallel region of a child forked from a process that
has run OpenMP hangs. They stay, so that starting them is paid once; one that dies or exceeds its
time is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Self

from tensorwright.base import InternalError
from tensorwright.processes.child import Child
from tensorwright.processes.outcomes import Died, Done, Job, Outcome, Raised, Stopped, TimedOut

_TICK_S = 0.2  # how often the wish to stop is looked at


def never() -> bool:
    """The wish of a caller who never wants to stop."""
    return False


class WorkerPool:
    """So many processes; use it in a `with` block. Not for several threads.

    count     how many                   first   a job that every process does before all others
    variables added to the processes' environment, unless they are set there
    Jobs may come in any order to any process, so they must not depend on each other.
    """

    def __init__(
        self,
        count: int,
        first: Job | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._count = count
        self._first = first
        self._variables = dict(variables or {})
        self._children: list[Child] = []
        self._is_closed = False

    def start(self) -> None:
        """Start what is missing; returns at once, while the processes get ready."""
        if self._is_closed:
            raise InternalError(stage="tune", where="worker pool", reason="it is closed")
        while len(self._children) < self._count:
            self._children.append(Child(self._variables))

    def run(
        self, jobs: Sequence[Job], limit_s: float, should_stop: Callable[[], bool] = never
    ) -> list[Outcome]:
        """Do the jobs, each within `limit_s` from its start; the outcomes in their order.

        After `should_stop` turns true no job is begun, and those under way are abandoned.
        Raises:  InternalError if processes cannot be started.
        """
        self.start()
        outcomes: list[Outcome] = [Stopped() for _ in jobs]
        waiting = list(range(len(jobs)))[::-1]
        busy: dict[Child, int] = {}
        while waiting or busy:
            if should_stop():
                for child in busy:
                    self._drop(child)
                break
            self._hand_out(jobs, waiting, busy, limit_s)
            for child, index in self._finished(busy):
                outcomes[index] = self._outcome(child, limit_s)
                del busy[child]
        return outcomes

    def close(self) -> None:
        """End the processes. Closing twice does no harm."""
        self._is_closed = True
        for child in self._children:
            child.close()
        self._children.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hand_out(
        self, jobs: Sequence[Job], waiting: list[int], busy: dict[Child, int], limit_s: float
    ) -> None:
        """Give every idle process a job, once it is ready; start what is missing."""
        self.start()
        for child in list(self._children):
            if not waiting or child in busy:
                continue
            if not child.is_ready and not self._greet(child, must_wait=not busy):
                continue
            index = waiting.pop()
            child.send(jobs[index], limit_s)
            busy[child] = index

    def _greet(self, child: Child, must_wait: bool) -> bool:
        """Whether a new process is ready; waits for a moment only."""
        if not child.connection.poll(_TICK_S if must_wait else 0):
            if time.monotonic() > child.deadline:
                self._drop(child)
                raise InternalError(
                    stage="tune", where="worker process", reason="it did not get ready in time"
                )
            return False
        try:
            child.greet()
        except InternalError:
            self._children.remove(child)
            raise
        if self._first is not None:
            child.send(self._first, limit_s=_TICK_S)
            answer = child.receive()
            if not isinstance(answer, Done):
                self._drop(child)
                raise InternalError(stage="tune", where="worker process", reason=str(answer))
        return True

    def _finished(self, busy: dict[Child, int]) -> list[tuple[Child, int]]:
        """The processes that have answered, died or run out of time; waits for one, a moment."""
        if not busy:
            return []
        now = time.monotonic()
        nearest = min(child.deadline for child in busy) - now
        wait([child.connection for child in busy], max(0.0, min(_TICK_S, nearest)))
        now = time.monotonic()
        return [
            (child, index)
            for child, index in busy.items()
            if child.connection.poll() or now > child.deadline
        ]

    def _outcome(self, child: Child, limit_s: float) -> Done | Raised | Died | TimedOut:
        if not child.connection.poll():
            self._drop(child)
            return TimedOut(limit_s)
        answer = child.receive()
        if isinstance(answer, Died):
            self._children.remove(child)
        return answer

    def replace(self) -> None:
        """End all processes; the next jobs are done by fresh ones."""
        for child in self._children:
            child.kill()
        self._children.clear()

    def _drop(self, child: Child) -> None:
        child.kill()
        self._children.remove(child)
