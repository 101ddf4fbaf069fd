"""Compare versions of one network in one runtime: their answers, and their times in turns.

Unlike different runtimes (`rotation.py`), all versions are in one process, so that only the
networks differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tensorwright.base import CpuTarget
from tensorwright.peers.process.instructions import holding_variables
from tensorwright.peers.process.jobs import time_calls
from tensorwright.peers.process.kinds import create_peer, find_kind
from tensorwright.peers.process.protocol import (
    Arrays,
    FailureKind,
    Peer,
    PeerFailed,
    plain_arrays,
)
from tensorwright.peers.process.rotation import Failure, rotate
from tensorwright.processes import Child, Done, Job, Raised, TimedOut, hold_turn


@dataclass(frozen=True, slots=True)
class Versions:
    """The outputs of each file, and seconds per call in the order of the files, or ()."""

    runtime: str
    outputs: tuple[Arrays, ...]
    times_s: tuple[float, ...] = ()


def compare_versions(
    kind: str,
    paths: Sequence[str],
    inputs: Arrays,
    threads: int,
    *,
    target: CpuTarget | None = None,
    rounds: int = 11,
    limit_s: float = 60.0,
) -> Versions:
    """Run files in a separate process of a runtime, and time them in turns.

    kind    of the runtime, a name in KINDS    rounds   of the rotation; 0 does not time
    target  whose vectors it is held to        limit_s  fewer rounds if they take longer

    Raises:  PeerFailed if the runtime refuses a file, crashes or hangs; UsageError for an unknown
             kind, MachineError for one that is not installed.
    """
    most_s = find_kind(kind).limit_s * len(paths) + limit_s
    job = Job(_run, (kind, tuple(paths), plain_arrays(inputs), threads, rounds, limit_s))
    with hold_turn():
        child = Child(variables=holding_variables(target))
        try:
            outcome = child.do(job, most_s)
        finally:
            child.close()
    match outcome:
        case Done(value):
            versions: Versions = value
            return versions
        case Raised(name, text):
            raise _failure(kind, FailureKind.REFUSED, f"{name}: {text}")
        case TimedOut():
            raise _failure(kind, FailureKind.HUNG, str(outcome))
        case _:
            raise _failure(kind, FailureKind.CRASHED, str(outcome))


def _failure(runtime: str, kind: FailureKind, reason: str) -> PeerFailed:
    return PeerFailed(where=f"peer {runtime}", reason=reason, kind=kind.value)


@dataclass(frozen=True, slots=True)
class _Version:
    """A competitor in this process."""

    name: str
    peer: Peer

    @contextmanager
    def turn(self) -> Iterator[None]:
        yield
        self.peer.park()

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        return time_calls(self.peer, number, repeat)


def _run(
    kind: str, paths: tuple[str, ...], inputs: Arrays, threads: int, rounds: int, limit_s: float
) -> Versions:
    """In the process of the runtime: load, check and time."""
    versions: list[_Version] = []
    runtime = ""
    for path in paths:
        peer = create_peer(find_kind(kind))
        runtime = peer.load(path, threads, {}).version
        peer.bind(inputs)
        versions.append(_Version(path, peer))
    outputs = tuple(plain_arrays(each.peer.run()) for each in versions)
    times_s: list[float] = []
    for result in rotate(versions, rounds, limit_s=limit_s) if rounds else ():
        if isinstance(result, Failure):
            raise _failure(kind, result.kind, result.reason)
        times_s.append(result.median_s)
    return Versions(runtime, outputs, tuple(times_s))
