"""Normalisations: of batches at inference, of the last dimensions, and softmax.

batch_norm(x, scale, bias, mean, var)    x (1, 4, 9, 9), the others (4) -> (1, 4, 9, 9)
what it gives                            (x - mean) / sqrt(var + 1e-5) * scale + bias
batch_norm(x, s, b, m, v)                x (4) is ill-typed: it has no channels
layer_norm[1, f1em05](x, scale, bias)    x (2, 3, 4), the others (3, 4): of dimensions from 1 on
softmax[1](x)                            x (2, 3), sums to 1 along dimension 1
"""

from __future__ import annotations

from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.dimensions import BESIDE_AXIS, CHANNELS, ROWS
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    ArgumentRole,
    RewriteOperator,
    StructureKind,
    plain,
    shape_with_axis,
)
from tensorwright.rewriting.operators.parameters import AXIS, axis_of, number_parameter
from tensorwright.rewriting.shapes import Needs, Params, Shapes


def _shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    x, *vectors = shapes
    needs.hold(len(x) >= 2, "batch_norm of a tensor without channels")
    for vector in vectors:
        needs.equal_shapes((x[1],), vector)
    return x


def _layer_norm_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    x, scale, bias = shapes
    rows = x[axis_of(params[0], x) :]
    needs.equal_shapes(rows, scale)
    needs.equal_shapes(rows, bias)
    return x


OPERATORS = (
    RewriteOperator(
        "batch_norm",
        _shape,
        plain("batch_norm"),
        arguments=(*(TENSOR,) * 4, ArgumentRole.VARIANCE),
        structure=StructureKind.AFFINE,
        merging=CHANNELS,
    ),
    RewriteOperator(
        "layer_norm",
        _layer_norm_shape,
        plain("layer_norm", "axis", "epsilon"),
        arguments=(TENSOR, TENSOR, TENSOR),
        parameters=(AXIS, number_parameter("epsilon", 1e-5, 0.5)),
        merging=ROWS,
    ),
    RewriteOperator(
        "softmax",
        shape_with_axis,
        plain("softmax", "axis"),
        parameters=(AXIS,),
        merging=BESIDE_AXIS,
    ),
)
