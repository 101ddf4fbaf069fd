"""Putting two tensors together, and taking one apart again."""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.rewrite.dims import Shape, Size
from tensorwright.rewrite.operators.movement import slice_steps
from tensorwright.rewrite.operators.operator import (
    AXIS,
    PLACE,
    IntShape,
    RewriteOperator,
    Step,
    axis_of,
    number,
    replaced,
    size,
)
from tensorwright.rewrite.shapes import Needs, ShapeRule
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS"]


def _concat_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    a, b = shapes
    axis = axis_of(params[0], a)
    needs.hold(len(a) == len(b), "ranks differ")
    needs.equal_shapes(replaced(a, axis, 1), replaced(b, axis, 1))
    return replaced(a, axis, a[axis] + b[axis])


def _concat(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("concat", {"axis": number(params[0])}),)


def _part(bounds: Callable[[Size, Size], tuple[Size, Size]]) -> ShapeRule:
    def rule(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
        (x,) = shapes
        axis, at = axis_of(params[0], x), size(params[1])
        needs.at_least(at, 1)
        needs.at_least(x[axis], at + 1)
        start, stop = bounds(at, x[axis])
        return replaced(x, axis, stop - start)

    return rule


def _split0(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return slice_steps(number(params[0]), 0, number(params[1]))


def _split1(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis = number(params[0])
    return slice_steps(axis, number(params[1]), shapes[0][axis])


OPERATORS = (
    RewriteOperator("concat", 2, (AXIS,), _concat_shape, _concat),
    RewriteOperator("split0", 1, (AXIS, PLACE), _part(lambda at, extent: (0, at)), _split0),
    RewriteOperator("split1", 1, (AXIS, PLACE), _part(lambda at, extent: (at, extent)), _split1),
)
