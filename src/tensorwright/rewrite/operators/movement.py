"""Operators that move elements of one tensor: transpose, reshape, broadcast, slice, pad."""

from __future__ import annotations

from tensorwright.rewrite.dims import Shape, Size
from tensorwright.rewrite.operators.constants import extents_of
from tensorwright.rewrite.operators.operator import (
    AXIS,
    PLACE,
    SIZES,
    IntShape,
    MeaningRule,
    Parameter,
    RewriteOperator,
    Step,
    axis_of,
    number,
    replaced,
    size,
)
from tensorwright.rewrite.shapes import Needs
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS", "slice_steps"]


def _transpose_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    perm = tuple(map(number, params))
    needs.hold(sorted(perm) == list(range(len(x))), f"{perm} is no permutation")
    return tuple(x[at] for at in perm)


def _transpose(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("transpose", {"perm": tuple(map(number, params))}),)


def _product(shape: Shape) -> Size:
    total: Size = 1
    for extent in shape:
        total = total * extent
    return total


def _reshape_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    shape = extents_of(params, needs)
    needs.equal(_product(shape), _product(shapes[0]))
    return shape


def _broadcast_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    """A dimension is stretched from extent 1, or stays."""
    shape = extents_of(params, needs)
    needs.rank(shapes[0], len(shape))
    for own, wanted in zip(shapes[0], shape, strict=True):
        needs.stretches(own, wanted)
    return shape


def _to_shape(name: str) -> MeaningRule:
    return lambda params, shapes: (Step(name, {"shape": tuple(map(number, params))}),)


def _slice_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    axis, start, stop = axis_of(params[0], x), size(params[1]), size(params[2])
    needs.at_least(start, 0)
    needs.at_least(stop, start + 1)
    needs.at_least(x[axis], stop)
    return replaced(x, axis, stop - start)


def slice_steps(axis: int, start: int, stop: int) -> tuple[Step, ...]:
    """The part of a tensor from `start` to before `stop` along one dimension."""
    return (Step("slice", {"axes": (axis,), "starts": (start,), "ends": (stop,)}),)


def _slice(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis, start, stop = map(number, params)
    return slice_steps(axis, start, stop)


def _pad_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    axis, before, after = axis_of(params[0], x), size(params[1]), size(params[2])
    needs.at_least(before, 0)
    needs.at_least(after, 0)
    return replaced(x, axis, x[axis] + before + after)


def _pad(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis, before, after = map(number, params)
    rank = len(shapes[0])
    pads = [0] * (2 * rank)
    pads[axis], pads[rank + axis] = before, after
    return (Step("pad", {"pads": tuple(pads)}),)


OPERATORS = (
    RewriteOperator(
        "transpose", 1, (Parameter("perm", repeats=True),), _transpose_shape, _transpose
    ),
    RewriteOperator("reshape", 1, SIZES, _reshape_shape, _to_shape("reshape")),
    RewriteOperator("broadcast", 1, SIZES, _broadcast_shape, _to_shape("expand")),
    RewriteOperator("slice", 1, (AXIS, PLACE, PLACE), _slice_shape, _slice),
    RewriteOperator("pad", 1, (AXIS, PLACE, PLACE), _pad_shape, _pad),
)
