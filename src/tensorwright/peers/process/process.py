"""The benchmark's side of a competitor: it starts, asks, stops and resumes the process.

Outside its turn the whole process is stopped (SIGSTOP), so that no thread of any runtime can spin;
a guard ends it when the benchmark dies. Turns are taken under a lock in the folder of the knob
`home`, so that two benchmarks of one user do not disturb each other.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import tensorwright.peers.process.jobs as jobs
from tensorwright.base import CpuTarget, InternalError
from tensorwright.peers.process.instructions import holding_variables
from tensorwright.peers.process.kinds import find_kind
from tensorwright.peers.process.protocol import (
    Arrays,
    FailureKind,
    PeerFailed,
    PeerInfo,
    plain_arrays,
)
from tensorwright.processes import Child, Done, Guard, Job, Raised, TimedOut, hold_turn

_QUIT_S = 2.0


class PeerProcess:
    """One competitor in a separate process; use it in a `with` block, from one thread.

    name     for people
    kind     a name in KINDS
    target   whose vectors it is held to, if its settings allow; this machine's if None
    limit_s  seconds of a command after which the process counts as hung; its kind's if None
    Raises:  PeerFailed, from every method, if the competitor refuses, crashes or hangs;
             UsageError for an unknown kind, MachineError for one that is not installed.
    """

    def __init__(
        self, name: str, kind: str, limit_s: float | None = None, target: CpuTarget | None = None
    ) -> None:
        self.name = name
        self._limit_s = find_kind(kind).limit_s if limit_s is None else limit_s
        self._turns = 0
        self._child = Child(
            Job(jobs.create, (kind,)), holding_variables(target), start_limit_s=self._limit_s
        )
        self._guard = Guard(self._child.pid)

    def load(
        self, path: str, threads: int, options: Mapping[str, object] | None = None
    ) -> PeerInfo:
        """Read the model at `path` and prepare it for a number of threads."""
        info: PeerInfo = self._ask(jobs.load, path, threads, dict(options or {}))
        return info

    def bind(self, inputs: Arrays) -> None:
        """Give the inputs of the calls to come.

        Raises:  ValueError for an array of objects.
        """
        self._ask(jobs.bind, plain_arrays(inputs))

    def check(self, inputs: Arrays) -> Arrays:
        """Give inputs, and return the outputs for them."""
        self.bind(inputs)
        outputs: Arrays = self._ask(jobs.check)
        return outputs

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        """Seconds per call: `repeat` samples, each the mean of `number` calls."""
        samples_s: tuple[float, ...] = self._ask(jobs.time, number, repeat)
        return samples_s

    def serve(
        self, callers: int, duration_s: float, at_once: int = 0
    ) -> tuple[tuple[float, float], ...]:
        """Call from several threads for a while; returns the start and the seconds of each call.

        at_once   the most calls at once, while others wait; 0 for all
        """
        calls: tuple[tuple[float, float], ...]
        calls = self._ask(jobs.serve, callers, at_once, duration_s)
        return calls

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let the process run alone inside the block, and stop it afterwards; may be nested."""
        if self._turns:
            yield
            return
        with hold_turn():
            self._signal("SIGCONT")
            self._turns += 1
            try:
                yield
            finally:
                self._turns -= 1
                self._park()

    def close(self) -> None:
        """End the process. Closing twice does no harm."""
        self._guard.close()
        self._signal("SIGCONT")
        with contextlib.suppress(InternalError):
            self._child.do(Job(sys.exit), _QUIT_S)
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: Callable[..., Any], *arguments: object) -> Any:
        with self.turn():
            return self._ask_now(command, *arguments)

    def _ask_now(self, command: Callable[..., Any], *arguments: object) -> Any:
        try:
            outcome = self._child.do(Job(command, arguments), self._limit_s)
        except InternalError as error:
            raise self._failure(FailureKind.CRASHED, error.reason) from None
        match outcome:
            case Done(value):
                return value
            case Raised(kind, text):
                raise self._failure(FailureKind.REFUSED, f"{kind}: {text}")
            case TimedOut():
                reason = f"no answer to {command.__name__!r} within {self._limit_s:g} s"
                raise self._failure(FailureKind.HUNG, reason)
            case _:
                raise self._failure(FailureKind.CRASHED, str(outcome))

    def _park(self) -> None:
        """End the turn: tell the runtime, then stop the whole process."""
        with contextlib.suppress(PeerFailed):
            self._ask_now(jobs.park)
        self._signal("SIGSTOP")

    def _signal(self, name: str) -> None:
        number = getattr(signal, name, None)  # Windows has no such signals
        if number is not None:
            self._child.signal(number)

    def _failure(self, kind: FailureKind, reason: str) -> PeerFailed:
        return PeerFailed(where=f"peer {self.name}", reason=reason, kind=kind.value)
