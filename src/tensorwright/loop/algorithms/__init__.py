"""Loop nests of operators that no tensor expression says: a second algorithm beside NumPy's.

Scattering stores where the data says; selection decides by the data what to do.  A tensor
expression says neither.  These loop nests have no schedule.  They are loop programs like others:
every back end compiles them, and the interpreter runs them in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tensorwright.base import Attributes, TargetKind, TensorType
from tensorwright.loop.algorithms.scattering import scatter_elements, scatter_nd
from tensorwright.loop.algorithms.selection import topk
from tensorwright.loop.ir import LoopProgram

Algorithm: TypeAlias = Callable[..., LoopProgram | None]
"""From the types of the inputs, and the operator's attributes by name."""

ALGORITHMS: Mapping[TargetKind, Mapping[str, Algorithm]] = {
    TargetKind.CPU: {each.__name__: each for each in (topk, scatter_elements, scatter_nd)},
    TargetKind.GPU: {},
}
"""By the kind of target, then by the operator's name."""


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
    algorithm = ALGORITHMS[kind].get(operator)
    return None if algorithm is None else algorithm(types, **attributes)


__all__ = ["ALGORITHMS", "loop_algorithm"]
