"""Plans as plain data and back: see `base.to_data`."""

from __future__ import annotations

from tensorwright.base import CpuTarget, DType, Role, TensorType, from_data, kinds_of, to_data
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    ArgumentSpec,
    ConstantRef,
    CopyStep,
    HostStep,
    InputRef,
    KernelSpec,
    KernelStep,
    OutputRef,
    Plan,
    Team,
    TensorSpec,
    TypedRef,
)

_KINDS = kinds_of(
    *(ArenaRef, ConstantRef, InputRef, OutputRef, TypedRef),
    *(CopyStep, HostStep, KernelStep),
    *(ArgumentSpec, KernelSpec, TensorSpec, Team, Plan),
    *(DType, Role, CpuTarget, TensorType),
    CpuTarget=CpuTarget,  # as format version 1 calls it
)


def plan_to_data(plan: Plan) -> object:
    """The plan as `json.dumps` takes it, equal for equal plans."""
    return to_data(plan)


def plan_from_data(data: object) -> Plan:
    """The inverse of `plan_to_data`.

    Raises:  ValueError that says what does not fit.
    """
    plan = from_data(data, _KINDS)
    if not isinstance(plan, Plan):
        raise ValueError("not a plan")
    return plan
