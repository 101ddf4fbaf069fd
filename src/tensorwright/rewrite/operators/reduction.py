"""The sum or the mean along one dimension, which stays with extent 1."""

from __future__ import annotations

from tensorwright.rewrite.dims import Shape
from tensorwright.rewrite.operators.operator import (
    AXIS,
    MeaningRule,
    RewriteOperator,
    Step,
    axis_of,
    number,
    replaced,
)
from tensorwright.rewrite.shapes import Needs
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS"]


def _shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    return replaced(x, axis_of(params[0], x), 1)


def _reduce(name: str) -> MeaningRule:
    return lambda params, shapes: (Step(name, {"axes": (number(params[0]),)}),)


OPERATORS = tuple(
    RewriteOperator(name, 1, (AXIS,), _shape, _reduce(name))
    for name in ("reduce_sum", "reduce_mean")
)
