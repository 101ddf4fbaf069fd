"""The greatest element, or the mean, of each window of a plane.

max_pool[3, 3, 2, 2, same](x)     x (1, 4, 9, 9) -> (1, 4, 5, 5)
avg_pool[3, 3, 1, 1, valid](x)    x (1, 4, 9, 9) -> (1, 4, 7, 7)
avg_pool[3, 3, 1, 1, same](x)     divides by 9 everywhere: padding counts
"""

from __future__ import annotations

from tensorwright.ops import Attributes
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    IntShape,
    MeaningRule,
    RewriteOperator,
    Step,
    StructureKind,
    number,
    size,
)
from tensorwright.rewriting.operators.windows import (
    KERNEL,
    PADDING,
    STRIDES,
    kept_by_windows,
    need_elements,
    need_positive,
    pads_of,
    window_extent,
)
from tensorwright.rewriting.shapes import Needs, Params, Shapes

_PARAMETERS = (*KERNEL, *STRIDES, PADDING)


def _windows(params: Params) -> tuple[IntShape, IntShape]:
    """The kernel and the strides."""
    return tuple(map(number, params[:2])), tuple(map(number, params[2:4]))


def _shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    needs.rank(x, 4)
    kernel, strides = tuple(map(size, params[:2])), tuple(map(size, params[2:4]))
    need_positive((*kernel, *strides), "a kernel or stride", needs)
    rows, columns = (
        window_extent(x[at + 2], kernel[at], strides[at], params[4], at, needs) for at in (0, 1)
    )
    need_elements(params[4], kernel, needs)
    return (x[0], x[1], rows, columns)


def _meaning(name: str, more: Attributes) -> MeaningRule:
    def rule(params: Params, shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
        kernel, strides = _windows(params)
        pads = pads_of(params[4], shapes[0], kernel, strides)
        return (Step(name, {"kernel": kernel, "strides": strides, "pads": pads, **more}),)

    return rule


_COUNTS_PADDING = {"count_include_pad": True}


def _pool(name: str, meaning: MeaningRule, kind: StructureKind) -> RewriteOperator:
    return RewriteOperator(name, (TENSOR,), _PARAMETERS, _shape, meaning, kind, kept_by_windows)


OPERATORS = (
    _pool("max_pool", _meaning("max_pool", {}), StructureKind.PLANE_MAXIMUM),
    _pool("avg_pool", _meaning("average_pool", _COUNTS_PADDING), StructureKind.PLANE_SUM),
)
