"""Convolution of planes and volumes, grouped and depthwise too; larger kernels that do the same.

conv2d[2, 2, same, none](x, w)    x (1, 4, 9, 9), w (8, 4, 3, 3) -> (1, 8, 5, 5)
conv2d[1, 1, same, relu](x, w)    w (4, 1, 3, 3): depthwise, as groups follow from shapes
conv3d[1, 2, 2, valid, none](x, w)    x (1, 4, 8, 9, 9), w (8, 4, 3, 3, 3) -> (1, 8, 6, 4, 4)
enlarge[5, 5](w)                  (8, 4, 5, 5) with zeros around, the same convolution
"""

from __future__ import annotations

from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    ArgumentRole,
    IntShape,
    RewriteOperator,
    Step,
    StructureKind,
)
from tensorwright.rewriting.operators.parameters import Parameter, SizeGuess, number, numbers, size
from tensorwright.rewriting.operators.split_points import Points, SplitPoints
from tensorwright.rewriting.operators.windows import (
    OVER_PLANES,
    OVER_VOLUMES,
    Windows,
    kept_by_windows,
    pads_of,
    steps_of,
    window_extents,
)
from tensorwright.rewriting.shapes import Needs, Params, ShapeRule, Shapes


def _conv_shape(windows: Windows) -> ShapeRule:
    def rule(params: Params, shapes: Shapes, needs: Needs) -> Shape:
        x, w = shapes
        needs.rank(x, windows.rank)
        needs.rank(w, windows.rank)
        *strides, padding, _ = params
        needs.divides(w[1], x[1])
        groups = x[1] // w[1]
        needs.divides(groups, w[0])
        extents = window_extents(x[2:], w[2:], tuple(map(size, strides)), padding, needs)
        return (x[0], w[0], *extents)

    return rule


def _conv(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    x, w = shapes
    *steps, padding, activation = params
    strides = numbers(tuple(steps))
    pads = pads_of(padding, x, numbers(w[2:]), strides)
    window = {"strides": strides, "pads": pads, "dilations": steps_of(padding, len(strides))}
    conv = Step("conv", {**window, "groups": number(x[1] // w[1])})
    return (conv, Step("relu", {})) if activation == "relu" else (conv,)


def _enlarge_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (w,) = shapes
    needs.rank(w, 4)
    kernel = (size(params[0]), size(params[1]))
    for at, extent in enumerate(kernel):
        needs.at_least(extent, w[at + 2])
    return (*w[:2], *kernel)


def _enlarge(params: Params, shapes: Shapes) -> tuple[Step, ...]:
    return enlarge_steps((number(params[0]), number(params[1])), numbers(shapes[0]))


def enlarge_steps(kernel: IntShape, shape: IntShape) -> tuple[Step, ...]:
    """The padding of `same` is floor((k - 1) / 2) in front: that difference goes in front."""
    pairs = tuple(zip(kernel, shape[2:], strict=True))
    before = tuple((k - 1) // 2 - (own - 1) // 2 for k, own in pairs)
    after = tuple(k - own - b for (k, own), b in zip(pairs, before, strict=True))
    return (Step("pad", {"pads": (0, 0, *before, 0, 0, *after)}),)


def _conv_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The images of the data, the output channels of the kernel."""
    return (points[0][0], points[1][0], *((),) * (rank - 2))


_ACTIVATION = Parameter("activation", words=("none", "relu"), is_beside_shape=True)
_LARGER = tuple(Parameter(name, size=SizeGuess.NUMBER) for name in ("kernel_h", "kernel_w"))


def _convolution(name: str, windows: Windows) -> RewriteOperator:
    return RewriteOperator(
        name,
        _conv_shape(windows),
        _conv,
        arguments=(TENSOR, ArgumentRole.KERNEL),
        parameters=(*windows.strides, windows.taps, _ACTIVATION),
        structure=StructureKind.CONVOLUTION,
        split_points=_conv_points,
        short_name=name.replace("2d", ""),
        rank=windows.rank,
    )


OPERATORS = (
    _convolution("conv2d", OVER_PLANES),
    _convolution("conv3d", OVER_VOLUMES),
    RewriteOperator(
        "enlarge",
        _enlarge_shape,
        _enlarge,
        arguments=(ArgumentRole.KERNEL,),
        parameters=_LARGER,
        structure=StructureKind.GATHER,
        split_points=kept_by_windows,
        contains_arguments=True,
        rank=4,
    ),
)
