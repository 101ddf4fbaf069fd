"""Windows over rows and columns, or over volumes: convolution and pooling.

conv2d[2, 2, same, none](x, w)    x (1, 4, 9, 9), w (8, 4, 3, 3) -> (1, 8, 5, 5)
enlarge[5, 5](w)                  (8, 4, 5, 5) with zeros around, the same convolution
max_pool[3, 3, 2, 2, same](x)     x (1, 4, 9, 9) -> (1, 4, 5, 5)
avg_pool[3, 3, 1, 1, same](x)     divides by 9 everywhere: padding counts

A padding is a word: `same`, `valid`, or p with the rows above, the columns on the left, the rows
below and the columns on the right; of a convolution maybe with the steps between taps behind it, as
in p2_2_2_2_d2_2.  Over volumes the planes in front stand before the rows above, those behind before
the rows below: p1_0_0_1_0_0.  A word that is left open, `_pad_`, is any but `same`: its numbers are
variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tensorwright.ops import Attributes, automatic_pads
from tensorwright.rewriting.assumptions import IllTyped, Needs, Params, Shapes
from tensorwright.rewriting.dims import Extent, Shape
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    ArgumentRole,
    IntShape,
    RewriteOperator,
    Step,
)
from tensorwright.rewriting.operators.parameters import (
    Parameter,
    is_open_word,
    number,
    numbers,
    size,
)
from tensorwright.rewriting.terms import Param

STRIDES = (Parameter("stride_h", is_open=True), Parameter("stride_w", is_open=True))
KERNEL = (Parameter("kernel_h", is_open=True), Parameter("kernel_w", is_open=True))


def _padding(form: str, *samples: str) -> Parameter:
    return Parameter(
        "padding", words=("same", "valid"), form=form, samples=samples, excluded=("same",)
    )


@dataclass(frozen=True, slots=True)
class Windows:
    """The parameters of windows over the dimensions behind the first two of a tensor.

    padding   of a pool;  taps  the same of a convolution, maybe with the steps between its taps
    """

    strides: tuple[Parameter, ...]
    kernel: tuple[Parameter, ...]
    padding: Parameter
    taps: Parameter

    @property
    def rank(self) -> int:
        """How many dimensions a tensor has: those, and images and channels."""
        return len(self.strides) + 2


_EXPLICIT, _EXPLICIT_3 = r"p\d+(_\d+){3}", r"p\d+(_\d+){5}"
_STEP = r"[1-9]\d*"
OVER_PLANES = Windows(
    STRIDES,
    KERNEL,
    _padding(_EXPLICIT, "p1_1_1_1", "p0_1_1_0"),
    _padding(rf"{_EXPLICIT}(_d{_STEP}_{_STEP})?", "p1_1_1_1", "p0_1_2_0", "p1_0_2_2_d2_1"),
)
OVER_VOLUMES = Windows(
    (Parameter("stride_d", is_open=True), *STRIDES),
    (Parameter("kernel_d", is_open=True), *KERNEL),
    _padding(_EXPLICIT_3, "p1_0_1_1_0_1", "p0_1_1_1_0_0"),
    _padding(rf"{_EXPLICIT_3}(_d{_STEP}_{_STEP}_{_STEP})?", "p1_0_1_1_0_1", "p0_1_0_1_0_2_d2_1_1"),
)


@dataclass(frozen=True, slots=True)
class _Explicit:
    """Of each dimension: what is before, what after, the steps between taps."""

    before: Shape
    after: Shape
    steps: Shape


def _explicit(padding: Param, dimensions: int) -> _Explicit | None:
    """The explicit padding of a word; None for `same` and `valid`."""
    word = str(padding)
    places = range(dimensions)
    if is_open_word(word):
        return _Explicit(
            *(
                tuple(Extent(f"{word}:{name}{number}_", 0) - less for number in places)
                for name, less in (("before", 1), ("after", 1), ("step", 0))
            )
        )
    numbers = tuple(map(int, re.findall(r"\d+", word)))
    if not numbers:
        return None
    steps = numbers[2 * dimensions :] or (1,) * dimensions
    return _Explicit(numbers[:dimensions], numbers[dimensions : 2 * dimensions], steps)


def padding_word(pads: IntShape, steps: IntShape) -> str:
    """The word for explicit padding: all begins, then all ends; and for the steps between taps."""
    word = "p" + "_".join(map(str, pads))
    return word if set(steps) == {1} else f"{word}_d" + "_".join(map(str, steps))


def window_extents(
    extents: Shape, kernel: Shape, strides: Shape, padding: Param, needs: Needs
) -> Shape:
    """How many windows there are along each dimension; for `same`, ceil(extent / stride)."""
    need_positive(strides, "a stride", needs)
    if padding == "same":
        pairs = zip(extents, strides, strict=True)
        return tuple((extent + stride - 1) // stride for extent, stride in pairs)
    explicit = _explicit(padding, len(extents))
    if explicit is not None:
        padded = zip(extents, explicit.before, explicit.after, strict=True)
        extents = tuple(extent + before + after for extent, before, after in padded)
        reach = zip(kernel, explicit.steps, strict=True)
        kernel = tuple((taps - 1) * step + 1 for taps, step in reach)
    counts = []
    for extent, taps, stride in zip(extents, kernel, strides, strict=True):
        needs.at_least(extent, taps)
        counts.append((extent - taps) // stride + 1)
    return tuple(counts)


def need_positive(sizes: Shape, what: str, needs: Needs) -> None:
    """Each is at least 1."""
    for each in sizes:
        if isinstance(each, int):
            needs.hold(each >= 1, f"{what} below 1")
        needs.at_least(each, 1)


def need_elements(padding: Param, kernel: Shape, needs: Needs) -> None:
    """Each window of a pool has elements: its taps are neighbours, and reach behind the padding."""
    explicit = _explicit(padding, len(kernel))
    if explicit is None:
        return
    for dimension, extent in enumerate(kernel):
        for padded in (explicit.before[dimension], explicit.after[dimension]):
            rest = extent - padded
            needs.hold(not isinstance(rest, int) or rest >= 1, "a window without an element")
            needs.at_least(rest, 1)
        needs.equal(explicit.steps[dimension], 1)


def holds_elements(padding: Param, kernel: IntShape) -> bool:
    """Whether each window of a pool has elements."""
    try:
        need_elements(padding, kernel, Needs())
    except IllTyped:
        return False
    return True


def steps_of(padding: Param, dimensions: int) -> IntShape:
    """The steps between the taps of a window, as `ops` takes them."""
    explicit = _explicit(padding, dimensions)
    return (1,) * dimensions if explicit is None else tuple(map(number, explicit.steps))


def pads_of(padding: Param, x: Shape, kernel: IntShape, strides: IntShape) -> IntShape:
    """The padding of the dimensions of a tensor behind the first two, as `ops` takes it."""
    explicit = _explicit(padding, len(kernel))
    if explicit is not None:
        return tuple(map(number, (*explicit.before, *explicit.after)))
    mode = "SAME_UPPER" if padding == "same" else "VALID"
    pads = automatic_pads(mode, x[2:], kernel, strides, (1,) * len(kernel))
    return tuple(map(number, pads))


def _conv_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x, w), (*strides, padding, _) = shapes, params
    for each in shapes:
        needs.rank(each, 2 + len(strides))
    needs.divides(w[1], x[1])
    groups = x[1] // w[1]
    needs.divides(groups, w[0])
    extents = window_extents(x[2:], w[2:], tuple(map(size, strides)), padding, needs)
    return (x[0], w[0], *extents)


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


_ACTIVATION = Parameter("activation", words=("none", "relu"), is_beside_shape=True)
_LARGER = tuple(Parameter(name, is_size=True) for name in ("kernel_h", "kernel_w"))


def _convolution(name: str, windows: Windows) -> RewriteOperator:
    return RewriteOperator(
        name,
        _conv_shape,
        _conv,
        arguments=(TENSOR, ArgumentRole.KERNEL),
        parameters=(*windows.strides, windows.taps, _ACTIVATION),
        rank=windows.rank,
    )


CONVOLUTIONS = (
    _convolution("conv2d", OVER_PLANES),
    _convolution("conv3d", OVER_VOLUMES),
    RewriteOperator(
        "enlarge",
        _enlarge_shape,
        _enlarge,
        arguments=(ArgumentRole.KERNEL,),
        parameters=_LARGER,
        rank=4,
    ),
)


def _pool_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,), sizes = shapes, tuple(map(size, params[:-1]))
    kernel, strides = sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :]
    needs.rank(x, 2 + len(kernel))
    need_positive(sizes, "a kernel or stride", needs)
    extents = window_extents(x[2:], kernel, strides, params[-1], needs)
    need_elements(params[-1], kernel, needs)
    return (*x[:2], *extents)


def _pool(windows: Windows, name: str, operator: str, more: Attributes) -> RewriteOperator:
    def meaning(params: Params, shapes: Shapes) -> tuple[Step, ...]:
        sizes = tuple(map(number, params[:-1]))
        kernel, strides = sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :]
        pads = pads_of(params[-1], shapes[0], kernel, strides)
        return (Step(operator, {"kernel": kernel, "strides": strides, "pads": pads, **more}),)

    return RewriteOperator(
        name,
        _pool_shape,
        meaning,
        parameters=(*windows.kernel, *windows.strides, windows.padding),
        rank=windows.rank,
    )


_MEAN: tuple[str, Attributes] = ("average_pool", {"count_include_pad": True})
POOLS = (
    _pool(OVER_PLANES, "max_pool", "max_pool", {}),
    _pool(OVER_PLANES, "avg_pool", *_MEAN),
    _pool(OVER_VOLUMES, "max_pool3d", "max_pool", {}),
    _pool(OVER_VOLUMES, "avg_pool3d", *_MEAN),
)
