"""Loop nests of operators that no tensor expression describes: a second algorithm beside NumPy's.

Scattering stores at positions from the data; selection branches on the data.  A tensor expression
can do neither.  These loop nests have no schedule.  They are loop programs like others:
every back end compiles them, and the interpreter runs them in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tensorwright.base import Attributes, ByKind, TargetKind, TensorType
from tensorwright.loop.algorithms.scattering import scatter_elements, scatter_nd, tree_leaves
from tensorwright.loop.algorithms.selection import on_groups, topk
from tensorwright.loop.ir import LoopProgram

Algorithm: TypeAlias = Callable[..., LoopProgram | None]
"""From the types of the inputs, and the operator's attributes by name."""

ALGORITHMS: ByKind[Algorithm] = {
    TargetKind.CPU: (topk, scatter_elements, scatter_nd, tree_leaves),
    TargetKind.GPU: (topk, scatter_elements, scatter_nd, tree_leaves),
}
"""Each has the name of its operator."""

_OF_A_THREAD: Mapping[TargetKind, Mapping[str, Mapping[str, int]]] = {
    TargetKind.CPU: {},
    TargetKind.GPU: {"scatter_elements": {"line": 1}, "scatter_nd": {"line": 1}},
}
"""What an algorithm is told of the share of a thread."""

_FORMS: Mapping[TargetKind, Callable[[LoopProgram], LoopProgram | None]] = {
    TargetKind.GPU: on_groups
}
"""Turns loops over threads of a processor into the form for a kind of machine."""


def loop_algorithm(
    operator: str,
    types: tuple[TensorType, ...],
    attributes: Attributes,
    kind: TargetKind = TargetKind.CPU,
) -> LoopProgram | None:
    """The loop nest of an operator for a kind of target; None if NumPy runs it on the host.

    types   of its inputs     attributes   complete, as `Operator.complete` gives them
    The program's parameters are the inputs, then the outputs, each with its elements in row-major
    order.
    """
    for algorithm in ALGORITHMS[kind]:
        if algorithm.__name__ == operator:
            program = algorithm(types, **attributes, **_OF_A_THREAD[kind].get(operator, {}))
            form = _FORMS.get(kind)
            return program if program is None or form is None else form(program)
    return None
