"""The greatest element, or the mean, of each window of a plane or a volume.

max_pool[3, 3, 2, 2, same](x)     x (1, 4, 9, 9) -> (1, 4, 5, 5)
avg_pool[3, 3, 1, 1, valid](x)    x (1, 4, 9, 9) -> (1, 4, 7, 7)
avg_pool[3, 3, 1, 1, same](x)     divides by 9 everywhere: padding counts
max_pool3d[1, 3, 3, 1, 2, 2, same](x)    x (1, 4, 6, 9, 9) -> (1, 4, 6, 5, 5)
"""

from __future__ import annotations

from tensorwright.ops import Attributes
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.operator import (
    MeaningRule,
    RewriteOperator,
    Step,
    StructureKind,
)
from tensorwright.rewriting.operators.parameters import number, size
from tensorwright.rewriting.operators.windows import (
    OVER_PLANES,
    OVER_VOLUMES,
    Windows,
    kept_by_windows,
    need_elements,
    need_positive,
    pads_of,
    window_extents,
)
from tensorwright.rewriting.shapes import Needs, Params, ShapeRule, Shapes


def _shape(windows: Windows) -> ShapeRule:
    dimensions = windows.dimensions

    def rule(params: Params, shapes: Shapes, needs: Needs) -> Shape:
        (x,) = shapes
        needs.rank(x, windows.rank)
        sizes = tuple(map(size, params[:-1]))
        kernel, strides = sizes[:dimensions], sizes[dimensions:]
        need_positive((*kernel, *strides), "a kernel or stride", needs)
        extents = window_extents(x[2:], kernel, strides, params[-1], needs)
        need_elements(params[-1], kernel, needs)
        return (*x[:2], *extents)

    return rule


def _meaning(windows: Windows, name: str, more: Attributes) -> MeaningRule:
    dimensions = windows.dimensions

    def rule(params: Params, shapes: Shapes) -> tuple[Step, ...]:
        numbers = tuple(map(number, params[:-1]))
        kernel, strides = numbers[:dimensions], numbers[dimensions:]
        pads = pads_of(params[-1], shapes[0], kernel, strides)
        return (Step(name, {"kernel": kernel, "strides": strides, "pads": pads, **more}),)

    return rule


def _pool(
    windows: Windows, name: str, kind: StructureKind, operator: str, more: Attributes
) -> RewriteOperator:
    return RewriteOperator(
        name,
        _shape(windows),
        _meaning(windows, operator, more),
        parameters=(*windows.kernel, *windows.strides, windows.padding),
        structure=kind,
        split_points=kept_by_windows,
        rank=windows.rank,
    )


_MEAN: tuple[str, Attributes] = ("average_pool", {"count_include_pad": True})
OPERATORS = (
    _pool(OVER_PLANES, "max_pool", StructureKind.PLANE_MAXIMUM, "max_pool", {}),
    _pool(OVER_PLANES, "avg_pool", StructureKind.PLANE_SUM, *_MEAN),
    _pool(OVER_VOLUMES, "max_pool3d", StructureKind.MAXIMUM, "max_pool", {}),
    _pool(OVER_VOLUMES, "avg_pool3d", StructureKind.LINEAR, *_MEAN),
)
