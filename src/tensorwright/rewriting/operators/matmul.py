"""Products of matrices, and of batches of them.

matmul(a, b)    a (2, 3), b (3, 4) -> (2, 4)
matmul(a, b)    a (5, 2, 3), b (5, 3, 4) -> (5, 2, 4); leading dimensions are equal
matmul(a, b)    a (2, 3), b (4, 5) is ill-typed
"""

from __future__ import annotations

from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.dimensions import BATCHES
from tensorwright.rewriting.operators.operator import TENSOR, RewriteOperator, StructureKind, plain
from tensorwright.rewriting.operators.split_points import Points, SplitPoints
from tensorwright.rewriting.shapes import Needs, Params, Shapes


def _shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    a, b = shapes
    needs.hold(len(a) >= 2 and len(a) == len(b), "matmul of unequal ranks, or below 2")
    needs.equal_shapes(a[:-2], b[:-2])
    needs.equal(a[-1], b[-2])
    return (*a[:-1], b[-1])


def _points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The rows of the left argument, the columns of the right one."""
    return (*points[0][:-1], points[1][-1])


OPERATORS = (
    RewriteOperator(
        "matmul",
        _shape,
        plain("matmul"),
        arguments=(TENSOR, TENSOR),
        structure=StructureKind.BILINEAR,
        split_points=_points,
        merging=BATCHES,
    ),
)
