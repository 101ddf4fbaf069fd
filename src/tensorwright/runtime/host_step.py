"""Run one operator on the host, in the middle of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensorwright.base import Array, Formula, HostFunction, InternalError, UserError
from tensorwright.runtime.plan.plan import HostStep, TypedRef
from tensorwright.runtime.plan.plan_sizes import numbered


def run_host_step(
    open_step: HostStep[TypedRef],
    function: HostFunction,
    values: Mapping[str, int],
    view: Callable[[TypedRef], Array],
    decide: Callable[[str, int], None] | None = None,
) -> None:
    """Run the NumPy function of a step.

    values   of the named sizes      view   gives the tensor at a reference, as a fresh view
    decide   sets the size that the step decides, if it decides one
    Raises:  InternalError if the function fails, or returns other tensors than are declared; the
             errors of `decide`.
    """
    size = open_step.counted
    others = {name: value for name, value in values.items() if name != size}
    step = numbered(open_step, others) if others else open_step
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
    if size and decide is not None:
        number = _number_told(step, results)
        decide(size, number)
        step = numbered(step, {size: number})
    for typed, result in zip(step.outputs, results, strict=True):
        actual = np.asarray(result)
        if actual.shape != typed.type.shape or actual.dtype != typed.type.dtype.numpy:
            given = f"{actual.dtype}{actual.shape}"
            raise _fault(step, f"the host gave {given}, but {typed.type} is declared")
        np.copyto(view(typed), actual)


def _number_told(step: HostStep[TypedRef], results: Sequence[Array]) -> int:
    """The value of the size that a step decides: an extent of one of its results."""
    for typed, result in zip(step.outputs, results, strict=True):
        for extent, number in zip(typed.type.shape, np.shape(result), strict=False):
            if isinstance(extent, Formula) and extent.text == step.counted:
                return int(number)
    raise _fault(step, f"none of its results has the size {step.counted}")


def _fault(step: HostStep[TypedRef], reason: str) -> InternalError:
    return InternalError(stage="run", where=f"step {step.label}", reason=reason)
