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
from tensorwright.rewriting.operators.functions import number_of_word, number_parameter
from tensorwright.rewriting.operators.operator import (
    AXIS,
    TENSOR,
    ArgumentRole,
    IntShape,
    RewriteOperator,
    Step,
    StructureKind,
    axis_of,
    number,
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


def _layer_norm_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    x, scale, bias = shapes
    rows = x[axis_of(params[0], x) :]
    needs.equal_shapes(rows, scale)
    needs.equal_shapes(rows, bias)
    return x


def _layer_norm(params: Params, shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis, epsilon = number(params[0]), number_of_word(params[1])
    return (Step("layer_norm", {"axis": axis, "epsilon": epsilon}),)


def _softmax_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    axis_of(params[0], shapes[0])
    return shapes[0]


def _softmax(params: Params, shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("softmax", {"axis": number(params[0])}),)


OPERATORS = (
    RewriteOperator(
        "batch_norm",
        (*(TENSOR,) * 4, ArgumentRole.VARIANCE),
        (),
        _shape,
        plain("batch_norm"),
        StructureKind.AFFINE,
        no_points,
        merging=CHANNELS,
    ),
    RewriteOperator(
        "layer_norm",
        (TENSOR, TENSOR, TENSOR),
        (AXIS, number_parameter("epsilon", 1e-5, 0.5)),
        _layer_norm_shape,
        _layer_norm,
        StructureKind.ANY,
        no_points,
        merging=ROWS,
    ),
    RewriteOperator(
        "softmax",
        (TENSOR,),
        (AXIS,),
        _softmax_shape,
        _softmax,
        StructureKind.ANY,
        no_points,
        merging=BESIDE_AXIS,
    ),
)
