"""Putting two tensors together, and taking one apart again.

concat[1](a, b)     a (2, 3), b (2, 5) -> (2, 8)
split0[1, 3](x)     x (2, 8) -> (2, 3): the part before index 3
split1[1, 3](x)     x (2, 8) -> (2, 5): the rest
"""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.operators.dimensions import BESIDE_AXIS
from tensorwright.rewriting.operators.movement import slice_steps
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    MeaningRule,
    RewriteOperator,
    Step,
    StructureKind,
    plain,
    replaced,
)
from tensorwright.rewriting.operators.parameters import AXIS, PLACE, axis_of, number, size
from tensorwright.rewriting.operators.split_points import (
    Points,
    SplitPointRule,
    SplitPoints,
    common_points,
)
from tensorwright.rewriting.shapes import Needs, Params, ShapeRule, Shapes


def _concat_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    a, b = shapes
    axis = axis_of(params[0], a)
    needs.hold(len(a) == len(b), "ranks differ")
    needs.equal_shapes(replaced(a, axis, 1), replaced(b, axis, 1))
    return replaced(a, axis, a[axis] + b[axis])


def _part(bounds: Callable[[Size, Size], tuple[Size, Size]]) -> ShapeRule:
    def rule(params: Params, shapes: Shapes, needs: Needs) -> Shape:
        (x,) = shapes
        axis, at = axis_of(params[0], x), size(params[1])
        needs.at_least(at, 1)
        needs.at_least(x[axis], at + 1)
        start, stop = bounds(at, x[axis])
        return replaced(x, axis, stop - start)

    return rule


def _split0(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    return slice_steps(number(params[0]), 0, size(params[1]))


def _split1(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    axis = number(params[0])
    return slice_steps(axis, size(params[1]), shapes[0][axis])


def _joined_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Along the axis those of both and their boundary; along others those that both have."""
    axis = number(params[0])
    middle = shapes[0][axis]
    joined = (*points[0][axis], middle, *(middle + point for point in points[1][axis]))
    common = common_points(params, shapes, points, rank)
    return (*common[:axis], joined, *common[axis + 1 :])


def _points_before(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Those before the index."""
    axis, at = number(params[0]), size(params[1])
    own = points[0][axis]
    kept = own[: own.index(at)] if at in own else own
    return (*points[0][:axis], kept, *points[0][axis + 1 :])


def _points_after(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Those after the index, counted from there."""
    axis, at = number(params[0]), size(params[1])
    own = points[0][axis]
    kept = tuple(point - at for point in own[own.index(at) + 1 :]) if at in own else ()
    return (*points[0][:axis], kept, *points[0][axis + 1 :])


def _split(
    name: str, shape: ShapeRule, meaning: MeaningRule, points: SplitPointRule
) -> RewriteOperator:
    return RewriteOperator(
        name,
        shape,
        meaning,
        parameters=(AXIS, PLACE),
        structure=StructureKind.GATHER,
        split_points=points,
        output_of="split",
        merging=BESIDE_AXIS,
    )


PARTS = frozenset({"split0", "split1", "slice"})
"""The operators whose result is a part of the argument along one dimension."""

OPERATORS = (
    RewriteOperator(
        "concat",
        _concat_shape,
        plain("concat", "axis"),
        arguments=(TENSOR, TENSOR),
        parameters=(AXIS,),
        structure=StructureKind.GATHER,
        split_points=_joined_points,
        contains_arguments=True,
        merging=BESIDE_AXIS,
    ),
    _split("split0", _part(lambda at, extent: (0, at)), _split0, _points_before),
    _split("split1", _part(lambda at, extent: (at, extent)), _split1, _points_after),
)
