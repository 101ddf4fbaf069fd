"""A box of loop variables, with all results that do not depend on the values read there.

x[i + 1, j] on the box i in 0..3, j in 0..8      a view of x: where it begins, shape and strides
i + 1 < 3 on that box                            an array of bools
LoopBox(box)                                      keeps both, for all arrays that x ever is

A tensor that is evaluated again and again has the same boxes each time.

Affine loads as views: the part of a tensor that a box of loop variables reads.

Cutting the box of a tensor into blocks whose evaluation stays below a number of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tensorwright.expr.evaluation.domain import Array
from tensorwright.expr.index.nodes import Element, Index, Var, terms_of
from tensorwright.expr.index.traversal import atoms_of, free_vars
from tensorwright.expr.tensor import Axis
from tensorwright.expr.value import Load, Value, children, indices_of


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


_PLAIN = "biuf"  # kinds of numbers whose arrays can be seen as memory


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a view stands in an array that is larger.

    shape  of the larger array    region  of the view in it
    """

    shape: tuple[int, ...]
    region: tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Affine indices on a box, for a tensor of one shape.

    spans    on which they stay inside
    offset   of the first element; `shape` and `strides` of the view, in elements where the source
             lies in memory row by row
    frame    where the view stands if the box is larger, else None
    """

    indices: tuple[Affine, ...]
    spans: tuple[Span, ...]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    frame: Frame | None

    def view(self, array: Array) -> Array:
        """The view of the elements that are read of an array."""
        if array.flags.c_contiguous and array.dtype.kind in _PLAIN:
            size = array.itemsize
            strides = [size * stride for stride in self.strides]
            return np.ndarray(self.shape, array.dtype, array, self.offset * size, strides)
        steps = [0] * len(self.spans)
        for index, stride in zip(self.indices, array.strides, strict=True):
            for dimension, scale in index.scales:
                steps[dimension] += scale * stride
        corner = array[tuple(slice(index.first(self.spans), None) for index in self.indices)]
        return np.lib.stride_tricks.as_strided(corner, self.shape, steps, writeable=False)


@dataclass(slots=True)
class Choice:
    """A condition on indices at each point of a box; `always` and `never` are of all of them."""

    holds: Array
    always: bool
    never: bool

    @staticmethod
    def of(holds: Array) -> Choice:
        """The answers with what they have in common."""
        return Choice(holds, bool(holds.all()), not holds.any())


@dataclass(frozen=True, slots=True)
class Part:
    """The dimensions of a box on which a factor depends, those of extent 1 left out.

    labels  their variables
    full    the shape on the whole box, 1 where it does not depend on the dimension
    shape   along these dimensions alone
    """

    labels: tuple[Var, ...]
    full: tuple[int, ...]
    shape: tuple[int, ...]


class LoopBox:
    """A box, whose results are kept by the nodes (objects) that they belong to.

    choices, gathers  of selects, and of loads that are not views; each with its node, so that the
                      id of the node stays its own
    """

    def __init__(self, spans: tuple[Span, ...]) -> None:
        self.spans = spans
        self.rank = 1 + len(spans)
        self.all_spans = (Span(Var(""), 0, 1), *spans)
        self.dimensions = {span.var: position for position, span in enumerate(spans, 1)}
        self.choices: dict[tuple[int, bool], tuple[Value, Choice]] = {}
        self.gathers: dict[tuple[int, bool], tuple[Load, tuple[Array, ...]]] = {}
        self._parts: dict[int, tuple[Value, Part]] = {}
        self._readings: dict[tuple[int, bool], tuple[Load, Reading | None]] = {}
        self._variables: dict[Var, Array] = {}

    def variable(self, var: Var) -> Array:
        """The values of a variable along its own dimension.

        Raises:  ValueError for one that no axis binds.
        """
        values = self._variables.get(var)
        if values is None:
            position = self.dimensions.get(var)
            if position is None:
                raise ValueError(f"the variable {var} is bound by no axis")
            span = self.spans[position - 1]
            shape = [1] * self.rank
            shape[position] = span.extent
            values = np.arange(span.start, span.stop, dtype=np.int64).reshape(shape)
            self._variables[var] = values
        return values

    def part(self, factor: Value, used: frozenset[Var]) -> Part:
        """The dimensions on which a factor with some variables depends."""
        kept = self._parts.get(id(factor))
        if kept is None:
            spans = [span for span in self.spans if span.var in used and span.extent > 1]
            part = Part(
                tuple(span.var for span in spans),
                (1, *(span.extent if span in spans else 1 for span in self.spans)),
                tuple(span.extent for span in spans),
            )
            kept = self._parts[id(factor)] = factor, part
        return kept[1]

    def reading(self, load: Load, shape: tuple[int, ...], guarded: bool) -> Reading | None:
        """How a load reads a tensor of a shape as a view; None where it cannot.

        guarded  whether what it reads outside is never chosen
        """
        key = (id(load), guarded)
        kept = self._readings.get(key)
        if kept is None:
            kept = self._readings[key] = load, self._read(load, shape, guarded)
        return kept[1]

    def _read(self, load: Load, shape: tuple[int, ...], guarded: bool) -> Reading | None:
        affine = read_affine(load.indices, self.dimensions)
        if affine is None:
            return None
        reading = _reading(tuple(affine), shape, self.all_spans, None)
        if reading is not None or not guarded:
            return reading
        inner = inner_box(shape, affine, self.all_spans)
        if inner is None:
            return None
        used = {dimension for index in affine for dimension, _ in index.scales}
        frame = Frame(
            tuple(s.extent if p in used else 1 for p, s in enumerate(self.all_spans)),
            tuple(
                slice(part.start - whole.start, part.stop - whole.start)
                if p in used
                else slice(None)
                for p, (part, whole) in enumerate(zip(inner, self.all_spans, strict=True))
            ),
        )
        return _reading(tuple(affine), shape, inner, frame)


def _reading(
    indices: tuple[Affine, ...],
    shape: tuple[int, ...],
    spans: tuple[Span, ...],
    frame: Frame | None,
) -> Reading | None:
    """The view on some spans; None where an index leaves the tensor."""
    steps = [0] * len(spans)
    extents = [1] * len(spans)
    offset, stride = 0, 1
    for index, extent in zip(reversed(indices), reversed(shape), strict=True):
        low, high = index.ends(spans)
        if low < 0 or high >= extent:
            return None
        offset += index.first(spans) * stride
        for dimension, scale in index.scales:
            steps[dimension] += scale * stride
            extents[dimension] = spans[dimension].extent
        stride *= extent
    return Reading(indices, spans, offset, tuple(extents), tuple(steps), frame)


Spans = tuple[Span, ...]
_Node = tuple[frozenset[Var], int]


def spans_of(axes: tuple[Axis, ...]) -> Spans:
    """The whole range of every axis."""
    return tuple(Span(axis.var, 0, axis.length) for axis in axes)


def volume(spans: Spans) -> int:
    """How many points a box has."""
    count = 1
    for span in spans:
        count *= span.extent
    return count


def halves(spans: Spans, cost: Callable[[Spans], int], limit: int) -> Iterator[Spans]:
    """Halve the leading axes until every block costs no more than the limit, or is one point."""
    if cost(spans) <= limit:
        yield spans
        return
    for number, span in enumerate(spans):
        if span.extent > 1:
            middle = span.start + (span.extent + 1) // 2
            for half in (Span(span.var, span.start, middle), Span(span.var, middle, span.stop)):
                yield from halves((*spans[:number], half, *spans[number + 1 :]), cost, limit)
            return
    yield spans


def working_bytes(value: Value) -> Callable[[Spans], int]:
    """How much evaluating a value on a box holds in memory, as a function of the box.

    Generous: counted as if the array of every node lived until the end.
    """
    nodes: dict[int, _Node] = {}
    _collect(value, nodes)
    summed: dict[frozenset[Var], int] = {}
    for variables, size_bytes in nodes.values():
        summed[variables] = summed.get(variables, 0) + size_bytes

    def cost(spans: Spans) -> int:
        extents = {span.var: span.extent for span in spans}
        total = 0
        for variables, size_bytes in summed.items():
            points = size_bytes
            for var in variables:
                points *= extents.get(var, 1)
            total += points
        return total

    return cost


def _collect(value: Value, nodes: dict[int, _Node]) -> frozenset[Var]:
    if id(value) not in nodes:
        parts = [_collect(child, nodes) for child in children(value)]
        indices = indices_of(value)
        variables = frozenset[Var]().union(*parts, free_vars(*indices))
        nodes[id(value)] = (
            variables,
            16
            + 16
            * sum(
                not (
                    not isinstance(index, Element)
                    and all(isinstance(a, Var) for a in atoms_of(index))
                )
                for index in indices
            ),
        )
    return nodes[id(value)][0]
