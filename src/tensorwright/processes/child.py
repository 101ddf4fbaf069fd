"""One worker process as its parent sees it: spawned, never forked, killed when it must be."""

from __future__ import annotations

import contextlib
import os
import pickle  # for the names of its errors: what is read comes from a child that we started
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
from tensorwright.processes.outcomes import Died, Done, Job, Raised

_START_S = 60.0
_QUIT_S = 2.0
_TAIL_BYTES = 2000
_MODULE = "tensorwright.processes.worker"
_GARBLED = (
    pickle.UnpicklingError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    MemoryError,
    TypeError,
    ValueError,
)


class Child:
    """A worker process with at most one job. Not for several threads.

    The process starts at once and gets ready while the caller goes on. `variables` are added to its
    environment, unless they are set there.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        ours, theirs = Pipe()
        self.connection: Connection[Any, Any] = ours
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
                env=_environment(variables or {}),
                process_group=0,
            )
        self.is_ready = False
        self.deadline = time.monotonic() + _START_S

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def send(self, job: Job, limit_s: float) -> None:
        """Hand over a job. A process that has died meanwhile is noticed by `receive`."""
        self.deadline = time.monotonic() + limit_s
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def greet(self) -> None:
        """Take the word that the process is ready.

        Raises:  InternalError if it ended instead: then another one would, too.
        """
        try:
            self.connection.recv_bytes()
        except (EOFError, OSError):
            raise InternalError(
                stage="tune",
                where="worker process",
                reason=f"it did not start: {self._end().cause}",
            ) from None
        self.is_ready = True

    def receive(self) -> Done | Raised | Died:
        """Take the answer; waits for it."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            return self._end()
        except _GARBLED as error:
            self.kill()
            return Died(f"the process garbled its answer ({error})", was_killed=False)
        if isinstance(answer, Done | Raised):
            return answer
        self.kill()
        return Died("the process garbled its answer", was_killed=False)

    def kill(self) -> None:
        """End the process now, wherever it is."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """Let the process end by itself, soon. Closing twice does no harm."""
        self.connection.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_QUIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _end(self) -> Died:
        """How the process ended, in words, with the last of what it printed."""
        try:
            code = self._process.wait(_QUIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        cause = _signal_text(-code) if code < 0 else f"exit code {code}"
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _TAIL_BYTES))
        tail = self._errors.read().decode(errors="replace").strip()
        self.close()
        text = f"the process ended with {cause}" + (f"\n{tail}" if tail else "")
        return Died(text, was_killed=code == -signal.SIGKILL)


def _signal_text(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} ({signal.strsignal(number)})"


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of the child: it finds modules where this process finds them."""
    paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - "" stands for here
    return {**variables, **os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
