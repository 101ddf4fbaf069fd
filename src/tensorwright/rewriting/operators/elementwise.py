"""Functions of elements of two or three tensors at the same position, and of a number.

ewadd(a, b)         a (2, 3), b (2, 3) -> (2, 3); other shapes are ill-typed
less(a, b)          1 where a < b, else 0: the result of a comparison is a number
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
    MeaningRule,
    RewriteOperator,
    Step,
    StructureKind,
    plain,
    same_shape,
)
from tensorwright.rewriting.operators.split_points import common_points, first_points
from tensorwright.rewriting.shapes import Needs, Params, Shapes


def _of_data(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    needs.rank(shapes[1], 0)
    return shapes[0]


def _of_same_shape(
    name: str,
    meaning: MeaningRule,
    structure: StructureKind = StructureKind.ANY,
    *,
    arity: int = 2,
    commutes: bool = False,
) -> RewriteOperator:
    return RewriteOperator(
        name,
        same_shape,
        meaning,
        arguments=(TENSOR,) * arity,
        structure=structure,
        split_points=common_points,
        is_commutative=commutes,
        merging=ALIKE,
    )


def _comparison(name: str) -> MeaningRule:
    """Truth as a number."""
    return lambda params, shapes: (Step(name, {}), Step("cast", {"to": DType.F64}))


def _select(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    return (Step("cast", {"to": DType.BOOL}, argument=0), Step("where", {}))


PAIR_OPERATORS = (
    _of_same_shape("ewadd", plain("add"), StructureKind.GATHER, commutes=True),
    _of_same_shape("ewmul", plain("mul"), StructureKind.BILINEAR, commutes=True),
    _of_same_shape("ewsub", plain("sub"), StructureKind.GATHER),
    _of_same_shape("ewdiv", plain("div"), StructureKind.QUOTIENT),
    _of_same_shape("ewmax", plain("max"), commutes=True),
    _of_same_shape("ewmin", plain("min"), commutes=True),
    _of_same_shape("ewpow", plain("pow")),
    _of_same_shape("less", _comparison("less")),
    _of_same_shape("less_or_equal", _comparison("less_or_equal")),
    _of_same_shape("equal", _comparison("equal"), commutes=True),
)

PAIRS = frozenset(each.name for each in PAIR_OPERATORS)
"""The operators of two elements at the same position."""

OPERATORS = (
    *PAIR_OPERATORS,
    _of_same_shape("select", _select, arity=3),
    RewriteOperator(
        "scalar_mul",
        _of_data,
        plain("mul"),
        arguments=(TENSOR, ArgumentRole.NUMBER),
        structure=StructureKind.BILINEAR,
        split_points=first_points,
        short_name="scale",
        merging=ALIKE,
    ),
)
