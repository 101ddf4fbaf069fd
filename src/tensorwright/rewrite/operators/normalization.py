"""Batch normalisation at inference: an affine function of each channel."""

from __future__ import annotations

from tensorwright.rewrite.dims import Shape
from tensorwright.rewrite.operators.operator import RewriteOperator, plain
from tensorwright.rewrite.shapes import Needs
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS"]


def _shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    x, *vectors = shapes
    needs.hold(len(x) >= 2, "batch_norm of a tensor without channels")
    for vector in vectors:
        needs.equal_shapes((x[1],), vector)
    return x


OPERATORS = (RewriteOperator("batch_norm", 5, (), _shape, plain("batch_norm")),)
