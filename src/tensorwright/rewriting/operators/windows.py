"""Windows that move over rows and columns: what convolution and pooling share.

window_extent(9, 3, 2, "same", needs)      5: ceil(9 / 2)
window_extent(9, 3, 2, "valid", needs)     4: whole windows
kept_by_windows                            images and channels may be split as before, planes not
"""

from __future__ import annotations

from tensorwright.ops import automatic_pads
from tensorwright.rewriting.dims import Size
from tensorwright.rewriting.operators.operator import IntShape, Parameter
from tensorwright.rewriting.operators.split_points import Points, SplitPoints
from tensorwright.rewriting.shapes import Needs, Params, Shapes
from tensorwright.rewriting.terms import Param

PADDING = Parameter("padding", words=("same", "valid"))
STRIDES = (Parameter("stride_h"), Parameter("stride_w"))
KERNEL = (Parameter("kernel_h"), Parameter("kernel_w"))


def window_extent(extent: Size, kernel: Size, stride: int, padding: Param, needs: Needs) -> Size:
    """Rows of the result: ceil(extent / stride) for `same`, whole windows for `valid`."""
    if padding == "same":
        return (extent + stride - 1) // stride
    needs.at_least(extent, kernel)
    return (extent - kernel) // stride + 1


def pads_of(padding: Param, x: IntShape, kernel: IntShape, strides: IntShape) -> IntShape:
    """The padding of rows and columns of (n, c, h, w), as `ops` takes it."""
    mode = "SAME_UPPER" if padding == "same" else "VALID"
    return automatic_pads(mode, x[2:], kernel, strides, (1, 1))


def kept_by_windows(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Images and channels of the argument."""
    return (*points[0][:2], (), ())
