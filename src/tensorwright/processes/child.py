"""The parent's side of a worker process, which is spawned and can be killed.

It is not forked: if a process has run OpenMP, the first parallel region of its forked child hangs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from tensorwright.base import InternalError
from tensorwright.processes.job import Died, Done, Job, Outcome, Raised, TimedOut

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
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
                env=_environment() | dict(variables or {}),
                process_group=0,
            )
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


def _environment() -> dict[str, str]:
    """The environment of the child, in which it finds the same modules as this process."""
    paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - "" stands for here
    return os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
