"""The messages of a session to workers, as plain data: requests to build, workloads, targets.

Tensors are written in an order in which each comes after those that it reads, so that reading them
needs no deep stack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tensorwright.base import CpuTarget, GpuApi, GpuTarget, Target, from_data, kinds_of, to_data
from tensorwright.build import BuildRequest
from tensorwright.expr import EXPRESSION_KINDS, topological_order
from tensorwright.graph import Workload
from tensorwright.records import Status
from tensorwright.schedule import Workload as AnyWorkload
from tensorwright.tuning.measuring import Measurement, MeasureOptions

_TARGETS = kinds_of(CpuTarget, GpuTarget, GpuApi)
_KINDS = {**EXPRESSION_KINDS, **_TARGETS, **kinds_of(Measurement, MeasureOptions, Status)}


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
    return to_data(value)


def read(data: object) -> Any:
    """The inverse of `write`.  Raises: ValueError for anything else."""
    return from_data(data, _KINDS)


def request_data(request: BuildRequest) -> dict[str, Any]:
    """A request to build, as plain data."""
    return {
        "name": request.name,
        "program": to_data((request.tensors, request.outputs)),
        "constants": sorted(request.constants),
        "trace": request.trace,
        "target": to_data(request.target),
    }


def read_request(data: dict[str, Any]) -> BuildRequest:
    """The inverse of `request_data`.  Raises: ValueError for anything else."""
    tensors, outputs = read(data["program"])
    constants = frozenset(data["constants"])
    target: Target = read(data["target"])
    return BuildRequest(data["name"], tensors, outputs, constants, data["trace"], target)


def workload_data(workload: AnyWorkload) -> dict[str, Any]:
    """A workload, as plain data."""
    tensors = topological_order(*workload.outputs)
    return {
        "name": workload.name,
        "key": workload.key,
        "program": to_data((tensors, workload.inputs, workload.outputs)),
        "constants": sorted(workload.constants),
    }


def read_workload(data: dict[str, Any]) -> Workload:
    """The inverse of `workload_data`.  Raises: ValueError for anything else."""
    _, inputs, outputs = read(data["program"])
    return Workload(data["name"], inputs, frozenset(data["constants"]), outputs, data["key"])
