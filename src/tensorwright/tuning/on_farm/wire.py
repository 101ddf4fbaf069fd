"""What a session sends to workers, as plain data: requests to build, workloads, targets.

Tensors are written in an order in which each comes after those that it reads, so that reading them
needs no deep stack.
"""

from __future__ import annotations

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
