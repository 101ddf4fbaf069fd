"""Affine loads as views: the part of a tensor that a box of loop variables reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tensorwright.expr.evaluation.domain import Array
from tensorwright.expr.index.nodes import Index, Var, terms_of


@dataclass(frozen=True, slots=True)
class Span:
    """The values start..stop-1 of a variable."""

    var: Var
    start: int
    stop: int

    @property
    def extent(self) -> int:
        """How many values."""
        return self.stop - self.start if self.stop > self.start else 0


@dataclass(frozen=True, slots=True)
class Affine:
    """offset + the sum of scale * variable, where `scales` names variables by position."""

    offset: int
    scales: tuple[tuple[int, int], ...]

    def first(self, spans: tuple[Span, ...]) -> int:
        """The value at the start of every span."""
        return self.offset + sum(scale * spans[dimension].start for dimension, scale in self.scales)

    def ends(self, spans: tuple[Span, ...]) -> tuple[int, int]:
        """The least and the greatest value."""
        low = high = self.offset
        for dimension, scale in self.scales:
            a, b = scale * spans[dimension].start, scale * (spans[dimension].stop - 1)
            low, high = low + min(a, b), high + max(a, b)
        return low, high


def read_affine(indices: tuple[Index, ...], dimensions: Mapping[Var, int]) -> list[Affine] | None:
    """The indices as affine functions of the variables in `dimensions`; None where one is not."""
    affine = []
    for index in indices:
        offset = 0
        scales = []
        for monomial, scale in terms_of(index):
            if not monomial:
                offset += scale
                continue
            atom = monomial[0]
            dimension = dimensions.get(atom) if isinstance(atom, Var) else None
            if dimension is None or len(monomial) > 1:
                return None
            scales.append((dimension, scale))
        affine.append(Affine(offset, tuple(scales)))
    return affine


def strided_view(array: Array, indices: Sequence[Affine], spans: tuple[Span, ...]) -> Array | None:
    """One dimension per span, of extent 1 where no index uses it; None where an index leaves."""
    strides = [0] * len(spans)
    shape = [1] * len(spans)
    starts = []
    for index, extent, stride in zip(indices, array.shape, array.strides, strict=True):
        low, high = index.ends(spans)
        if low < 0 or high >= extent:
            return None
        starts.append(slice(index.first(spans), None))
        for dimension, scale in index.scales:
            strides[dimension] += scale * stride
            shape[dimension] = spans[dimension].extent
    corner = array[tuple(starts)]
    return np.lib.stride_tricks.as_strided(corner, shape, strides, writeable=False)


def inner_box(
    shape: tuple[int, ...], indices: list[Affine], spans: tuple[Span, ...]
) -> tuple[Span, ...] | None:
    """The spans cut so that every index stays inside; None where that is not a box."""
    inner = list(spans)
    for index, extent in zip(indices, shape, strict=True):
        low, high = index.ends(tuple(inner))
        if low >= 0 and high < extent:
            continue
        moving = [pair for pair in index.scales if spans[pair[0]].extent > 1]
        if len(moving) != 1:
            return None
        ((dimension, scale),) = moving
        span = inner[dimension]
        rest = index.offset + sum(s * inner[p].start for p, s in index.scales if p != dimension)
        if scale > 0:  # the values of the variable that keep the index from 0 to extent - 1
            start, stop = -(rest // scale), (extent - 1 - rest) // scale + 1
        else:
            start, stop = -((extent - 1 - rest) // -scale), rest // -scale + 1
        inner[dimension] = replace(span, start=max(span.start, start), stop=min(span.stop, stop))
        if inner[dimension].extent == 0:
            return None
    return tuple(inner)
