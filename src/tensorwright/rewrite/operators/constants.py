"""Tensors without arguments: ones, the identities of products and convolutions, mean kernels."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.rewrite.dims import Shape
from tensorwright.rewrite.operators.convolution import enlarge_steps
from tensorwright.rewrite.operators.operator import (
    SIZES,
    IntShape,
    Parameter,
    RewriteOperator,
    Step,
    number,
    size,
)
from tensorwright.rewrite.shapes import Needs
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS", "extents_of"]

_DTYPE = DType.F64


def extents_of(params: tuple[Param, ...], needs: Needs) -> Shape:
    """Parameters that are the extents of a tensor: at least 1 each."""
    extents = tuple(map(size, params))
    for extent in extents:
        needs.at_least(extent, 1)
    return extents


def _full(shape: IntShape, value: float) -> Step:
    return Step("full", {"shape": shape, "value": value, "dtype": _DTYPE})


def _ones_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    return extents_of(params, needs)


def _ones(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (_full(tuple(map(number, params)), 1.0),)


def _eye_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    return extents_of(params * 2, needs)


def _eye(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    extent = number(params[0])
    return (_full((extent, extent), 0.0), Step("eye_like", {"dtype": _DTYPE}))


def _identity_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    return extents_of((params[0], *params), needs)


def _identity(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    channels, rows, columns = map(number, params)
    column = Step("reshape", {"shape": (channels, channels, 1, 1)})
    around = enlarge_steps((rows, columns), (channels, channels, 1, 1))
    return (*_eye((channels,), ()), column, *around)


def _pool_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    return extents_of((params[0], 1, *params[1:]), needs)


def _pool(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    channels, rows, columns = map(number, params)
    return (_full((channels, 1, rows, columns), 1 / (rows * columns)),)


_KERNEL = tuple(Parameter(name, is_size=True) for name in ("c", "kernel_h", "kernel_w"))

OPERATORS = (
    RewriteOperator("ones", 0, SIZES, _ones_shape, _ones),
    RewriteOperator("eye", 0, (Parameter("n", is_size=True),), _eye_shape, _eye),
    RewriteOperator("identity_kernel", 0, _KERNEL, _identity_shape, _identity),
    RewriteOperator("pool_kernel", 0, _KERNEL, _pool_shape, _pool),
)
