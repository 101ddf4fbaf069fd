"""Loop nests of operators that no tensor expression says: a second algorithm beside NumPy's.

Scattering stores where the data says; selection decides by the data what to do.  A tensor
expression says neither.  These loop nests have no schedule.  They are loop programs like others:
every back end compiles them, and the interpreter runs them in tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tensorwright.base import Attributes, ByKind, TargetKind, TensorType
from tensorwright.loop.algorithms.scattering import scatter_elements, scatter_nd
from tensorwright.loop.algorithms.selection import topk
from tensorwright.loop.ir import LoopProgram

Algorithm: TypeAlias = Callable[..., LoopProgram | None]
"""From the types of the inputs, and the operator's attributes by name."""

ALGORITHMS: ByKind[Algorithm] = {
    TargetKind.CPU: (topk, scatter_elements, scatter_nd),
    TargetKind.GPU: (),
}
"""Each has the name of its operator."""


def loop_algorithm(
    operator: str,
    types: tuple[TensorType, ...],
    attributes: Attributes,
    kind: TargetKind = TargetKind.CPU,
) -> LoopProgram | None:
    """The loop nest of an operator for a kind of target; None where NumPy runs it on the host.

    types   of its inputs     attributes   complete, as `Operator.complete` gives them
    The program's parameters are the inputs, then the outputs, each with its elements in row-major
    order.
    """
    for algorithm in ALGORITHMS[kind]:
        if algorithm.__name__ == operator:
            return algorithm(types, **attributes)
    return None


__all__ = ["ALGORITHMS", "loop_algorithm"]
