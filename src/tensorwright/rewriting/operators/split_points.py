"""The positions where tensors were put together, at which the generator splits them.

    concat[0](a, b), a (2, 3), b (4, 3)         ((2,), ())     split in rows before row 2
    relu of it                                  ((2,), ())     element-wise operators keep them
    matmul(concat[0](a, b), w)                  ((2,), ())     rows of the left argument

Split points are, per dimension, positions in rising order.  They are sizes, so that one rule serves
numbers and expressions over the inputs' extents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tensorwright.rewriting.dims import Size
from tensorwright.rewriting.shapes import Params, Shapes

SplitPoints: TypeAlias = tuple[tuple[Size, ...], ...]
Points: TypeAlias = tuple[SplitPoints, ...]
SplitPointRule: TypeAlias = Callable[[Params, Shapes, Points, int], SplitPoints]
"""The split points of a result from parameters, shapes and split points of the arguments, and the
rank of the result."""


def no_split_points(rank: int) -> SplitPoints:
    """Those of a tensor that was not put together."""
    return ((),) * rank


def no_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result counts as not put together."""
    return no_split_points(rank)


def first_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result has those of the first argument."""
    return points[0]


def common_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result has those that all arguments have."""
    first, *others = points
    return tuple(
        tuple(point for point in places if all(point in other[axis] for other in others))
        for axis, places in enumerate(first)
    )
