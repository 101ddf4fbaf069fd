"""The benchmark's end of a competitor: starts its process, asks it, stops and resumes it.

Outside its turn the whole process is stopped (SIGSTOP), so that nothing in it can spin, whatever
the runtime; a guard ends it when the benchmark dies. Turns are taken under a lock in the knob
`home`, so that two benchmarks of one user do not measure each other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import tensorwright
from tensorwright.base import knobs, make_folder, output_error
from tensorwright.peers.process.guard import Guard
from tensorwright.peers.process.kinds import find_kind
from tensorwright.peers.process.protocol import (
    Arrays,
    FailureKind,
    Message,
    PeerFailed,
    PeerInfo,
    decode,
    encode,
    read_arrays,
    write_arrays,
)
from tensorwright.records import hold_lock

_QUIT_S = 2.0
_TAIL_LINES = 8


@contextmanager
def hold_turn() -> Iterator[None]:
    """Be the only one of this user's benchmarks that measures, inside the block."""
    path = make_folder(knobs.HOME.get()) / "turn.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise output_error(path, error) from error
    try:
        with hold_lock(descriptor):
            yield
    finally:
        os.close(descriptor)


class PeerProcess:
    """One competitor in a process of its own; use it in a `with` block. Not for several threads.

    name     for people                        limit_s  longest a command may take before the
    kind     a name in KINDS                            process is ended and counts as hung; that
                                                        of its kind where None
    Raises:  PeerFailed, from every method, if the competitor refuses, crashes or hangs;
             UsageError for an unknown kind, MachineError for one that is not installed.
    """

    def __init__(self, name: str, kind: str, limit_s: float | None = None) -> None:
        found = find_kind(kind)
        self.name = name
        self._limit_s = found.limit_s if limit_s is None else limit_s
        self._turns = 0
        self._folder = tempfile.TemporaryDirectory(prefix="tensorwright-peer-")
        self._errors: IO[bytes] = (Path(self._folder.name) / "errors.txt").open("w+b")
        self._unread = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tensorwright.peers.process.worker", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            process_group=0,
        )
        self._guard = Guard(self._process.pid)

    def load(
        self, path: str, threads: int, options: Mapping[str, object] | None = None
    ) -> PeerInfo:
        """Read the model at `path` and prepare it for so many threads."""
        answer = self._ask("load", path=path, threads=threads, options=dict(options or {}))
        return PeerInfo(answer["version"], answer["detail"])

    def bind(self, inputs: Arrays) -> None:
        """Give the inputs of the calls to come."""
        path = Path(self._folder.name) / "inputs.npz"
        names = write_arrays(path, inputs)
        self._ask("bind", arrays=str(path), names=names)
        path.unlink()

    def check(self, inputs: Arrays) -> Arrays:
        """Give inputs, and return the outputs for them."""
        self.bind(inputs)
        path = Path(self._folder.name) / "outputs.npz"
        names = self._ask("check", arrays=str(path))["names"]
        outputs = read_arrays(path, names)
        path.unlink()
        return outputs

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        """Seconds per call: `repeat` samples, each the mean of `number` calls."""
        return tuple(self._ask("time", number=number, repeat=repeat)["seconds"])

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Run, alone, inside the block; stopped after it. Turns may be nested."""
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
        with contextlib.suppress(OSError):
            self._send({"command": "quit"})
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(_QUIT_S)
        except subprocess.TimeoutExpired:
            self._kill()
        self._errors.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str, **arguments: Any) -> Message:
        with self.turn():
            return self._ask_now({"command": command, **arguments})

    def _ask_now(self, message: Message) -> Message:
        try:
            self._send(message)
            answer = decode(self._read_line(time.monotonic() + self._limit_s))
        except TimeoutError:
            self._kill()
            reason = f"no answer to {message['command']!r} within {self._limit_s:g} s"
            raise self._failure(FailureKind.HUNG, reason) from None
        except (OSError, ValueError):
            self._kill()
            raise self._failure(FailureKind.CRASHED, self._describe_end()) from None
        except BaseException:  # Ctrl-C: the answer would be taken for that of the next command
            self._kill()
            raise
        if not answer["ok"]:
            raise self._failure(FailureKind.REFUSED, answer["reason"])
        return answer

    def _send(self, message: Message) -> None:
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            raise BrokenPipeError("the process has ended")
        pipe.write(encode(message))
        pipe.flush()

    def _read_line(self, deadline: float) -> bytes:
        """The next line. Raises TimeoutError, or OSError at the end of the pipe."""
        pipe = self._process.stdout
        if pipe is None or pipe.closed:
            raise BrokenPipeError("the process has ended")
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                part = os.read(pipe.fileno(), 1 << 16)
                if not part:
                    raise BrokenPipeError("the process has ended")
                self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _park(self) -> None:
        """End the turn: a word to the runtime, then the whole process stands still."""
        if self._process.poll() is None:
            with contextlib.suppress(PeerFailed):
                self._ask_now({"command": "park"})
        self._signal("SIGSTOP")

    def _signal(self, name: str) -> None:
        number = getattr(signal, name, None)  # Windows has no such signals
        if number is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _describe_end(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return "\n".join([f"the process ended with {cause}", *lines])

    def _failure(self, kind: FailureKind, reason: str) -> PeerFailed:
        return PeerFailed(where=f"peer {self.name}", reason=reason, kind=kind.value)


def _environment() -> dict[str, str]:
    """The environment of the worker: it finds the package where this process found it."""
    source = str(Path(tensorwright.__file__).parents[1])
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
