"""Windows that move over rows and columns: what convolution and pooling share.

window_extent(9, 3, 2, "same", 0, needs)          5: ceil(9 / 2)
window_extent(9, 3, 2, "valid", 0, needs)         4: whole windows
window_extent(9, 3, 2, "p1_1_1_1", 0, needs)      5: of 11 rows, one more on each side
kept_by_windows                                   images and channels may be split, planes not

A padding is a word: `same`, `valid`, or p with the rows above, the columns on the left, the rows
below and the columns on the right; of a convolution maybe with the steps between taps behind it, as
in p2_2_2_2_d2_2.  A word that is left open, `_pad_`, is any but `same`: its numbers are variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tensorwright.ops import automatic_pads
from tensorwright.rewriting.dims import Dim, Extent, Shape, Size
from tensorwright.rewriting.operators.operator import IntShape, Parameter, is_open_word, number
from tensorwright.rewriting.operators.split_points import Points, SplitPoints
from tensorwright.rewriting.shapes import IllTyped, Needs, Params, Shapes
from tensorwright.rewriting.terms import Param

_EXPLICIT = r"p\d+_\d+_\d+_\d+"
PADDING = Parameter(
    "padding",
    words=("same", "valid"),
    form=_EXPLICIT,
    samples=("p1_1_1_1", "p0_1_1_0"),
    apart=("same",),
)
TAPS = Parameter(
    "padding",
    words=("same", "valid"),
    form=rf"{_EXPLICIT}(_d[1-9]\d*_[1-9]\d*)?",
    samples=("p1_1_1_1", "p0_1_2_0", "p1_0_2_2_d2_1"),
    apart=("same",),
)
STRIDES = (Parameter("stride_h", is_open=True), Parameter("stride_w", is_open=True))
KERNEL = (Parameter("kernel_h", is_open=True), Parameter("kernel_w", is_open=True))


@dataclass(frozen=True, slots=True)
class _Explicit:
    """Of rows and columns: before, after, steps between taps."""

    before: Shape
    after: Shape
    steps: Shape


def _explicit(padding: Param) -> _Explicit | None:
    """What a word says; None for `same` and `valid`."""
    word = str(padding)
    if is_open_word(word):
        return _Explicit(
            *(
                tuple(Dim.of(Extent(f"{word}:{name}{place}_", 0)) - less for place in (0, 1))
                for name, less in (("before", 1), ("after", 1), ("step", 0))
            )
        )
    found = tuple(map(int, re.findall(r"\d+", word)))
    if not found:
        return None
    return _Explicit(found[:2], found[2:4], found[4:] or (1, 1))


def padding_word(pads: IntShape, steps: IntShape) -> str:
    """The word for explicit padding: all begins, then all ends; and for the steps between taps."""
    word = "p" + "_".join(map(str, pads))
    return word if steps == (1, 1) else f"{word}_d{steps[0]}_{steps[1]}"


def window_extent(
    extent: Size, kernel: Size, stride: Size, padding: Param, place: int, needs: Needs
) -> Size:
    """Rows (place 0) or columns (1) of the result: ceil(extent / stride) for `same`, else whole
    windows.
    """
    need_positive((stride,), "a stride", needs)
    if padding == "same":
        return (extent + stride - 1) // stride
    told = _explicit(padding)
    if told is not None:
        extent = extent + told.before[place] + told.after[place]
        kernel = (kernel - 1) * told.steps[place] + 1
    needs.at_least(extent, kernel)
    return (extent - kernel) // stride + 1


def need_positive(sizes: Shape, what: str, needs: Needs) -> None:
    """Each is at least 1."""
    for each in sizes:
        if isinstance(each, int):
            needs.hold(each >= 1, f"{what} below 1")
        needs.at_least(each, 1)


def need_elements(padding: Param, kernel: Shape, needs: Needs) -> None:
    """Each window of a pool has elements: less is padded than a window has, and its taps are
    neighbours.
    """
    told = _explicit(padding)
    if told is None:
        return
    for place, extent in enumerate(kernel):
        for padded in (told.before[place], told.after[place]):
            rest = extent - padded
            needs.hold(not isinstance(rest, int) or rest >= 1, "a window without an element")
            needs.at_least(rest, 1)
        needs.equal(told.steps[place], 1)


def holds_elements(padding: Param, kernel: IntShape) -> bool:
    """Whether each window of a pool has elements."""
    try:
        need_elements(padding, kernel, Needs())
    except IllTyped:
        return False
    return True


def steps_of(padding: Param) -> IntShape:
    """The steps between the taps of a window, as `ops` takes them."""
    told = _explicit(padding)
    return (1, 1) if told is None else tuple(map(number, told.steps))


def pads_of(padding: Param, x: IntShape, kernel: IntShape, strides: IntShape) -> IntShape:
    """The padding of rows and columns of (n, c, h, w), as `ops` takes it."""
    told = _explicit(padding)
    if told is not None:
        return tuple(map(number, (*told.before, *told.after)))
    mode = "SAME_UPPER" if padding == "same" else "VALID"
    return automatic_pads(mode, x[2:], kernel, strides, (1, 1))


def kept_by_windows(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Images and channels of the argument."""
    return (*points[0][:2], (), ())
