"""Transposed convolution without a multiplication by an inserted zero.

Shapes:  x (n, c, *spatial), w (c, oc/groups, *kernel), bias (oc)

Extent of the output:
(extent - 1)*stride + output_padding + (kernel - 1)*dilation + 1 - pads; negative pads enlarge it.

Rewrite, per spatial dimension (after Shi et al., "Is the deconvolution layer the same as a
convolutional layer?", 2016):
    out[o] = sum of x[i]*w[k] over i*stride + k*dilation - begin = o
    ->  o = stride*y + p: for each phase p only every stride-th k meets an i, and i - y is constant
        cells[y, p] = sum over t of x[y + first(p) + t*step] * w[top(p) - t*skip]
        out[o] = cells[o // stride, o % stride]
Neighbouring phases with equally many terms, whose `first` and `top` are affine in p, are one
`Compute` with p as an axis; kernel 4, stride 2 is a single one. Where there would be several, the
kernel is enlarged by zeros until all phases have equally many terms: kernel 3, stride 2 becomes 4.
One sum is scheduled as well as a convolution, and its schedule may skip the zeros. Phases that
read the same inputs are channels: a kernel as large as its stride is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import TypeAlias

import numpy as np

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import named_sizes, operator
from tensorwright.ops.shapes import fold_over, padded, position_along, spatial_names
from tensorwright.ops.windows.convolution import GROUPS, WINDOW_ATTRIBUTES, add_bias

Sizes: TypeAlias = tuple[expr.Index, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How one spatial dimension is enlarged."""

    extent: expr.Index
    kernel: int
    stride: int
    dilation: int
    begin: int
    output: expr.Index

    @property
    def phases(self) -> range:
        """Where outputs lie between the steps of the stride."""
        if isinstance(self.output, int):
            return range(min(self.stride, self.output))
        if named_sizes.decided(self.output >= self.stride):
            return range(self.stride)
        return range(named_sizes.number_of(self.output))


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring phases first..first+count-1 that one expression computes.

    cells   how many outputs each phase has         taps   how many products each output sums
    source  (a, b): the first input of output y in phase p is y + a + b*(p - first)
    top     (a, b): its kernel position is a + b*(p - first)
    zeros   rows of zeros before and after the kernel that the positions count as part of it
    """

    first: int
    count: int
    cells: expr.Index
    taps: int
    source: tuple[int, int]
    top: tuple[int, int]
    zeros: tuple[int, int] = (0, 0)

    @property
    def shares_source(self) -> bool:
        """Whether all phases sum products of the same inputs, none with a zero of the kernel: then
        they are like channels.
        """
        return self.source[1] == 0 and not any(self.zeros)

    def grown(self, other: Run) -> Run | None:
        """This run with a single phase after it, or None where they do not fit together."""
        if (self.cells, self.taps) != (other.cells, other.taps):
            return None
        steps = tuple(
            (after[0] - here[0] - here[1] * (self.count - 1))
            for here, after in ((self.source, other.source), (self.top, other.top))
        )
        if self.count > 1 and steps != (self.source[1], self.top[1]):
            return None
        source, top = (self.source[0], steps[0]), (self.top[0], steps[1])
        return Run(self.first, self.count + 1, self.cells, self.taps, source, top)


def phase_runs(spread: Spread) -> tuple[Run, ...]:
    """The phases of one dimension, joined into as few runs as possible."""
    runs: list[Run] = []
    for phase in spread.phases:
        cells = expr.ceil_div(spread.output - phase, spread.stride)
        at = phase + spread.begin
        meets = [k for k in range(spread.kernel) if (at - k * spread.dilation) % spread.stride == 0]
        top = meets[-1] if meets else 0
        source = (at - top * spread.dilation) // spread.stride if meets else 0
        single = Run(phase, 1, cells, len(meets), (source, 0), (top, 0))
        joined = runs[-1].grown(single) if runs else None
        if joined is None:
            runs.append(single)
        else:
            runs[-1] = joined
    return tuple(runs)


def joined_phases(spread: Spread) -> Run | None:
    """All phases of one dimension as one run over an enlarged kernel; None if no run is that.

    The kernel positions of a phase are every stride-th one. The first is a + b*p; b solves
    b*dilation = 1 modulo the stride, and of the two small solutions that with fewer terms is taken.
    """
    stride, dilation = spread.stride, spread.dilation
    if gcd(stride, dilation) != 1 or stride == 1:
        return None
    slope = pow(dilation, -1, stride)
    return min((_joined(spread, b) for b in (slope, slope - stride)), key=lambda run: run.taps)


def _joined(spread: Spread, slope: int) -> Run:
    stride, dilation, begin = spread.stride, spread.dilation, spread.begin
    phases = spread.phases
    meets = {
        p: [k for k in range(spread.kernel) if (p + begin - k * dilation) % stride == 0]
        for p in phases
    }
    least = max((ks[-1] - slope * p for p, ks in meets.items() if ks), default=0)
    top = least + (begin * pow(dilation, -1, stride) - least) % stride
    taps = max(
        ((top + slope * p - ks[0]) // stride + 1 for p, ks in meets.items() if ks), default=1
    )
    tops = [top + slope * p for p in phases]
    low, high = min(tops) - stride * (taps - 1), max(tops) + 1
    return Run(
        first=0,
        count=len(phases),
        cells=expr.ceil_div(spread.output, stride),
        taps=taps,
        source=((begin - dilation * top) // stride, (1 - dilation * slope) // stride),
        top=(top, slope),
        zeros=(max(0, -low), max(0, high - spread.kernel)),
    )


def _runs(spreads: tuple[Spread, ...]) -> tuple[tuple[Run, ...], ...]:
    """The runs of each dimension: one each, where several sums would be needed otherwise."""
    runs = tuple(phase_runs(spread) for spread in spreads)
    if prod(sum(run.taps > 0 for run in each) for each in runs) <= 1:
        return runs
    joined = (
        each if len(each) == 1 else joined_phases(s) for s, each in zip(spreads, runs, strict=True)
    )
    return tuple(
        one if isinstance(one, tuple) else (one,) if one is not None else each
        for one, each in zip(joined, runs, strict=True)
    )


def _spreads(x: Sizes, w: Sizes, attributes: Attributes) -> tuple[Spread, ...]:
    count = len(x) - 2
    strides = operator.per_axis(attributes, "strides", count, 1)
    dilations = operator.per_axis(attributes, "dilations", count, 1)
    pads = operator.per_axis(attributes, "pads", 2 * count, 0)
    extra = operator.per_axis(attributes, "output_padding", count, 0)
    if min(*strides, *dilations) < 1:
        raise operator.fault(f"strides {strides} and dilations {dilations} must be positive")
    spreads = []
    for at, (extent, kernel) in enumerate(
        zip(x[2:], map(named_sizes.number_of, w[2:]), strict=True)
    ):
        full = (extent - 1) * strides[at] + extra[at] + (kernel - 1) * dilations[at] + 1
        output = full - pads[at] - pads[at + count]
        if not named_sizes.decided(output >= 1):
            raise operator.fault(f"pads {pads} leave no output along spatial dimension {at}")
        spreads.append(Spread(extent, kernel, strides[at], dilations[at], pads[at], output))
    return tuple(spreads)


def _infer(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, w = types[:2]
    operator.require_dtype("x", x, operator.NUMBERS)
    operator.require_same_dtype(("x", "w", "bias")[: len(types)], types)
    operator.require_rank("x", x, 3)
    operator.require_rank("w", w, len(x.shape), len(x.shape))
    groups = operator.int_of(attributes, "groups")
    shape, kernel = named_sizes.sizes_of(x), named_sizes.sizes_of(w)
    if not named_sizes.is_equal(kernel[0], shape[1]):
        taken = f"w {named_sizes.shape_text(kernel)} takes {kernel[0]}"
        raise operator.fault(f"input x has {shape[1]} channels, but {taken}")
    if groups < 1 or not named_sizes.is_multiple(shape[1], groups):
        raise operator.fault(f"{shape[1]} channels do not divide into {groups} groups")
    channels = kernel[1] * groups
    if len(types) == 3:
        operator.require_shape("bias", types[2], (channels,))
    spreads = _spreads(shape, kernel, attributes)
    return (TensorType(x.dtype, (shape[0], channels, *(s.output for s in spreads))),)


def _margins(spread: Spread, runs: tuple[Run, ...]) -> tuple[int, int]:
    """How far the reads go outside the input, before and after it."""
    before = after = 0
    step = spread.dilation // gcd(spread.stride, spread.dilation)
    for run in runs:
        if run.taps:
            ends = (run.source[0], run.source[0] + run.source[1] * (run.count - 1))
            before = max(before, -min(ends))
            last = run.cells - 1 + max(ends) + (run.taps - 1) * step
            after = max(after, named_sizes.number_of(last - spread.extent + 1))
    return before, after


def _indices_of(
    spread: Spread, run: Run, before: int, cell: expr.Index, phase: expr.Index, tap: expr.Index
) -> tuple[expr.Index, expr.Index]:
    """The index into the padded input and into the kernel of one product."""
    common = gcd(spread.stride, spread.dilation)
    source = run.source[0] + before + phase * run.source[1] + cell
    top = run.zeros[0] + run.top[0] + phase * run.top[1]
    return (
        source + tap * (spread.dilation // common),
        top - tap * (spread.stride // common),
    )


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The weights, and the order of their dimensions: channels first, or last where enlarged."""

    tensor: expr.Tensor
    is_enlarged: bool

    def load(self, ic: expr.Index, oc: expr.Index, places: Sequence[expr.Index]) -> expr.Load:
        """The weight between two channels."""
        return expr.Load(self.tensor, (*places, ic, oc) if self.is_enlarged else (ic, oc, *places))


def _enlarged(w: expr.Tensor, runs: tuple[tuple[Run, ...], ...]) -> _Kernel:
    """The weights with the zeros that joined phases ask for, channels last: neighbours in memory
    are channels of the output.
    """
    zeros = tuple(each[0].zeros for each in runs)
    if not any(map(sum, zeros)):
        return _Kernel(w, is_enlarged=False)
    shape = w.shape
    large = tuple(a + n + b for n, (a, b) in zip(shape[2:], zeros, strict=True))
    begins = tuple(before for before, _ in zeros)

    def body(*at: expr.Index) -> expr.Value:
        moved = tuple(k - begin for k, begin in zip(at, begins, strict=False))
        inside = expr.all_of(
            *(
                part
                for k, (before, after), extent in zip(at, zeros, shape[2:], strict=False)
                for part in (before == 0 or k >= before, after == 0 or k < before + extent)
            )
        )
        return expr.select(inside, expr.Load(w, (*at[-2:], *moved)), expr.constant(0, w.dtype))

    names = (*(f"k{s}" for s in spatial_names(len(large))), "ic", "oc")
    kernel = expr.compute("conv_transpose_kernel", (*large, *shape[:2]), body, names)
    return _Kernel(kernel, is_enlarged=True)


def _partial(
    name: str,
    data: expr.Tensor,
    kernel: _Kernel,
    channels: tuple[expr.Index, expr.Index],
    groups: int,
    spreads: tuple[Spread, ...],
    runs: tuple[Run, ...],
    befores: tuple[int, ...],
) -> expr.Compute:
    """All outputs whose phases lie in the given runs: axes n, oc, then a cell (and a phase)
    each.

    Phases that share their inputs are in the axis of the channels, all channels of a phase
    together: where the kernel is as large as the stride, this is a product.

    channels   of the input, and of a group of the output
    """
    space = spatial_names(len(spreads))
    per_input, per_output = channels[0] // groups, channels[1]
    channel = expr.reduce_axis("ic", per_input)
    taps = tuple(expr.reduce_axis(f"k{s}", run.taps) for s, run in zip(space, runs, strict=True))
    shape = [data.shape[0], per_output * groups]
    names = ["n", "oc"]
    for label, run in zip(space, runs, strict=True):
        if run.shares_source:
            shape[1] *= run.count
        shape += [run.cells] if run.shares_source else [run.cells, run.count]
        names += [label] if run.shares_source else [label, f"{label}p"]

    def body(n: expr.Index, row: expr.Index, *at: expr.Index) -> expr.Value | expr.Reduce:
        cells, phases, rest = [], [], list(at)
        oc, shared = expr.mod(row, per_output * groups), expr.floor_div(row, per_output * groups)
        for run in runs[::-1]:
            if run.shares_source:
                shared, phase = expr.floor_div(shared, run.count), expr.mod(shared, run.count)
            else:
                phase = rest.pop()
            phases.append(phase)
            cells.append(rest.pop())
        places = tuple(
            _indices_of(spread, run, before, cell, phase, position_along(tap))
            for spread, run, before, cell, phase, tap in zip(
                spreads, runs, befores, cells[::-1], phases[::-1], taps, strict=True
            )
        )
        ic = position_along(channel)
        if groups > 1:
            ic = ic + expr.floor_div(oc, per_output) * per_input
        left = expr.Load(data, (n, ic, *(source for source, _ in places)))
        own = expr.mod(oc, per_output) if groups > 1 else oc
        right = kernel.load(ic, own, [k for _, k in places])
        return fold_over(expr.sum_over, left * right, (channel, *taps))

    return expr.compute(name, tuple(shape), body, tuple(names))


def _has_phase(o: expr.Index, spread: Spread, run: Run) -> expr.Condition:
    """Whether an output's phase is one of a run's."""
    phase = expr.mod(o, spread.stride)
    after = run.first + run.count
    if run.count == 1 and spread.stride > 1:
        return expr.compare(expr.Relation.EQ, phase, run.first)
    return expr.all_of(
        run.first == 0 or phase >= run.first, after >= spread.stride or phase < after
    )


def _interleaved(
    name: str,
    parts: Sequence[tuple[tuple[Run, ...], expr.Compute | None]],
    shape: Sizes,
    spreads: tuple[Spread, ...],
    dtype: DType,
) -> expr.Compute:
    """Put the cells of all phases at their positions; None is a part whose outputs have no
    products.
    """

    def element(
        part: expr.Compute | None, runs: tuple[Run, ...], at: tuple[expr.Index, ...]
    ) -> expr.Value:
        if part is None:
            return expr.constant(0, dtype)
        shared: expr.Index = 0
        cells: list[expr.Index] = []
        for o, spread, run in zip(at[2:], spreads, runs, strict=True):
            phase = expr.mod(o, spread.stride) - run.first if run.count > 1 else 0
            cells.append(expr.floor_div(o, spread.stride))
            if run.shares_source:
                shared = shared * run.count + phase
            else:
                cells.append(phase)
        return expr.Load(part, (at[0], shared * shape[1] + at[1], *cells))

    def body(*at: expr.Index) -> expr.Value:
        (last_runs, last), *others = reversed(parts)
        value = element(last, last_runs, at)
        for runs, part in others:
            places = zip(at[2:], spreads, runs, strict=True)
            inside = expr.all_of(*(_has_phase(o, spread, run) for o, spread, run in places))
            value = expr.select(inside, element(part, runs, at), value)
        return value

    return expr.compute(name, shape, body, ("n", "oc", *spatial_names(len(spreads))))


def _meaning(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, w = tensors[:2]
    shape, kernel = x.shape, w.shape
    groups = operator.int_of(attributes, "groups")
    spreads = _spreads(shape, kernel, attributes)
    runs = _runs(spreads)
    weights = _enlarged(w, runs)
    margins = tuple(_margins(spread, each) for spread, each in zip(spreads, runs, strict=True))
    befores = tuple(before for before, _ in margins)
    large = tuple(b + n + a for n, (b, a) in zip(shape[2:], margins, strict=True))
    space = spatial_names(len(spreads))
    data = padded(
        "conv_transpose_pad", x, (0, 0, *befores), (*shape[:2], *large), ("n", "c", *space)
    )
    plain = all(len(each) == 1 and each[0].count == 1 and each[0].taps for each in runs)
    name = "conv_transpose" if plain else "conv_transpose_phases"
    parts: list[tuple[tuple[Run, ...], expr.Compute | None]] = []
    for number, combination in enumerate(product(*runs)):
        part = None
        if all(run.taps for run in combination):
            label = name if number == 0 else f"{name}_{number}"
            channels = kernel[0], kernel[1]
            part = _partial(label, data, weights, channels, groups, spreads, combination, befores)
        parts.append((combination, part))
    first = parts[0][1]
    if plain and first is not None:
        result = first
    else:
        outputs = (shape[0], kernel[1] * groups, *(spread.output for spread in spreads))
        result = _interleaved("conv_transpose", parts, outputs, spreads, x.dtype)
    if len(tensors) == 2:
        return (result,)
    return (add_bias("conv_transpose_bias", result, tensors[2]),)


def _scaled_kernels(
    weights: operator.Numbers, factor: operator.Numbers, attributes: Attributes
) -> operator.Numbers:
    """Shapes: weights (c, oc / groups, ...), factor (oc); the group of c decides which of them"""
    groups = operator.int_of(attributes, "groups")
    repeated = np.repeat(factor.reshape(groups, -1), weights.shape[0] // groups, axis=0)
    return weights * repeated.reshape(*repeated.shape, *(1,) * (weights.ndim - 2))


TRANSPOSED_CONVOLUTION_OPERATORS = (
    operator.tensor_operator(
        "conv_transpose",
        "the gradient of a convolution: each x is spread over a window of the output",
        ("x", "w", "bias?"),
        (
            *WINDOW_ATTRIBUTES,
            GROUPS,
            operator.Attribute(
                "output_padding", (), "elements added to the end of the output; empty: 0"
            ),
        ),
        _infer,
        _meaning,
        operator.Pattern.ANCHOR,
        operator.LayoutPreference.CHANNELS,
        fold=operator.Fold.WINDOWS,
        channel_scale=_scaled_kernels,
        multiplied=2,
    ),
)
