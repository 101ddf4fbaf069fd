"""Tensor expressions of a user's own as programs: what can be tuned and compiled like a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorwright.base import UsageError
from tensorwright.expr import Array, Compute
from tensorwright.graph.workload import Workload, program_workload

Program: TypeAlias = Compute | Sequence[Compute] | Workload
Constants: TypeAlias = Mapping[str, Any]


def program(
    outputs: Compute | Sequence[Compute], *, constants: Iterable[str] = (), name: str = ""
) -> Workload:
    """A tensor expression as a program that can be tuned and compiled.

    outputs    the results; their placeholders are the inputs of the program
    constants  names of inputs that stay the same from call to call: they are packed once
    name       for people; that of the last output where ""
    Raises:    UsageError for equal names, and constants that are not inputs.
    """
    tensors = (outputs,) if isinstance(outputs, Compute) else tuple(outputs)
    return program_workload(tensors, frozenset(constants), name)


def as_program(model: Any, constants: Constants | None) -> Workload | None:
    """Tensor expressions as a program; None for anything else."""
    if isinstance(model, Workload):
        return model
    if isinstance(model, Compute):
        return program(model, constants=constants or ())
    is_sequence = isinstance(model, (tuple, list)) and len(model) > 0
    if is_sequence and all(isinstance(each, Compute) for each in model):
        return program(model, constants=constants or ())
    return None


def check_constants(workload: Workload, constants: Constants | None) -> dict[str, Array]:
    """The values of a program's constants as arrays of their types.

    Raises:  UsageError for one that is missing, or of another shape or type.
    """
    given = dict(constants or {})
    types = {t.name: n for t, n in zip(workload.inputs, workload.input_types, strict=True)}
    arrays: dict[str, Array] = {}
    for name in sorted(workload.constants | given.keys()):
        array = np.ascontiguousarray(given[name]) if name in given else None
        if name not in workload.constants:
            reason = "the program was made without this constant"
            remedy = "leave it out, or name it in the constants of `program`"
        elif array is None:
            reason, remedy = "its value is not given", f"give constants={{{name!r}: ARRAY}}"
        elif array.shape != types[name].shape or array.dtype != types[name].dtype.numpy:
            reason = f"{array.dtype} {array.shape} is given, {types[name]} is declared"
            remedy = f"give an array of {types[name].dtype.numpy} {types[name].shape}"
        else:
            arrays[name] = array
            continue
        raise UsageError(stage="compile", where=f"constant {name}", reason=reason, remedy=remedy)
    return arrays
