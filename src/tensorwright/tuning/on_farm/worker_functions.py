"""What a worker of a farm does for a session: build a candidate, measure candidates.

Measuring is as in a local session, by a `ChildRunner`; before it the worker waits until it has the
machine for itself and the machine is quiet.  Every minute it times a reference kernel first: a
device that drifts from what the client expects of it measures nothing.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorwright.base import CpuTarget, InternalError, Target
from tensorwright.build import Kernel, build, build_request, pack_kernel, unpack_kernel
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.farm import Payload, worker_name
from tensorwright.graph import Workload, program_workload
from tensorwright.records import Status
from tensorwright.schedule import state_of
from tensorwright.tuning.measuring import (
    BuildFailed,
    BuildStopped,
    ChildRunner,
    Measurement,
    MeasureOptions,
    PoolBuilder,
)
from tensorwright.tuning.on_farm.machine_gate import QuietCheck, while_building, while_measuring
from tensorwright.tuning.on_farm.wire import (
    Race,
    fastest_s,
    read,
    read_request,
    read_workload,
    write,
)
from tensorwright.tuning.population import default_candidate
from tensorwright.tuning.space import Space, sketches_of

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
    return Payload({"seconds": built.seconds}, (pack_kernel(built),))


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

    def runner_for(self, options: MeasureOptions, seed: int, target: Target) -> ChildRunner:
        """The runner with these options; the one before is closed where it had others."""
        settings = (options, seed, isinstance(target, CpuTarget))
        if self.runner is None or self.settings != settings:
            if self.runner is not None:
                self.runner.close()
            self.runner = ChildRunner(options, seed, bounds_addresses=settings[2])
            self.settings = settings
        return self.runner

    def check_reference(
        self, target: Target, expected_s: float, every_s: float, should_stop: Callable[[], bool]
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

    def _reference(self, target: Target) -> float:
        workload, kernel = _reference_kernel(target)
        if self.references is None:
            bounds = isinstance(target, CpuTarget)
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
def _reference_kernel(target: Target) -> tuple[Workload, Kernel]:
    """The kernel by which devices are compared: a product of two matrices, by rule."""
    edge = _REFERENCE_EDGE
    a, b = placeholder("a", (edge, edge)), placeholder("b", (edge, edge))
    k = reduce_axis("k", edge)
    c = compute("c", (edge, edge), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    workload = program_workload([c])
    sketch = next(iter(sketches_of(state_of(workload), target)), None)
    if sketch is None:
        raise InternalError(stage="farm", where="reference kernel", reason="it has no schedule")
    trace = default_candidate(Space((sketch,))).trace
    return workload, build(build_request(workload, trace, target))


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
    target: Target,
    runner: ChildRunner,
    should_stop: Callable[[], bool],
) -> list[Measurement] | None:
    """The measurements of all kernels, in order; None if the client no longer wants them.

    A kernel that races knows of those before it that compute the same.
    """
    kernels = iter([unpack_kernel(blob, target) for blob in blobs[workloads:]])
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
