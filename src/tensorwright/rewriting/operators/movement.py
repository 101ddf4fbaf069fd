"""Operators that move elements of one tensor: transpose, reshape, broadcast, slice, pad, ...

transpose[1, 0](x)    x (2, 3) -> (3, 2)        reshape[6](x)         x (2, 3) -> (6)
slice[1, 0, 2](x)     x (2, 3) -> (2, 2)        broadcast[2, 3](x)    x (1, 3) -> (2, 3)
pad[0, 1, 0](x)       x (2, 3) -> (3, 3), a row of zeros in front
reverse[0](x)         x (2, 3) -> (2, 3), the last row first
strided[1, 2](x)      x (2, 3) -> (2, 2), every second column from the first on
"""

from __future__ import annotations

from math import prod

from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.operators.constants import extents_of
from tensorwright.rewriting.operators.dimensions import BESIDE_AXIS, STRETCHED, TRANSPOSED, Merging
from tensorwright.rewriting.operators.operator import (
    MeaningRule,
    RewriteOperator,
    Step,
    StructureKind,
    listed,
    replaced,
    shape_with_axis,
)
from tensorwright.rewriting.operators.parameters import (
    AXIS,
    SIZES,
    Parameter,
    SizeGuess,
    axis_of,
    number,
    size,
)
from tensorwright.rewriting.operators.split_points import (
    Points,
    SplitPointRule,
    SplitPoints,
    no_points,
)
from tensorwright.rewriting.shapes import Needs, Params, ShapeRule, Shapes


def _transpose_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    perm = tuple(map(number, params))
    needs.hold(sorted(perm) == list(range(len(x))), f"{perm} is not a permutation")
    return tuple(x[at] for at in perm)


def _reshape_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    shape = extents_of(params, needs)
    needs.equal(prod(shape, start=1), prod(shapes[0], start=1))
    return shape


def _broadcast_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    """A dimension is stretched from extent 1, or stays."""
    shape = extents_of(params, needs)
    needs.rank(shapes[0], len(shape))
    for own, wanted in zip(shapes[0], shape, strict=True):
        needs.stretches(own, wanted)
    return shape


def _slice_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    axis, start, stop = axis_of(params[0], x), size(params[1]), size(params[2])
    needs.at_least(start, 0)
    needs.at_least(stop, start + 1)
    needs.at_least(x[axis], stop)
    return replaced(x, axis, stop - start)


def slice_steps(axis: int, start: Size, stop: Size) -> tuple[Step, ...]:
    """The part of a tensor from `start` to before `stop` along one dimension."""
    return (Step("slice", {"axes": (axis,), "starts": (start,), "ends": (stop,)}),)


def _slice(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    return slice_steps(number(params[0]), size(params[1]), size(params[2]))


def _pad_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    axis, before, after = axis_of(params[0], x), size(params[1]), size(params[2])
    needs.at_least(before, 0)
    needs.at_least(after, 0)
    return replaced(x, axis, x[axis] + before + after)


def _pad(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    axis, rank = number(params[0]), len(shapes[0])
    pads: list[Size] = [0] * (2 * rank)
    pads[axis], pads[rank + axis] = size(params[1]), size(params[2])
    return (Step("pad", {"pads": tuple(pads)}),)


def _reverse(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    axis = number(params[0])
    before_first = -shapes[0][axis] - 1
    ends = {"starts": (-1,), "ends": (before_first,), "steps": (-1,)}
    return (Step("slice", {"axes": (axis,), **ends}),)


def _strided_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    axis, step = axis_of(params[0], x), size(params[1])
    needs.at_least(step, 1)
    return replaced(x, axis, (x[axis] - 1) // step + 1)


def _strided(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    axis, step = map(number, params)
    places = {"starts": (0,), "ends": (shapes[0][axis],), "steps": (step,)}
    return (Step("slice", {"axes": (axis,), **places}),)


def _transposed_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Each dimension takes its own along."""
    return tuple(points[0][number(param)] for param in params)


def _movement(
    name: str,
    parameters: tuple[Parameter, ...],
    shape: ShapeRule,
    meaning: MeaningRule,
    points: SplitPointRule = no_points,
    merging: Merging | None = BESIDE_AXIS,
) -> RewriteOperator:
    return RewriteOperator(
        name,
        shape,
        meaning,
        parameters=parameters,
        structure=StructureKind.GATHER,
        split_points=points,
        merging=merging,
    )


_PERM = (Parameter("perm", repeats=True),)
_STRETCHED = (Parameter("size", size=SizeGuess.STRETCHED, repeats=True),)
_BOUNDS = (
    AXIS,
    Parameter("start", size=SizeGuess.BOUND, least=0),
    Parameter("stop", size=SizeGuess.BOUND),
)
_ADDED = (AXIS, *(Parameter(name, size=SizeGuess.NUMBER, least=0) for name in ("before", "after")))
_STEP = Parameter("step", size=SizeGuess.NUMBER)

OPERATORS = (
    _movement(
        "transpose",
        _PERM,
        _transpose_shape,
        listed("transpose", "perm"),
        _transposed_points,
        TRANSPOSED,
    ),
    _movement("reshape", SIZES, _reshape_shape, listed("reshape", "shape"), merging=None),
    _movement(
        "broadcast", _STRETCHED, _broadcast_shape, listed("expand", "shape"), merging=STRETCHED
    ),
    _movement("slice", _BOUNDS, _slice_shape, _slice),
    _movement("pad", _ADDED, _pad_shape, _pad),
    _movement("reverse", (AXIS,), shape_with_axis, _reverse),
    _movement("strided", (AXIS, _STEP), _strided_shape, _strided),
)
