"""The loops of a reduction inside one tile: which are unrolled, which one is the innermost.

A reduction is blocked if the weights of one panel do not fit the second cache: otherwise every tile
would read them again from beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol

from tensorwright.expr import Axis, Compute, Index, exact_div, loads_of
from tensorwright.schedule import Split, Stage, Tail
from tensorwright.tuning.space.axes.accesses import (
    count_of,
    period_along,
    points,
    reads_along,
    reads_once,
    stride_along,
)
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors
from tensorwright.tuning.space.tile_limits import CPU_LIMITS

_UNROLLED = 4  # terms of a longer one, at least
_MOST_UNROLLED_TERMS = 8  # of a product
_UNROLLED_ADDS = 96  # multiply-adds of a step of a product, more or less
_LINE_TERMS = 16  # that lie in one line of the caches
_FEW_USES = 64  # of an element: part of their operands come from beyond the second cache
_MOST_LINE_ADDS = 192  # multiply-adds of a step of that many terms
_MOST_TAPS = 16  # of a row of a window that is unrolled whole
_MOST_WINDOW = 49  # taps of a window


class Choose(Protocol):
    """Makes a choice of a sketch: its name, the values, the usual one, its kind."""

    def __call__(self, name: str, values: tuple[int, ...], default: int, kind: Kind) -> Index:
        """The decision."""


def split_reduction(
    builder: SketchBuilder,
    stage: Stage,
    taps: list[str],
    choose: Choose,
    *,
    sums: int,
    is_window: bool,
) -> tuple[list[str], list[str]]:
    """The loops of the reduction: (loops, unrolled loops), outermost first.

    taps       axes of which terms are skipped: their loops are around the others, if there are any
    sums       of a tile, by rule
    is_window  neighbours share most of what they read, and the padding beside it is inlined
    """
    axes = list(stage.tensor.reduce_axes)
    if count_of(axes) <= CPU_LIMITS.whole_fold:
        return [], [axis.name for axis in axes]
    if is_window:
        return _split_taps(builder, stage, [axis for axis in axes if axis.extent != 1], choose)
    inside = [axis for axis in axes if axis.name not in taps]
    if not inside:
        return taps, []
    main = _innermost(stage.tensor, inside)
    others = [axis.name for axis in inside if axis is not main]
    extent = main.length
    block = period_along(loads_of(stage.tensor.body), main)
    usual = max(divisors(block or extent, _usual_terms(stage.tensor, main, sums)))
    # with fewer terms a step, what it costs beside its arithmetic is more: up to twice the time
    least = min(usual, _MOST_UNROLLED_TERMS)
    steps = tuple(step for step in divisors(block or extent, CPU_LIMITS.unrolled) if step >= least)
    step = choose("unroll", steps, usual, Kind.UNROLL)
    if block and extent > block:
        inner = exact_div(block, step)
        builder.do(Split(stage.name, main.name, (inner, step), Tail.EXACT))
        loops = [*taps, f"{main.name}_0", *others, f"{main.name}_1"]
        return loops, [f"{main.name}_2"]
    builder.do(Split(stage.name, main.name, (step,), Tail.EXACT))
    return [*taps, *others, f"{main.name}_o"], [f"{main.name}_i"]


def _usual_terms(tensor: Compute, main: Axis, sums: int) -> int:
    """The most terms to unroll: the cost of a step beside its arithmetic must be small.

    A product waits for an operand that is read in order, for few results an element: a step takes a
    whole line of it, so that the processor can predict the loads of the next steps.

    sums   of a tile: each takes a multiply-add for every term
    """
    if reads_once(tensor):
        return _UNROLLED
    if sums * _LINE_TERMS <= _MOST_LINE_ADDS and _least_uses(tensor, main) <= _FEW_USES:
        return _LINE_TERMS
    return min(_MOST_UNROLLED_TERMS, max(_UNROLLED, _UNROLLED_ADDS // sums))


def _least_uses(tensor: Compute, main: Axis) -> int:
    """The least uses of each element of an operand that an axis reads in order."""
    uses = [
        prod(axis.length for axis in tensor.axes if not reads_along(load, axis.var))
        for load in loads_of(tensor.body)
        if stride_along(load, main.var) == 1
    ]
    return min(uses, default=points(tensor))


def _innermost(tensor: Compute, axes: Sequence[Axis]) -> Axis:
    """The longest axis; if each element is read once, the one along which memory is in order."""
    if not reads_once(tensor):
        return max(axes, key=lambda axis: axis.length)

    def apart(axis: Axis) -> tuple[bool, int]:
        strides = [stride_along(load, axis.var) for load in loads_of(tensor.body)]
        return axis.extent == 1, sum(points(tensor) if s is None else abs(s) for s in strides)

    return min(axes, key=apart)


def _split_taps(
    builder: SketchBuilder, stage: Stage, axes: list[Axis], choose: Choose
) -> tuple[list[str], list[str]]:
    """The loops of a window of many terms: as `split_reduction`.

    Neighbours along the innermost axis share reads: its taps are unrolled, with those of the axis
    around it if they are few.  The others are loops, so that a whole row of taps is skipped at
    once.
    """
    *others, last = axes
    extent = last.length
    if extent > _MOST_TAPS:
        step = choose(
            "unroll",
            divisors(extent, CPU_LIMITS.unrolled),
            max(divisors(extent, 8)),
            Kind.UNROLL,
        )
        builder.do(Split(stage.name, last.name, (step,), Tail.EXACT))
        return [*(axis.name for axis in others), f"{last.name}_o"], [f"{last.name}_i"]
    if not others:
        return [], [last.name]
    *others, around = others
    sizes = divisors(around.length, _MOST_WINDOW // extent)
    step = choose("unroll", sizes, 1, Kind.UNROLL)
    builder.do(Split(stage.name, around.name, (step,), Tail.EXACT))
    loops = [*(axis.name for axis in others), f"{around.name}_o"]
    return loops, [f"{around.name}_i", last.name]
