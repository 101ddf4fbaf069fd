"""What a statement does to its buffers: footprints, cache lines, strides and reuse.

How the loops of a statement run: vectors, unrolled loops, threads, and their positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tensorwright.base import LINE_BYTES
from tensorwright.expr import Index, Var, free_vars
from tensorwright.loop import Buffer
from tensorwright.schedule import ForKind
from tensorwright.tuning.features import columns
from tensorwright.tuning.features.loop_dependence import LoopDependence, Variables
from tensorwright.tuning.features.operations import POSITIONS, Access


@dataclass(frozen=True, slots=True)
class LoopBox:
    """The loops around a statement, outermost first, and products of their extents.

    inside  for each number of loops n: how many iterations the loops from the n-th inwards run;
            one longer than the loops
    """

    variables: tuple[Var, ...]
    extents: tuple[columns.Cell, ...]
    inside: tuple[columns.Cell, ...]

    @classmethod
    def of(cls, variables: tuple[Var, ...], extents: tuple[columns.Cell, ...]) -> LoopBox:
        """The box of some loops."""
        inside: list[columns.Cell] = [1]
        for extent in reversed(extents):
            inside.append(extent * inside[-1])
        return cls(variables, extents, tuple(reversed(inside)))

    def __len__(self) -> int:
        return len(self.variables)


@dataclass(frozen=True, slots=True)
class BufferUse:
    """All accesses of a statement to one buffer.

    count         accesses when the statement runs once
    spans         per dimension and loop, how far the accesses move in it
    moves         per loop: 1 if some access moves with it
    stride_of     of a loop: how many elements further in memory an iteration's access is, on
                  average
    period_of     of a loop: after how many iterations an index begins again, at most its extent
    elements      for each number of loops n: different elements touched inside the first n loops
    lines_of      of a number of loops: different cache lines touched inside these
    dimensions_moved  per loop, the number of dimensions that move with it
    """

    buffer: Buffer
    reads: columns.Cell
    writes: columns.Cell
    count: columns.Cell
    moves: tuple[columns.Cell, ...]
    stride_of: Callable[[int], columns.Cell]
    period_of: Callable[[int], columns.Cell]
    elements: tuple[columns.Cell, ...]
    lines_of: Callable[[int], columns.Cell]
    dimensions_moved: tuple[columns.Cell, ...]

    @property
    def element_bytes(self) -> int:
        """The size of an element."""
        return self.buffer.dtype.size_bytes


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One dimension of a buffer: its extent, how accesses are spread, how they move per loop."""

    extent: columns.Cell
    spread: columns.Cell
    positions: int
    dependences: tuple[LoopDependence | None, ...]


def buffer_uses(
    accesses: list[Access],
    shape_of: Callable[[Buffer], tuple[columns.Cell, ...]],
    loops: LoopBox,
    variables: Variables,
) -> tuple[BufferUse, ...]:
    """The uses of all buffers: the stored one first, then the others as they are read.

    Statements of several sketches use a buffer in the same way, so the graph remembers uses.
    """
    remembered = variables.graph.uses
    by_buffer: dict[Buffer, list[Access]] = {}
    for access in accesses:
        by_buffer.setdefault(access.buffer, []).append(access)
    uses: list[BufferUse] = []
    for buffer, own in by_buffer.items():
        shape = shape_of(buffer)
        ways = tuple((each.indices, each.is_store, each.weight) for each in own)
        key = buffer, shape, ways, loops.variables, loops.extents
        if key not in remembered:
            remembered[key] = _use(buffer, shape, own, loops, variables)
        uses.append(remembered[key])
    return tuple(uses)


def _use(
    buffer: Buffer,
    shape: tuple[columns.Cell, ...],
    accesses: list[Access],
    loops: LoopBox,
    variables: Variables,
) -> BufferUse:
    dimensions = [
        _dimension(extent, [access.indices[n] for access in accesses], loops, variables)
        for n, extent in enumerate(shape)
    ]
    footprints = [_Footprint.of(dimension, loops) for dimension in dimensions]
    weight = columns.any_flag([access.weight for access in accesses])
    indices = tuple(dict.fromkeys(index for access in accesses for index in access.indices))
    moved = [
        [_moves(dimension.dependences[n], loops.extents[n]) for dimension in dimensions]
        for n in range(len(loops))
    ]
    return BufferUse(
        buffer,
        reads=columns.any_flag([access.weight for access in accesses if not access.is_store]),
        writes=columns.any_flag([access.weight for access in accesses if access.is_store]),
        count=columns.total_of([access.weight for access in accesses]),
        moves=tuple(map(columns.any_flag, moved)),
        dimensions_moved=tuple(map(columns.total_of, moved)),
        stride_of=lambda n: _stride(dimensions, n, loops.extents[n]),
        period_of=lambda n: _period(indices, loops.variables[n], variables),
        elements=_elements(weight, footprints, len(loops) + 1),
        lines_of=_Lines(weight, buffer.dtype.size_bytes, dimensions, footprints).of,
    )


def _elements(
    weight: columns.Cell, footprints: list[_Footprint], levels: int
) -> tuple[columns.Cell, ...]:
    """Different elements touched inside the first n loops, for each n; many loops add none."""
    by_counts: dict[tuple[columns.Cell, ...], columns.Cell] = {}
    elements: list[columns.Cell] = []
    for level in range(levels):
        counts = tuple([footprint.counts[level] for footprint in footprints])
        if counts not in by_counts:
            by_counts[counts] = weight * columns.product_of(counts)
        elements.append(by_counts[counts])
    return tuple(elements)


def _dimension(
    extent: columns.Cell, indices: list[Index], loops: LoopBox, variables: Variables
) -> _Dimension:
    distinct = list(dict.fromkeys(indices))
    firsts = [variables.first(index) for index in distinct]
    low, high = firsts[0], firsts[0]
    for first in firsts[1:]:
        low, high = columns.smaller(low, first), columns.larger(high, first)
    dependences: list[LoopDependence | None] = []
    for var in loops.variables:
        moved = [variables.dependence(i, var) for i in distinct if var in free_vars(i)]
        dependence = moved[0] if moved else None
        for other in moved[1:]:
            dependence = _wider(dependence, other)
        dependences.append(dependence)
    return _Dimension(extent, high - low, len(distinct), tuple(dependences))


def _wider(one: LoopDependence | None, other: LoopDependence) -> LoopDependence:
    if one is None:
        return other
    return LoopDependence(
        columns.larger(one.span, other.span),
        columns.smaller(one.low, other.low),
        columns.larger(one.high, other.high),
        one.is_strict or other.is_strict,
    )


def _moves(dependence: LoopDependence | None, extent: columns.Cell) -> columns.Cell:
    """1 if a dimension moves with a loop."""
    if dependence is None:
        return 0
    return columns.above(extent, 1) if dependence.is_strict else columns.above(dependence.span, 0)


@dataclass(frozen=True, slots=True)
class _Footprint:
    """The part of one dimension that is touched inside the first n loops, for each n.

    boxes   from the first to the last index; counts   different indices, at most
    """

    boxes: tuple[columns.Cell, ...]
    counts: tuple[columns.Cell, ...]

    @classmethod
    def of(cls, dimension: _Dimension, loops: LoopBox) -> _Footprint:
        """Add up the dependences of the loops, innermost first; nothing exceeds the buffer."""
        width: columns.Cell = 1 + dimension.spread
        points: columns.Cell = dimension.positions
        boxes = [columns.smaller(width, dimension.extent)]
        counts = [columns.smaller(boxes[0], points)]
        for dependence, extent in zip(
            reversed(dimension.dependences), reversed(loops.extents), strict=True
        ):
            if dependence is not None:
                width = width + dependence.span
                points = points * (
                    extent
                    if dependence.is_strict
                    else columns.choose(columns.above(dependence.span, 0), extent, 1)
                )
                boxes.append(columns.smaller(width, dimension.extent))
                counts.append(columns.smaller(boxes[-1], points))
            else:
                boxes.append(boxes[-1])
                counts.append(counts[-1])
        return cls(tuple(reversed(boxes)), tuple(reversed(counts)))


def _stride(dimensions: list[_Dimension], loop: int, extent: columns.Cell) -> columns.Cell:
    """The distance in elements to what the next iteration of a loop touches, on average."""
    distance: columns.Cell = 0
    size: columns.Cell = 1
    for dimension in reversed(dimensions):
        dependence = dimension.dependences[loop]
        if dependence is not None:
            distance = distance + dependence.span * size
        size = size * dimension.extent
    return columns.divided(distance, columns.larger(extent - 1, 1))


def _period(indices: tuple[Index, ...], var: Var, variables: Variables) -> columns.Cell:
    """The iterations of a loop after which the first of some indices begins again."""
    period = variables.extents[var]
    for index in indices:
        if var in free_vars(index):
            period = columns.smaller(period, variables.period(index, var))
    return period


@dataclass(frozen=True, slots=True)
class _Lines:
    """Different cache lines that are touched, if every run of memory begins with a line.

    Runs of memory join if the dimensions inside are touched whole.
    """

    weight: columns.Cell
    element_bytes: int
    dimensions: list[_Dimension]
    footprints: list[_Footprint]
    _counted: dict[tuple[tuple[columns.Cell, columns.Cell], ...], columns.Cell] = field(
        default_factory=dict
    )

    def of(self, level: int) -> columns.Cell:
        """The lines touched inside the first `level` loops; it adds no step for many loops."""
        touched = tuple([(each.boxes[level], each.counts[level]) for each in self.footprints])
        if touched not in self._counted:
            self._counted[touched] = self.weight * self._count(touched)
        return self._counted[touched]

    def _count(self, touched: tuple[tuple[columns.Cell, columns.Cell], ...]) -> columns.Cell:
        run: columns.Cell = 1
        inner: columns.Cell = 1  # elements in the dimensions inside
        count: columns.Cell = 1
        outer: columns.Cell = 1
        is_open: columns.Cell = 1
        pairs = zip(reversed(self.dimensions), reversed(touched), strict=True)
        for dimension, (box, different) in pairs:
            run = columns.choose(is_open, box * inner, run)
            count = columns.choose(is_open, count * different, count)
            outer = columns.choose(is_open, outer, outer * different)
            is_open = is_open * columns.same(box, dimension.extent)
            inner = inner * dimension.extent
        return outer * columns.smaller(
            count, columns.rounded_up(run * self.element_bytes, LINE_BYTES)
        )


ANNOTATIONS = {
    "vector": ForKind.VECTOR,
    "unroll": ForKind.UNROLLED,
    "parallel": ForKind.PARALLEL,
}
_GPU = {
    "block_x": ForKind.BLOCK_X,
    "block_y": ForKind.BLOCK_Y,
    "block_z": ForKind.BLOCK_Z,
    "thread_x": ForKind.THREAD_X,
    "thread_y": ForKind.THREAD_Y,
    "thread_z": ForKind.THREAD_Z,
}


class LoopKinds:
    """Which loops of a statement exist, and which of them fold.

    A loop of one iteration does not.  A loop folds if it is inside the life of the stored buffer
    and does not move the element that the statement updates; every other loop is spatial.
    """

    def __init__(
        self,
        kinds: tuple[ForKind, ...],
        loops: LoopBox,
        store_moves: tuple[columns.Cell, ...],
        depth: int,
        *,
        is_update: bool,
    ) -> None:
        self.kinds = kinds
        self.extents = loops.extents
        self.present = tuple(columns.above(extent, 1) for extent in loops.extents)
        folds: list[columns.Cell] = []
        for n, present in enumerate(self.present):
            inside = is_update and n >= depth
            folds.append(present * (1 - store_moves[n]) if inside else 0)
        self.folds = tuple(folds)
        self.spatial = tuple(
            present - fold if not isinstance(fold, int) or fold else present
            for present, fold in zip(self.present, folds, strict=True)
        )

    def position(self, n: int) -> dict[str, columns.Cell]:
        """The position among the spatial or the folding loops; a single loop is the innermost."""
        features: dict[str, columns.Cell] = {}
        for name, flags in (("spatial", self.spatial), ("reduce", self.folds)):
            here = flags[n]
            is_inner = columns.same(columns.total_of(flags[n + 1 :]), 0)
            is_outer = columns.same(columns.total_of(flags[:n]), 0)
            features[f"inner_{name}"] = here * is_inner
            features[f"outer_{name}"] = here * (1 - is_inner) * is_outer
            features[f"middle_{name}"] = here * (1 - is_inner) * (1 - is_outer)
        return features


def annotation_features(loops: LoopKinds) -> dict[str, columns.Cell]:
    """Number, product, innermost extent and position of the loops that run in each way."""
    features: dict[str, columns.Cell] = {}
    for name, kind in ANNOTATIONS.items():
        marked = [n for n, each in enumerate(loops.kinds) if each is kind]
        number = columns.total_of([loops.present[n] for n in marked])
        features[f"{name}_num"] = number
        some = columns.any_flag([loops.present[n] for n in marked])
        features[f"{name}_prod"] = some * columns.product_of([loops.extents[n] for n in marked])
        length: columns.Cell = 0
        position: dict[str, columns.Cell] = dict.fromkeys(POSITIONS, 0)
        position["none"] = 1
        for n in marked:  # the innermost existing loop decides
            there = loops.present[n]
            length = columns.choose(there, loops.extents[n], length)
            own = loops.position(n)
            position = {
                where: columns.choose(there, own.get(where, 0), before)
                for where, before in position.items()
            }
        features[f"{name}_len"] = length
        features |= {f"{name}_type_{where}": flag for where, flag in position.items()}
    return features


def gpu_features(loops: LoopKinds) -> dict[str, columns.Cell]:
    """The extents of the loops bound to a GPU's blocks and threads; nothing on a CPU."""
    features: dict[str, columns.Cell] = {}
    for name, kind in _GPU.items():
        marked = [n for n, each in enumerate(loops.kinds) if each is kind]
        if marked:
            features[f"{name}_len"] = columns.product_of([loops.extents[n] for n in marked])
            features["is_gpu"] = 1
    return features
