"""Plans as JSON and back: a dataclass is an object that names its class under "_".

Lists are tuples. Numbers that JSON lacks (nan, inf) and dtypes are objects, too.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from tensorwright.base import DType, Target
from tensorwright.loop import Role
from tensorwright.ops import TensorType
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
    TensorSpec,
    TypedRef,
)

_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
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
        Target,
        TensorSpec,
        TensorType,
        TypedRef,
    )
}
_VALUES: dict[str, Any] = {"DType": DType, "Role": Role, "float": float}


def plan_to_json(plan: Plan) -> str:
    """One line of JSON, equal for equal plans."""
    return json.dumps(plan_to_data(plan), allow_nan=False, separators=(",", ":"))


def plan_from_json(text: str) -> Plan:
    """The inverse of `plan_to_json`.

    Raises:  ValueError that says what does not fit.
    """
    return plan_from_data(json.loads(text))


def plan_to_data(plan: Plan) -> object:
    """The plan as `json.dumps` takes it: objects, lists, texts and numbers."""
    return _encode(plan)


def plan_from_data(data: object) -> Plan:
    """The inverse of `plan_to_data`, errors as `plan_from_json`."""
    try:
        plan = _decode(data)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a plan: {type(error).__name__} {error}") from error
    if not isinstance(plan, Plan):
        raise ValueError("not a plan")
    return plan


def _encode(value: object) -> object:
    if isinstance(value, DType | Role):
        return {"_": type(value).__name__, "value": value.value}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {"_": type(value).__name__, **parts}
    if isinstance(value, tuple):
        return [_encode(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"_": "float", "value": str(value)}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple([_decode(part) for part in value])
    if not isinstance(value, dict):
        return value
    name = value["_"]
    if name in _VALUES:
        return _VALUES[name](value["value"])
    parts = {key: _decode(part) for key, part in value.items() if key != "_"}
    return _CLASSES[name](**parts)
