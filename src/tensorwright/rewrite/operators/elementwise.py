"""Functions of single elements, of two elements at the same place, and of a number."""

from __future__ import annotations

from tensorwright.rewrite.dims import Shape
from tensorwright.rewrite.operators.operator import RewriteOperator, plain
from tensorwright.rewrite.shapes import Needs
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS"]


def _same_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    for other in shapes[1:]:
        needs.equal_shapes(shapes[0], other)
    return shapes[0]


def _of_data(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    needs.rank(shapes[1], 0)
    return shapes[0]


def _elementwise(name: str, meaning: str, arity: int, *, commutes: bool = False) -> RewriteOperator:
    return RewriteOperator(name, arity, (), _same_shape, plain(meaning), commutes)


OPERATORS = (
    _elementwise("ewadd", "add", 2, commutes=True),
    _elementwise("ewmul", "mul", 2, commutes=True),
    _elementwise("ewsub", "sub", 2),
    _elementwise("ewdiv", "div", 2),
    _elementwise("relu", "relu", 1),
    _elementwise("exp", "exp", 1),
    _elementwise("sigmoid", "sigmoid", 1),
    _elementwise("tanh", "tanh", 1),
    RewriteOperator("scalar_mul", 2, (), _of_data, plain("mul")),
)
