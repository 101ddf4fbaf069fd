"""Functions of single elements, of two elements at the same place, and of a number.

ewadd(a, b)         a (2, 3), b (2, 3) -> (2, 3); other shapes are ill-typed
scalar_mul(x, s)    x (2, 3), s () -> (2, 3)
relu(x)             x (2, 3) -> (2, 3)
"""

from __future__ import annotations

from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    ArgumentRole,
    RewriteOperator,
    StructureKind,
    plain,
)
from tensorwright.rewriting.operators.split_points import common_points, first_points
from tensorwright.rewriting.shapes import Needs, Params, Shapes


def _same_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    for other in shapes[1:]:
        needs.equal_shapes(shapes[0], other)
    return shapes[0]


def _of_data(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    needs.rank(shapes[1], 0)
    return shapes[0]


def _pair(
    name: str, meaning: str, structure: StructureKind, *, commutes: bool = False
) -> RewriteOperator:
    arguments, rule = (TENSOR, TENSOR), plain(meaning)
    return RewriteOperator(
        name, arguments, (), _same_shape, rule, structure, common_points, commutes
    )


def _function(name: str) -> RewriteOperator:
    kind = StructureKind.POINTWISE
    return RewriteOperator(name, (TENSOR,), (), _same_shape, plain(name), kind, first_points)


PAIRS = frozenset({"ewadd", "ewmul", "ewsub", "ewdiv"})
"""The operators of two elements at the same place."""

OPERATORS = (
    _pair("ewadd", "add", StructureKind.GATHER, commutes=True),
    _pair("ewmul", "mul", StructureKind.BILINEAR, commutes=True),
    _pair("ewsub", "sub", StructureKind.GATHER),
    _pair("ewdiv", "div", StructureKind.QUOTIENT),
    *map(_function, ("relu", "exp", "sigmoid", "tanh")),
    RewriteOperator(
        "scalar_mul",
        (TENSOR, ArgumentRole.NUMBER),
        (),
        _of_data,
        plain("mul"),
        StructureKind.BILINEAR,
        first_points,
        short_name="scale",
    ),
)
