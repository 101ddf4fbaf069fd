"""Functions of elements of two or three tensors at the same place, and of a number.

ewadd(a, b)         a (2, 3), b (2, 3) -> (2, 3); other shapes are ill-typed
less(a, b)          1 where a < b, else 0: what a comparison says is a number
select(c, a, b)     a where c is not 0, else b
scalar_mul(x, s)    x (2, 3), s () -> (2, 3)
"""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.dimensions import ALIKE
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    ArgumentRole,
    IntShape,
    MeaningRule,
    RewriteOperator,
    Step,
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
    name: str,
    meaning: MeaningRule,
    structure: StructureKind = StructureKind.ANY,
    *,
    commutes: bool = False,
) -> RewriteOperator:
    arguments = (TENSOR, TENSOR)
    return RewriteOperator(
        name,
        arguments,
        (),
        _same_shape,
        meaning,
        structure,
        common_points,
        commutes,
        merging=ALIKE,
    )


def _comparison(name: str) -> MeaningRule:
    """Truth as a number."""
    return lambda params, shapes: (Step(name, {}), Step("cast", {"to": DType.F64}))


def _select(params: Params, shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("cast", {"to": DType.BOOL}, argument=0), Step("where", {}))


PAIR_OPERATORS = (
    _pair("ewadd", plain("add"), StructureKind.GATHER, commutes=True),
    _pair("ewmul", plain("mul"), StructureKind.BILINEAR, commutes=True),
    _pair("ewsub", plain("sub"), StructureKind.GATHER),
    _pair("ewdiv", plain("div"), StructureKind.QUOTIENT),
    _pair("ewmax", plain("max"), commutes=True),
    _pair("ewmin", plain("min"), commutes=True),
    _pair("ewpow", plain("pow")),
    _pair("less", _comparison("less")),
    _pair("less_or_equal", _comparison("less_or_equal")),
    _pair("equal", _comparison("equal"), commutes=True),
)

PAIRS = frozenset(each.name for each in PAIR_OPERATORS)
"""The operators of two elements at the same place."""

OPERATORS = (
    *PAIR_OPERATORS,
    RewriteOperator(
        "select",
        (TENSOR, TENSOR, TENSOR),
        (),
        _same_shape,
        _select,
        StructureKind.ANY,
        common_points,
        merging=ALIKE,
    ),
    RewriteOperator(
        "scalar_mul",
        (TENSOR, ArgumentRole.NUMBER),
        (),
        _of_data,
        plain("mul"),
        StructureKind.BILINEAR,
        first_points,
        short_name="scale",
        merging=ALIKE,
    ),
)
