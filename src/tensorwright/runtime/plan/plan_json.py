"""Plans as plain data and back: see `base.to_data`."""

from __future__ import annotations

from typing import Any

from tensorwright.base import (
    ON_THREADS,
    CpuTarget,
    DType,
    Formula,
    GpuApi,
    GpuTarget,
    Grid,
    Role,
    TensorType,
    Threads,
    from_data,
    kinds_of,
    to_data,
)
from tensorwright.runtime.plan.plan import (
    ArenaPiece,
    ArenaRef,
    ArgumentSpec,
    BranchStep,
    CollectStep,
    ConstantRef,
    CopyStep,
    DeviceRef,
    HostStep,
    InputRef,
    KernelSpec,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Team,
    TensorSpec,
    TypedRef,
)
from tensorwright.runtime.plan.plan_sizes import PlanSize

_KINDS = kinds_of(
    *(ArenaRef, ConstantRef, InputRef, OutputRef, DeviceRef, TypedRef),
    *(CopyStep, HostStep, KernelStep, BranchStep, LoopStep, CollectStep),
    *(ArgumentSpec, KernelSpec, TensorSpec, Team, Plan),
    *(PlanSize, Formula, ArenaPiece),
    *(DType, Role, CpuTarget, GpuTarget, GpuApi, TensorType, Threads, Grid),
    Target=CpuTarget,  # its name in format version 1
)
_ON_THREADS = to_data(ON_THREADS)


def plan_to_data(plan: Plan) -> object:
    """The plan in the form that `json.dumps` takes, equal for equal plans.

    Launches on threads and empty lists of sizes are left out, so that earlier versions can read the
    plan.
    """
    data: Any = to_data(plan)
    for kernel in data["kernels"]:
        if kernel["launches"] == _ON_THREADS:
            del kernel["launches"]
    for part in (data, *data["kernels"]):
        if not part["sizes"]:
            del part["sizes"]
    if not data["pieces"]:
        del data["pieces"]
    for spec in (*data["inputs"], *data["outputs"], *data["constants"]):
        if spec["room"] is None:
            del spec["room"]
    for step in data["steps"]:
        if step["_"] == HostStep.__name__ and not step["counted"]:
            del step["counted"]
    for size in data.get("sizes", ()):
        if size["bound"] is None:
            del size["bound"]
    return data


def plan_from_data(data: object) -> Plan:
    """The inverse of `plan_to_data`.

    Raises:  ValueError that names the wrong part.
    """
    plan = from_data(data, _KINDS)
    if not isinstance(plan, Plan):
        raise ValueError("not a plan")
    return plan
