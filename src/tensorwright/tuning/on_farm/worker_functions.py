"""What a worker of a farm does for a session: build a candidate, measure candidates.

Measuring is as in a local session, by a `ChildRunner`; before it the worker waits until it has the
machine for itself and the machine is quiet.  Every minute it times a reference kernel first: a
device that drifts from what the client expects of it measures nothing.

The messages of a session to workers, as plain data: requests to build, workloads, targets.

The gate of a machine of a farm: many builds at once, or one measurement alone.

All workers of a user on a machine share two locks, in the folder of the knob `home`.  The turn of
`processes.hold_turn` is held by a measurement.  Builds share a lock that a measurement takes
exclusively; a measurement that waits lets no further build begin.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tensorwright import artifacts, base, expr
from tensorwright.farm import Payload, worker_name
from tensorwright.graph import Workload, program
from tensorwright.machine import LoadWatch
from tensorwright.processes import hold_turn, never
from tensorwright.records import Status, read_workload
from tensorwright.schedule import state_of
from tensorwright.tuning.measuring import (
    BuildFailed,
    BuildStopped,
    ChildRunner,
    Measurement,
    MeasureOptions,
    PoolBuilder,
)
from tensorwright.tuning.population import default_candidate
from tensorwright.tuning.space import Space, sketches_of

_TARGETS = base.kinds_of(base.CpuTarget, base.GpuTarget, base.GpuApi)
_KINDS = {**expr.EXPRESSION_KINDS, **_TARGETS, **base.kinds_of(Measurement, MeasureOptions, Status)}


@dataclass(frozen=True, slots=True)
class Race:
    """Kernels of one workload that take turns; one alone races against the best so far.

    workload   which of a unit's          kernels   how many          threads   that they use
    best_s     seconds of the best; None for no race
    """

    workload: int
    kernels: int
    threads: int
    best_s: float | None = None

    def limit_s(self, other_s: float) -> float:
        """The seconds to race against if another kernel took `other_s`."""
        return math.inf if self.best_s is None else min(self.best_s, other_s)


def fastest_s(measured: Measurement) -> float:
    """The least time of a measurement; infinite where it has none to race against."""
    return min(measured.times_s) if measured.status is Status.OK else math.inf


def write(value: object) -> object:
    """A target, options or measurements as plain data."""
    return base.to_data(value)


def read(data: object) -> Any:
    """The inverse of `write`.  Raises: ValueError for anything else."""
    return base.from_data(data, _KINDS)


def request_data(request: artifacts.BuildRequest) -> object:
    """A request to build, as plain data."""
    constants = tuple(sorted(request.constants))
    program = request.name, request.tensors, request.outputs, constants
    return write((*program, request.trace, request.target))


def read_request(data: object) -> artifacts.BuildRequest:
    """The inverse of `request_data`.  Raises: ValueError for anything else."""
    name, tensors, outputs, constants, trace, target = read(data)
    return artifacts.BuildRequest(name, tensors, outputs, frozenset(constants), trace, target)


_QUIET_S = 0.1
_QUIET_LIMIT_S = 30.0


@contextmanager
def while_building() -> Iterator[None]:
    """Build inside the block; waits for measurements to end."""
    with base.hold_home_lock("builds.waiting", never, is_shared=True):
        pass
    with base.hold_home_lock("builds.lock", never, is_shared=True):
        yield


@contextmanager
def while_measuring(should_stop: Callable[[], bool]) -> Iterator[bool]:
    """Measure inside the block, alone on this machine as far as this user goes.

    Gives False if `should_stop` turned true while waiting.
    """
    with ExitStack() as stack:
        is_held = stack.enter_context(hold_turn(should_stop))
        if is_held:
            stack.enter_context(base.hold_home_lock("builds.waiting", should_stop))
            is_held = stack.enter_context(base.hold_home_lock("builds.lock", should_stop))
        yield is_held


class QuietCheck:
    """Looks whether others use the machine; mutable.

    A look takes a tenth of a second, so the load since the last look counts where that was longer.
    """

    def __init__(self, limit_s: float = _QUIET_LIMIT_S) -> None:
        self._limit_s = limit_s
        self._watch = LoadWatch()

    def wait(self, should_stop: Callable[[], bool]) -> str:
        """Wait until the machine is quiet; "" then, else what used it all the time."""
        deadline = time.monotonic() + self._limit_s
        while True:
            if self._watch.seconds < _QUIET_S:
                time.sleep(_QUIET_S - self._watch.seconds)
            load = self._watch.load()
            self._watch = LoadWatch()
            if not load.is_busy:
                return ""
            if should_stop() or time.monotonic() > deadline:
                return str(load)


_DRIFT = 1.4
"""The ratio to the expected time, or its inverse, from which a reference kernel has drifted."""

_QUIET_EVERY_S = 10.0
_REFERENCE_EDGE = 192
_TRIES = 4
_PAUSE_S = 1.0


_OF_THREAD = threading.local()


def is_near(time_s: float, expected_s: float) -> bool:
    """Whether devices of one kind may take both times for the reference kernel."""
    return 1 / _DRIFT < time_s / expected_s < _DRIFT


def build_candidate(payload: Payload, should_stop: Callable[[], bool]) -> Payload | None:
    """Build one candidate: a request -> a kernel as the only blob, or {status, error}.

    The time that a build may take does not run while a measurement keeps it waiting.
    """
    builder: PoolBuilder | None = getattr(_OF_THREAD, "builder", None)
    if builder is None:
        builder = _OF_THREAD.builder = PoolBuilder(1)
    request = read_request(payload.data)
    with while_building():
        (built,) = builder.build([request], should_stop)
    if isinstance(built, BuildStopped):
        return None
    if isinstance(built, BuildFailed):
        return Payload({"status": built.status.value, "error": built.error})
    return Payload({"seconds": built.seconds}, (artifacts.pack_kernel(built),))


@dataclass(slots=True)
class _Measuring:
    """The state of a worker between measurements; mutable.

    settings   of the runner            reference_s   of the reference kernel, when timed last
    """

    settings: tuple[Any, ...] = ()
    runner: ChildRunner | None = None
    references: ChildRunner | None = None
    reference_s: float = 0.0
    referred_at: float = -math.inf
    looked_at: float = -math.inf
    quiet: QuietCheck = field(default_factory=lambda: QuietCheck(3.0))

    def runner_for(self, options: MeasureOptions, seed: int, target: base.Target) -> ChildRunner:
        """The runner with these options; the one before is closed where it had others."""
        settings = (options, seed, isinstance(target, base.CpuTarget))
        if self.runner is None or self.settings != settings:
            if self.runner is not None:
                self.runner.close()
            self.runner = ChildRunner(options, seed, bounds_addresses=settings[2])
            self.settings = settings
        return self.runner

    def check_reference(
        self,
        target: base.Target,
        expected_s: float,
        every_s: float,
        should_stop: Callable[[], bool],
    ) -> str:
        """Time the reference kernel if that was not done lately; how far it is off, "" for not."""
        if time.monotonic() - self.referred_at < every_s:
            return ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S)
            self.reference_s = self._reference(target)
            if not expected_s or is_near(self.reference_s, expected_s):
                self.referred_at = time.monotonic()
                return ""
            if should_stop():
                break
        return (
            f"the reference kernel takes {self.reference_s * 1e3:.3g} ms, "
            f"not {expected_s * 1e3:.3g} ms"
        )

    def _reference(self, target: base.Target) -> float:
        workload, kernel = _reference_kernel(target)
        if self.references is None:
            bounds = isinstance(target, base.CpuTarget)
            self.references = ChildRunner(MeasureOptions(), 0, bounds_addresses=bounds)
        measured = self.references.measure(workload, [kernel], 1, math.inf)
        if not measured or measured[0].status is not Status.OK:
            return 0.0
        return min(measured[0].times_s)

    def look(self, should_stop: Callable[[], bool]) -> str:
        """Wait until the machine is quiet, now and then; what used it, "" if nothing did."""
        if time.monotonic() - self.looked_at < _QUIET_EVERY_S:
            return ""
        used = self.quiet.wait(should_stop)
        self.looked_at = time.monotonic()
        return used


_MEASURING = _Measuring()


@functools.lru_cache(maxsize=4)
def _reference_kernel(target: base.Target) -> tuple[Workload, artifacts.Kernel]:
    """The kernel by which devices are compared: a product of two matrices, by rule."""
    edge = _REFERENCE_EDGE
    a, b = expr.placeholder("a", (edge, edge)), expr.placeholder("b", (edge, edge))
    k = expr.reduce_axis("k", edge)
    c = expr.compute("c", (edge, edge), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))
    workload = program([c])
    sketch = next(iter(sketches_of(state_of(workload), target)), None)
    if sketch is None:
        raise base.InternalError(
            stage="farm", where="reference kernel", reason="it has no schedule"
        )
    trace = default_candidate(Space((sketch,))).trace
    return workload, artifacts.build(artifacts.build_request(workload, trace, target))


def measure_candidates(payload: Payload, should_stop: Callable[[], bool]) -> Payload | None:
    """Measure built candidates, race by race.

    Takes {races, workloads, target, options, seed, reference_s, reference_every_s} and blobs: so
    many workloads, then the kernels of all races; gives {measured, worker, reference_s, load,
    seconds}, or {drift, worker}.
    """
    data = payload.data
    target, options = read(data["target"]), read(data["options"])
    races = [Race(*each) for each in data["races"]]
    with while_measuring(should_stop) as is_held:
        if not is_held:
            return None
        load = _MEASURING.look(should_stop)
        drift = _MEASURING.check_reference(
            target, data["reference_s"], data["reference_every_s"], should_stop
        )
        if drift:
            return Payload({"drift": drift, "worker": worker_name()})
        runner = _MEASURING.runner_for(options, data["seed"], target)
        started = time.monotonic()
        measured = _run_races(races, payload.blobs, data["workloads"], target, runner, should_stop)
        seconds = time.monotonic() - started
    if measured is None:
        return None
    return Payload(
        {
            "measured": write(tuple(measured)),
            "worker": worker_name(),
            "reference_s": _MEASURING.reference_s,
            "load": load,
            "seconds": seconds,
        }
    )


def _run_races(
    races: Sequence[Race],
    blobs: tuple[bytes, ...],
    workloads: int,
    target: base.Target,
    runner: ChildRunner,
    should_stop: Callable[[], bool],
) -> list[Measurement] | None:
    """The measurements of all kernels, in order; None if the client no longer wants them.

    A kernel that races knows of those before it that compute the same.
    """
    kernels = iter([artifacts.unpack_kernel(blob, target) for blob in blobs[workloads:]])
    best_s: dict[int, float] = {}
    measured: list[Measurement] = []
    for race in races:
        workload = _workload(blobs[race.workload])
        own = list(itertools.islice(kernels, race.kernels))
        limit_s = race.limit_s(best_s.get(race.workload, math.inf))
        times = runner.measure(workload, own, race.threads, limit_s, should_stop)
        if not times:
            return None
        measured += times
        best_s[race.workload] = min(best_s.get(race.workload, math.inf), *map(fastest_s, times))
    return measured


@functools.lru_cache(maxsize=64)
def _workload(blob: bytes) -> Workload:
    return read_workload(json.loads(blob))
