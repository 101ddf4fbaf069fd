"""Products of matrices, and of batches of them."""

from __future__ import annotations

from tensorwright.rewrite.dims import Shape
from tensorwright.rewrite.operators.operator import RewriteOperator, plain
from tensorwright.rewrite.shapes import Needs
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS"]


def _shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    a, b = shapes
    needs.hold(len(a) >= 2 and len(a) == len(b), "matmul of unequal ranks, or below 2")
    needs.equal_shapes(a[:-2], b[:-2])
    needs.equal(a[-1], b[-2])
    return (*a[:-1], b[-1])


OPERATORS = (RewriteOperator("matmul", 2, (), _shape, plain("matmul")),)
