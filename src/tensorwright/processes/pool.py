"""Worker processes that do jobs at the same time; a job that crashes or hangs harms no other one.

The processes stay, so that each starts once; a process that dies or exceeds its time is replaced.

The parent's side of a worker process, which is spawned and can be killed.

It is not forked: if a process has run OpenMP, the first parallel region of its forked child hangs.

A worker process that is started before its work is known.

A process needs half a second to import the compiler; it does so while the caller does the same.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from tensorwright.base import InternalError
from tensorwright.processes.job import Died, Done, Job, Outcome, Raised, Stopped, TimedOut, never

_START_S = 60.0
_QUIT_S = 2.0
_TAIL_BYTES = 2000
_MODULE = "tensorwright.processes.worker"
GET_READY = Job(bool)


class Child:
    """A worker process with at most one job, in a separate process group, so Ctrl-C spares it.

    It starts at once and does `first` while the caller goes on; `variables` are added to its
    environment. It ends with its parent. Use it from one thread.
    """

    def __init__(
        self,
        first: Job = GET_READY,
        variables: Mapping[str, str] | None = None,
        start_limit_s: float = _START_S,
    ) -> None:
        ours, theirs = Pipe()
        self.connection: Connection[Any, Any] = ours
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process ends
        with theirs:
            environment = _environment() | dict(variables or {})
            self._process = start_process(theirs.fileno(), self._errors.fileno(), environment)
        self.end: Died | None = None
        self.is_ready = False
        self.send(first, start_limit_s)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def get_ready(self, wait_s: float = 0.0) -> bool:
        """Whether the first job is done; waits up to `wait_s` for it.

        Raises:  InternalError if the job failed, because it would fail in another process, too.
        """
        if not self.is_ready and (self.connection.poll(wait_s) or self.is_late):
            outcome = self.receive()
            if not isinstance(outcome, Done):
                self.kill()
                raise InternalError(
                    stage="processes",
                    where="worker process",
                    reason=f"it did not start: {outcome}",
                )
            self.is_ready = True
        return self.is_ready

    def send(self, job: Job, limit_s: float) -> None:
        """Hand over a job. If the process has ended meanwhile, `receive` notices."""
        self._limit_s = limit_s
        self.deadline = time.monotonic() + limit_s
        with contextlib.suppress(OSError):
            self.connection.send(job)

    @property
    def is_late(self) -> bool:
        """Whether the time for the job is over."""
        return time.monotonic() > self.deadline

    def receive(self) -> Outcome:
        """Take the answer. If there is none, the time is over, and the process is ended."""
        try:
            if not self.connection.poll():
                self.kill()
                return TimedOut(self._limit_s)
            answer = self.connection.recv()
            reason = type(answer).__name__
        except (EOFError, OSError):
            return self._end()
        except Exception as error:  # noqa: BLE001 - bytes that are not pickle raise anything
            answer, reason = None, str(error)
        if isinstance(answer, Done | Raised):
            return answer
        self.kill()
        return Died(f"the process garbled its answer ({reason})", was_killed=False)

    def do(self, job: Job, limit_s: float) -> Outcome:
        """Do a job and wait for it; afterwards the process may have ended."""
        if self.end is not None:
            return self.end
        try:
            self.get_ready(max(0.0, self.deadline - time.monotonic()))
            self.send(job, limit_s)
            self.connection.poll(limit_s)
            return self.receive()
        except BaseException:  # Ctrl-C: the answer would be taken for that of the next job
            self.kill()
            raise

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the process now, wherever it is."""
        self._process.kill()
        self._end()

    def close(self) -> None:
        """Let the process end by itself, soon. Closing twice does no harm."""
        self._let_go()
        self._end()

    def _end(self) -> Died:
        """Wait for the end, and describe it with the last lines that the process printed."""
        if self.end is None:
            try:
                code = self._process.wait(_QUIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            cause = f"exit code {code}"
            if code < 0:
                cause = f"{signal.Signals(-code).name} ({signal.strsignal(-code)})"
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - _TAIL_BYTES))
            tail = self._errors.read().decode(errors="replace").strip()
            text = f"the process ended with {cause}" + (f"\n{tail}" if tail else "")
            self.end = Died(text, was_killed=code == -signal.SIGKILL)
            self._let_go()
            self._errors.close()
        return self.end

    def _let_go(self) -> None:
        self.connection.close()
        if self._process.stdin is not None:
            self._process.stdin.close()


def start_process(
    jobs: int, errors: int, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process that reads jobs from a descriptor, and prints to another one."""
    return subprocess.Popen(
        [sys.executable, "-m", _MODULE, str(jobs)],
        stdin=subprocess.PIPE,
        stdout=errors,
        stderr=errors,
        pass_fds=(jobs,),
        env=environment,
        process_group=0,
    )


def _environment() -> dict[str, str]:
    """The environment of the child, in which it finds the same modules as this process."""
    paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - "" stands for here
    return os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


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


_spares: list[Child] = []


@contextlib.contextmanager
def spare_worker(module: str, function: str, *arguments: Any) -> Iterator[None]:
    """Start a process that calls a function of a module; inside the block `take_spare` returns it.

    It ends with the block unless it was taken.  If it cannot be started, there is no spare process.
    """
    try:
        child = Child(Job(_call, (module, function, *arguments)))
    except OSError:
        yield
        return
    _spares.append(child)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # it was taken
            _spares.remove(child)
            child.kill()


def has_spare() -> bool:
    """Whether `take_spare` would return a process."""
    return bool(_spares)


def take_spare() -> Child | None:
    """Take the spare process, which the caller then ends; None if there is none."""
    try:
        return _spares.pop()
    except IndexError:
        return None


def occupy_spare(job: Job, limit_s: float) -> None:
    """Give the spare process, if there is one, a job until it is taken."""
    child = take_spare()
    if child is not None:
        child.send(job, limit_s)
        _spares.append(child)


def _call(module: str, function: str, *arguments: Any) -> bool:
    """Call a function by name, in the worker."""
    getattr(importlib.import_module(module), function)(*arguments)
    return True
