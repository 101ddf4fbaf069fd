"""Tensors without arguments: ones, the identities of products and convolutions, mean kernels.

ones[2, 3]()              (2, 3), all 1
eye[2]()                  ((1, 0), (0, 1))
pool_kernel[4, 3, 3]()    (4, 1, 3, 3), all 1/9: convolution with it is average pooling
"""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.convolution import enlarge_steps
from tensorwright.rewriting.operators.dimensions import CREATED, Merging
from tensorwright.rewriting.operators.operator import (
    MeaningRule,
    RewriteOperator,
    Step,
    StructureKind,
)
from tensorwright.rewriting.operators.parameters import SIZES, Parameter, SizeGuess, number, size
from tensorwright.rewriting.shapes import Needs, Params, ShapeRule, Shapes

_DTYPE = DType.F64


def extents_of(params: Params, needs: Needs) -> Shape:
    """Parameters that are the extents of a tensor: at least 1 each."""
    extents = tuple(map(size, params))
    for extent in extents:
        needs.at_least(extent, 1)
    return extents


def _full(shape: Shape, value: float) -> Step:
    return Step("full", {"shape": shape, "value": value, "dtype": _DTYPE})


def _ones_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    return extents_of(params, needs)


def _ones(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    return (_full(tuple(map(size, params)), 1.0),)


def _eye_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    return extents_of(params * 2, needs)


def _eye(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    extent = size(params[0])
    return (_full((extent, extent), 0.0), Step("eye_like", {"dtype": _DTYPE}))


def _identity_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    return extents_of((params[0], *params), needs)


def _identity(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    channels, rows, columns = map(number, params)
    column = Step("reshape", {"shape": (channels, channels, 1, 1)})
    around = enlarge_steps((rows, columns), (channels, channels, 1, 1))
    return (*_eye((channels,), ()), column, *around)


def _pool_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    return extents_of((params[0], 1, *params[1:]), needs)


def _pool(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    channels, rows, columns = map(number, params)
    return (_full((channels, 1, rows, columns), 1 / (rows * columns)),)


_KERNEL = tuple(Parameter(name, size=SizeGuess.NUMBER) for name in ("c", "kernel_h", "kernel_w"))


def _constant(
    name: str,
    parameters: tuple[Parameter, ...],
    shape: ShapeRule,
    meaning: MeaningRule,
    merging: Merging | None = None,
) -> RewriteOperator:
    return RewriteOperator(
        name,
        shape,
        meaning,
        arguments=(),
        parameters=parameters,
        structure=StructureKind.CONSTANT,
        merging=merging,
    )


OPERATORS = (
    _constant("ones", SIZES, _ones_shape, _ones, CREATED),
    _constant("eye", (Parameter("n", size=SizeGuess.EXTENT),), _eye_shape, _eye),
    _constant("identity_kernel", _KERNEL, _identity_shape, _identity),
    _constant("pool_kernel", _KERNEL, _pool_shape, _pool),
)
