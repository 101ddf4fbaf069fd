"""Run one operator on the host, in the middle of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tensorwright.base import Array, HostFunction, InternalError, UserError
from tensorwright.runtime.plan.plan import HostStep, TypedRef
from tensorwright.runtime.plan.plan_sizes import numbered


def run_host_step(
    open_step: HostStep[TypedRef],
    function: HostFunction,
    values: Mapping[str, int],
    view: Callable[[TypedRef], Array],
) -> None:
    """Run the NumPy function of a step.

    values   of the named sizes      view   the tensor at a reference, as a fresh view
    Raises:  InternalError where the function fails, or gives other tensors than are declared.
    """
    step = numbered(open_step, values) if values else open_step
    arguments = tuple([view(typed) for typed in step.inputs])
    for array in arguments:
        array.flags.writeable = False
    try:
        results = function(arguments, dict(step.attributes))
    except UserError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise _fault(step, f"operator {step.operator} failed on the host: {error}") from error
    if len(results) != len(step.outputs):
        raise _fault(step, f"{len(results)} results, but {len(step.outputs)} are declared")
    for typed, result in zip(step.outputs, results, strict=True):
        actual = np.asarray(result)
        if actual.shape != typed.type.shape or actual.dtype != typed.type.dtype.numpy:
            given = f"{actual.dtype}{actual.shape}"
            raise _fault(step, f"the host gave {given}, but {typed.type} is declared")
        np.copyto(view(typed), actual)


def _fault(step: HostStep[TypedRef], reason: str) -> InternalError:
    return InternalError(stage="run", where=f"step {step.label}", reason=reason)
