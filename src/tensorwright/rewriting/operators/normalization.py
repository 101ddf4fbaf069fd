"""Batch normalisation at inference: an affine function of each channel.

batch_norm(x, scale, bias, mean, var)    x (1, 4, 9, 9), the others (4) -> (1, 4, 9, 9)
what it gives                            (x - mean) / sqrt(var + 1e-5) * scale + bias
batch_norm(x, s, b, m, v)                x (4) is ill-typed: it has no channels
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
from tensorwright.rewriting.operators.split_points import no_points
from tensorwright.rewriting.shapes import Needs, Params, Shapes


def _shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    x, *vectors = shapes
    needs.hold(len(x) >= 2, "batch_norm of a tensor without channels")
    for vector in vectors:
        needs.equal_shapes((x[1],), vector)
    return x


OPERATORS = (
    RewriteOperator(
        "batch_norm",
        (*(TENSOR,) * 4, ArgumentRole.VARIANCE),
        (),
        _shape,
        plain("batch_norm"),
        StructureKind.AFFINE,
        no_points,
    ),
)
