"""The benchmark's side of a competitor: it starts, asks, stops and resumes the process.

Outside its turn the whole process is stopped (SIGSTOP), so that no thread of any runtime can spin;
a guard ends it when the benchmark dies. Turns are taken under a lock in the folder of the knob
`home`, so that two benchmarks of one user do not disturb each other.

Hold other runtimes to the vectors of a target that has narrower ones than this machine.

Runtimes choose their kernels by the processor's features. If a setting limits the choice, it is an
environment variable that their libraries read when they are loaded. ONNX Runtime has no such
setting: its kernels, MLAS, look only at the processor. OpenVINO calls MLAS for some products of
matrices, too.

The jobs of a competitor's process, on the one competitor that it holds.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Barrier, Semaphore, Thread
from time import perf_counter
from types import MappingProxyType
from typing import Any, Self

from tensorwright.base import CpuTarget, InternalError, detect_target
from tensorwright.peers.process import protocol
from tensorwright.processes import Child, Done, Guard, Job, Raised, TimedOut, hold_turn

_VARIABLES: MappingProxyType[int, MappingProxyType[str, str]] = MappingProxyType(
    {
        32: MappingProxyType(
            {
                "ONEDNN_MAX_CPU_ISA": "AVX2",  # oneDNN, in OpenVINO and in PyTorch
                "OV_CPU_MAX_ISA": "AVX2",  # OpenVINO's own kernels, from 2026.4 on
                "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own kernels; TorchInductor's vectors
                "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # products of matrices in PyTorch
                "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",  # the features that its compiler may use
            }
        )
    }
)


def is_narrower(target: CpuTarget | None) -> bool:
    """Whether this machine has wider vectors than the target."""
    return target is not None and target.vector_bytes < detect_target().vector_bytes


def holding_variables(target: CpuTarget | None) -> MappingProxyType[str, str]:
    """The variables of a competitor's process that hold it to the target; may be empty."""
    if target is None or not is_narrower(target):
        return MappingProxyType({})
    return _VARIABLES.get(target.vector_bytes, MappingProxyType({}))


def is_held(info: protocol.PeerInfo, target: CpuTarget | None) -> bool | None:
    """Whether a loaded competitor keeps to the target's vectors; None if the target has the widest.

    A competitor that does not tell the width of its vectors counts as one that does not keep to it.
    """
    if target is None or not is_narrower(target):
        return None
    return 0 < info.vector_bytes <= target.vector_bytes


_REPEATS = 5
_held: list[protocol.Peer] = []


def create(kind: str) -> None:
    """Make the competitor; the first job of its process."""
    _held[:] = [protocol.create_peer(protocol.find_kind(kind))]


def load(path: str, threads: int, options: Mapping[str, Any]) -> protocol.PeerInfo:
    """As `Peer.load`."""
    return _held[0].load(path, threads, options)


def bind(inputs: protocol.Arrays) -> None:
    """As `Peer.bind`."""
    _held[0].bind(inputs)


def check() -> protocol.Arrays:
    """As `Peer.run`.

    Raises:  ValueError for an output of objects.
    """
    return protocol.plain_arrays(_held[0].run())


def time(number: int, repeat: int) -> tuple[float, ...]:
    """As `time_calls`, for the competitor."""
    return time_calls(_held[0], number, repeat)


def time_calls(peer: protocol.Peer, number: int, repeat: int) -> tuple[float, ...]:
    """Seconds per `Peer.call`: `repeat` samples, each the mean of `number` calls."""
    call = peer.call
    seconds = []
    gc.disable()
    try:
        for _ in range(repeat):
            start = perf_counter()
            for _ in range(number):
                call()
            seconds.append((perf_counter() - start) / number)
    finally:
        gc.enable()
    return tuple(seconds)


def serve(callers: int, at_once: int, duration_s: float) -> tuple[tuple[float, float], ...]:
    """Call the competitor from several threads for a while; returns the start and the seconds of
    each call.

    at_once   the most calls at once, while others wait; 0 for all
    """
    calls = [_held[0].caller() for _ in range(callers)]
    allowed = Semaphore(at_once or callers)
    start = Barrier(callers)
    results: list[list[tuple[float, float]]] = [[] for _ in calls]

    def work(number: int) -> None:
        call, times = calls[number], results[number]
        start.wait()
        end = perf_counter() + duration_s
        while (began := perf_counter()) < end:
            with allowed:
                call()
            times.append((began, perf_counter() - began))

    threads = [Thread(target=work, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(each for times in results for each in times)


def time_file(
    kind: str, path: str, inputs: protocol.Arrays, threads: int, budget_s: float
) -> float:
    """Seconds per call of a model in a new competitor: the fastest of some samples."""
    peer = protocol.create_peer(protocol.find_kind(kind))
    peer.load(path, threads, {})
    peer.bind(inputs)
    peer.run()
    (once_s,) = time_calls(peer, 1, 1)
    number = max(1, min(1000, int(budget_s / _REPEATS / max(once_s, 1e-7))))
    fastest_s = min(time_calls(peer, number, _REPEATS))
    peer.park()
    return fastest_s


def park() -> None:
    """As `Peer.park`."""
    _held[0].park()


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
        self._limit_s = protocol.find_kind(kind).limit_s if limit_s is None else limit_s
        self._turns = 0
        self._child = Child(
            Job(create, (kind,)), holding_variables(target), start_limit_s=self._limit_s
        )
        self._guard = Guard(self._child.pid)

    def load(
        self, path: str, threads: int, options: Mapping[str, object] | None = None
    ) -> protocol.PeerInfo:
        """Read the model at `path` and prepare it for a number of threads."""
        info: protocol.PeerInfo = self._ask(load, path, threads, dict(options or {}))
        return info

    def bind(self, inputs: protocol.Arrays) -> None:
        """Give the inputs of the calls to come.

        Raises:  ValueError for an array of objects.
        """
        self._ask(bind, protocol.plain_arrays(inputs))

    def check(self, inputs: protocol.Arrays) -> protocol.Arrays:
        """Give inputs, and return the outputs for them."""
        self.bind(inputs)
        outputs: protocol.Arrays = self._ask(check)
        return outputs

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        """Seconds per call: `repeat` samples, each the mean of `number` calls."""
        samples_s: tuple[float, ...] = self._ask(time, number, repeat)
        return samples_s

    def serve(
        self, callers: int, duration_s: float, at_once: int = 0
    ) -> tuple[tuple[float, float], ...]:
        """Call from several threads for a while; returns the start and the seconds of each call.

        at_once   the most calls at once, while others wait; 0 for all
        """
        calls: tuple[tuple[float, float], ...]
        calls = self._ask(serve, callers, at_once, duration_s)
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
            raise self._failure(protocol.FailureKind.CRASHED, error.reason) from None
        match outcome:
            case Done(value):
                return value
            case Raised(kind, text):
                raise self._failure(protocol.FailureKind.REFUSED, f"{kind}: {text}")
            case TimedOut():
                reason = f"no answer to {command.__name__!r} within {self._limit_s:g} s"
                raise self._failure(protocol.FailureKind.HUNG, reason)
            case _:
                raise self._failure(protocol.FailureKind.CRASHED, str(outcome))

    def _park(self) -> None:
        """End the turn: tell the runtime, then stop the whole process."""
        with contextlib.suppress(protocol.PeerFailed):
            self._ask_now(park)
        self._signal("SIGSTOP")

    def _signal(self, name: str) -> None:
        number = getattr(signal, name, None)  # Windows has no such signals
        if number is not None:
            self._child.signal(number)

    def _failure(self, kind: protocol.FailureKind, reason: str) -> protocol.PeerFailed:
        return protocol.PeerFailed(where=f"peer {self.name}", reason=reason, kind=kind.value)
