"""Time competitors in turns, the only way in which their times can be compared.

Runtimes disturb each other: threads that spin after a call take the cores from the next runtime. So
each competitor runs in a separate process, one at a time. At the start of its turn it warms up, at
the end it is stopped. Every competitor has a turn in every round, and the order is reversed from
one round to the next, so that a slow phase of the machine affects all of them.

Compare versions of one network in one runtime: their answers, and their times in turns.

Unlike different runtimes (`rotation.py`), all versions are in one process, so that only the
networks differ.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from tensorwright.base import CpuTarget, UsageError
from tensorwright.peers.process.process import holding_variables, time_calls
from tensorwright.peers.process.protocol import (
    Arrays,
    FailureKind,
    Peer,
    PeerFailed,
    create_peer,
    find_kind,
    plain_arrays,
)
from tensorwright.processes import Child, Done, Job, Raised, TimedOut, hold_turn

LEAST_SAMPLE_S = 1e-3
MOST_SAMPLE_S = 50e-3
WARM_UP_S = 0.05
TURN_S = 0.2
MOST_REPEATS = 20
LEAST_ROUNDS = 3


class Competitor(Protocol):
    """The protocol of a competitor in a rotation; `PeerProcess` fulfils it."""

    @property
    def name(self) -> str:
        """For people."""

    def turn(self) -> AbstractContextManager[None]:
        """Let it run inside the block, alone, and stop it after the block."""

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        """Seconds per call: `repeat` samples, each the mean of `number` calls."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The speed of a competitor in seconds per call; `samples_s` in the order of measuring.

    median_s  of the samples          spread  (90th - 10th percentile) / median
    """

    name: str
    median_s: float
    samples_s: tuple[float, ...]
    spread: float

    def percentile_s(self, percent: float) -> float:
        """The sample below which a percentage of all lies."""
        return percentile(self.samples_s, percent)


@dataclass(frozen=True, slots=True)
class Failure:
    """A competitor that could not be timed, and why."""

    name: str
    kind: FailureKind
    reason: str


Result = Timing | Failure


@dataclass(frozen=True, slots=True)
class _Plan:
    """One turn: `warm_repeat` samples are dropped, then `repeat` are kept."""

    number: int
    repeat: int
    warm_repeat: int
    turn_s: float


def rotate(
    competitors: Sequence[Competitor],
    rounds: int = 11,
    min_time_s: float = 10e-3,
    limit_s: float | None = None,
) -> tuple[Result, ...]:
    """Time competitors in turns; the results are in their order.

    rounds      the turns of each competitor
    min_time_s  the least seconds of a sample, 0.001 to 0.05, which decides its number of calls
    limit_s     if all rounds would take longer than this, fewer are run, at least three
    A competitor that fails becomes a `Failure`, and the others go on.
    Raises:  UsageError for a number of rounds below one.
    """
    if rounds < 1:
        raise UsageError(
            stage="peers", where=f"rounds {rounds}", reason="too few", remedy="at least 1"
        )
    sample_s = min(max(min_time_s, LEAST_SAMPLE_S), MOST_SAMPLE_S)
    start = time.monotonic()
    plans: dict[int, _Plan] = {}
    failures: dict[int, Failure] = {}
    for index, competitor in enumerate(competitors):
        try:
            plans[index] = _make_plan(competitor, sample_s)
        except PeerFailed as error:
            failures[index] = _read_failure(competitor, error)
    samples: dict[int, list[float]] = {index: [] for index in plans}
    if limit_s is not None:
        rest_s = limit_s - (time.monotonic() - start)
        rounds = _fit_rounds(rounds, plans, rest_s)
    for number in range(rounds):
        order = sorted(samples.keys() - failures.keys(), reverse=number % 2 == 1)
        for index in order:
            try:
                samples[index] += _take_turn(competitors[index], plans[index])
            except PeerFailed as error:
                failures[index] = _read_failure(competitors[index], error)
    return tuple(
        failures.get(index) or summarise(competitor.name, samples[index])
        for index, competitor in enumerate(competitors)
    )


def summarise(name: str, samples_s: Sequence[float]) -> Timing:
    """The timing of some samples."""
    median_s = statistics.median(samples_s)
    width_s = percentile(samples_s, 90) - percentile(samples_s, 10)
    return Timing(name, median_s, tuple(samples_s), width_s / median_s if median_s else 0.0)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which a percentage of all lies, linear between neighbours."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def ratio(ours: Timing, other: Timing) -> float:
    """The other time over ours: 2.0 means that ours takes half the time."""
    return other.median_s / ours.median_s


def _make_plan(competitor: Competitor, sample_s: float) -> _Plan:
    """Choose the number of calls of a sample, in a separate turn."""
    number = 1
    with competitor.turn():
        competitor.time(1, 1)
        while True:
            call_s = max(min(competitor.time(number, 2)), 1e-9)
            if call_s * number >= sample_s:
                break
            number = min(number * 10, math.ceil(1.1 * sample_s / call_s))
    taken_s = call_s * number
    repeat = min(max(round(TURN_S / taken_s), 1), MOST_REPEATS)
    warm_repeat = max(math.ceil(WARM_UP_S / taken_s), 1)
    return _Plan(number, repeat, warm_repeat, taken_s * (repeat + warm_repeat))


def _fit_rounds(rounds: int, plans: dict[int, _Plan], limit_s: float) -> int:
    round_s = sum(plan.turn_s for plan in plans.values())
    possible = math.floor(limit_s / round_s) if round_s else rounds
    return min(rounds, max(possible, LEAST_ROUNDS))


def _take_turn(competitor: Competitor, plan: _Plan) -> tuple[float, ...]:
    with competitor.turn():
        competitor.time(plan.number, plan.warm_repeat)
        return competitor.time(plan.number, plan.repeat)


def _read_failure(competitor: Competitor, error: PeerFailed) -> Failure:
    return Failure(competitor.name, FailureKind(error.kind), error.reason)


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
