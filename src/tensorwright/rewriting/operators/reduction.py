"""The sum, mean, greatest or least along one dimension, which stays with extent 1.

reduce_sum[1](x)     x (2, 3) -> (2, 1)
reduce_mean[0](x)    x (2, 3) -> (1, 3)
reduce_sum[2](x)     x (2, 3) is ill-typed
"""

from __future__ import annotations

from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.dimensions import BESIDE_AXIS
from tensorwright.rewriting.operators.operator import (
    RewriteOperator,
    StructureKind,
    listed,
    replaced,
)
from tensorwright.rewriting.operators.parameters import AXIS, axis_of
from tensorwright.rewriting.shapes import Needs, Params, Shapes


def _shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    return replaced(x, axis_of(params[0], x), 1)


_FOLDS = {
    "reduce_sum": StructureKind.LINEAR,
    "reduce_mean": StructureKind.LINEAR,
    "reduce_max": StructureKind.MAXIMUM,
    "reduce_min": StructureKind.ANY,
}

REDUCTIONS = frozenset(_FOLDS)

OPERATORS = tuple(
    RewriteOperator(
        name,
        _shape,
        listed(name, "axes"),
        parameters=(AXIS,),
        structure=structure,
        merging=BESIDE_AXIS,
    )
    for name, structure in _FOLDS.items()
)
