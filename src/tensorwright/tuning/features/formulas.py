"""The features of a loop program as formulas over its decisions: one set for each statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import mul
from typing import NamedTuple, TypeAlias

from tensorwright.base import LINE_BYTES, DType, Speeds
from tensorwright.expr import Load, free_vars
from tensorwright.loop import Buffer, LoopProgram
from tensorwright.schedule import ForKind
from tensorwright.tuning.features import columns
from tensorwright.tuning.features.access import BufferUse, LoopBox, LoopKinds, buffer_uses
from tensorwright.tuning.features.loop_dependence import Variables
from tensorwright.tuning.features.operations import (
    Operations,
    Statement,
    operations_of,
    statements_of,
)

_SCALAR_LOAD = 0.5  # in loads of 64 bytes
_WIDENED_LOAD = 4.0  # in loads of as many bytes
_TURNED_LOAD = 0.25  # of an element of a copy whose squares are transposed in registers


@dataclass(frozen=True, slots=True)
class StatementFormulas:
    """The features of one statement, before the logarithm.

    scalars    of features that are not of a buffer, by name; the others are zero
    buffers    for each buffer: its fields by name, the stored one first
    levels     what the loops inside do, for each number of loops
    """

    scalars: Mapping[str, columns.Cell]
    buffers: tuple[Mapping[str, columns.Cell], ...]
    levels: tuple[Level, ...]


class Level(NamedTuple):
    """A level of a nest: the loops inside some of its outermost ones.

    operations, touched_bytes, touched_lines   of one run of these loops
    moved_loads, moved_lines   of the whole nest, if there is no room in registers, or in a cache,
                               for what these loops touch, and room for what the loops from the next
                               on touch; 64 bytes that lie together are one load
    """

    operations: columns.Cell
    touched_bytes: columns.Cell
    touched_lines: columns.Cell
    moved_loads: columns.Cell
    moved_lines: columns.Cell


def formulas_of(
    program: LoopProgram,
    graph: columns.ColumnGraph,
    scalars: Sequence[ScalarFormula],
    speeds: Speeds = (),
) -> tuple[tuple[Nest, ...], tuple[StatementFormulas, ...]]:
    """All statements of a program, in order, and their formulas.

    speeds   as of `statements_of`
    """
    touching: dict[Buffer, list[Nest]] = {}
    nests = nests_of(program, graph, speeds)
    for nest in nests:
        for use in nest.uses:
            touching.setdefault(use.buffer, []).append(nest)
    return nests, tuple(nest.formulas(touching, scalars) for nest in nests)


def nests_of(
    program: LoopProgram, graph: columns.ColumnGraph, speeds: Speeds = ()
) -> tuple[Nest, ...]:
    """All statements of a program, in order, with their loops and what they touch."""
    shapes: dict[Buffer, tuple[columns.Cell, ...]] = {}
    nests = [Nest(statement, graph) for statement in statements_of(program, speeds)]
    for nest in nests:
        nest.find_shape(shapes)
    for nest in nests:
        nest.use_buffers(shapes)
    return tuple(nests)


class Nest:
    """One statement, its loops and what it touches; mutable while it is built."""

    uses: tuple[BufferUse, ...]
    kinds: LoopKinds
    touched: tuple[columns.Cell, ...]

    def __init__(self, statement: Statement, graph: columns.ColumnGraph) -> None:
        self.statement = statement
        self.variables = Variables(graph)
        for loop in statement.loops:
            self.variables.add(loop.var, loop.extent)
        for guard in statement.guards:
            self.variables.clip(guard)
        names = tuple(loop.var for loop in statement.loops)
        extents = tuple(self.variables.extents[name] for name in names)
        self.loops = LoopBox.of(names, extents)
        self.operations: Operations = operations_of(statement, self.variables)

    def find_shape(self, shapes: dict[Buffer, tuple[columns.Cell, ...]]) -> None:
        """Note how much of a buffer the first statement stores that stores to it.

        A buffer whose size depends on decisions may be a little larger than what is ever used.
        """
        store = self.statement.store
        is_own = store.buffer in dict(self.statement.lives)
        if not is_own or store.buffer in shapes:
            return
        inside = self.loops.variables[self.depth :]
        extents: list[columns.Cell] = []
        for extent, index in zip(store.buffer.shape, store.indices, strict=True):
            width: columns.Cell = 1
            for var in inside:
                if var in free_vars(index):
                    width = width + self.variables.dependence(index, var).span
            used = columns.smaller(self.variables.first(extent), width)
            for guard in self.statement.guards:
                limit = self.variables.limit(index, guard, inside)
                used = used if limit is None else columns.smaller(used, limit)
            extents.append(used)
        shapes[store.buffer] = tuple(extents)

    def use_buffers(self, shapes: Mapping[Buffer, tuple[columns.Cell, ...]]) -> None:
        """Compute the footprints; afterwards the formulas can be written."""
        self.shapes = shapes
        self.uses = buffer_uses(self.operations.accesses, self.shape_of, self.loops, self.variables)
        self.kinds = LoopKinds(
            tuple(loop.kind for loop in self.statement.loops),
            self.loops,
            self.uses[0].moves,
            self.depth,
            is_update=self.statement.is_update,
        )
        self.touched = self._bytes_touched()

    def _bytes_touched(self) -> tuple[columns.Cell, ...]:
        """For each number of loops n: bytes touched inside the first n loops."""
        sizes = [use.element_bytes for use in self.uses]
        by_elements: dict[tuple[columns.Cell, ...], columns.Cell] = {}
        touched: list[columns.Cell] = []
        for elements in zip(*(use.elements for use in self.uses), strict=True):
            if elements not in by_elements:
                by_elements[elements] = columns.total_of(list(map(mul, elements, sizes)))
            touched.append(by_elements[elements])
        return tuple(touched)

    @property
    def counts(self) -> Mapping[str, columns.Cell]:
        """The operations of one execution by class, without those that compute addresses."""
        return self.operations.counts

    def iterations(self, kinds: Set[ForKind], outermost: int | None = None) -> columns.Cell:
        """Those of the loops of some kinds, among some of the outermost loops or all."""
        pairs = zip(self.kinds.kinds[:outermost], self.loops.extents[:outermost], strict=True)
        return columns.product_of([extent for kind, extent in pairs if kind in kinds])

    @property
    def depth(self) -> int:
        """The number of loops outside of the life of the stored buffer."""
        return self.statement.outside(self.statement.store.buffer)

    def shape_of(self, buffer: Buffer) -> tuple[columns.Cell, ...]:
        """The extents of a buffer."""
        if buffer in self.shapes:
            return self.shapes[buffer]
        return tuple(self.variables.first(extent) for extent in buffer.shape)

    def formulas(self, touching: Touching, scalars: Sequence[ScalarFormula]) -> StatementFormulas:
        """All features of the statement."""
        features: dict[str, columns.Cell] = {}
        for each in scalars:
            features |= each(self, touching)
        buffers = tuple(self._buffer(use, touching[use.buffer]) for use in self.uses)
        return StatementFormulas(features, buffers, self._levels(touching))

    def _levels(self, touching: Touching) -> tuple[Level, ...]:
        """The levels of the nest, all its loops first.

        Data that another statement touches, too, inside common loops, is in the caches there. It
        moves only if there is no room for what these loops touch.
        """
        operations = columns.total_of(list(self.operations.counts.values()))
        each = columns.larger(operations, 1)
        shared = [self._shared_loops(touching[use.buffer]) for use in self.uses]
        costs = [self._loads_of_an_element(use) for use in self.uses]
        levels: list[Level] = []
        outside: columns.Cell = 1
        for n, (inside, touched) in enumerate(zip(self.loops.inside, self.touched, strict=True)):
            far = [b for b, serial in enumerate(shared) if n >= serial]
            lines = [use.lines_of(n) for use in self.uses]
            loads = columns.total_of([self.uses[b].elements[n] * costs[b] for b in far])
            levels.append(
                Level(
                    operations=each * inside,
                    touched_bytes=columns.larger(touched, 1),
                    touched_lines=columns.total_of(lines),
                    moved_loads=outside * loads,
                    moved_lines=outside * columns.total_of([lines[b] for b in far]),
                )
            )
            if n < len(self.loops):
                outside = outside * self.loops.extents[n]
        return tuple(levels)

    def _loads_of_an_element(self, use: BufferUse) -> columns.Cell:
        """The cost of an element of a buffer, in loads of 64 adjacent bytes.

        A bf16 is widened when it has been read: two more operations for each vector or number.
        """
        cost = self._plain_loads(use)
        return cost * _WIDENED_LOAD if use.buffer.dtype is DType.BF16 else cost

    def _plain_loads(self, use: BufferUse) -> columns.Cell:
        """As if nothing were widened."""
        vectors = [n for n, kind in enumerate(self.kinds.kinds) if kind is ForKind.VECTOR]
        if not vectors:
            return _SCALAR_LOAD
        lanes = vectors[-1]
        share = columns.smaller(
            1, columns.divided(use.stride_of(lanes) * use.element_bytes, LINE_BYTES)
        )
        share = columns.larger(share, use.element_bytes / LINE_BYTES)
        if lanes and isinstance(self.statement.store.value, Load):
            is_turned = use.moves[lanes - 1] * columns.same(use.stride_of(lanes - 1), 1)
            share = columns.choose(is_turned, columns.smaller(share, _TURNED_LOAD), share)
        return columns.choose(use.moves[lanes], share, _SCALAR_LOAD)

    def _shared_loops(self, touching: list[Nest]) -> int:
        """The number of loops around this and another statement that touches a buffer, too."""
        others = [other.statement for other in touching if other is not self]
        return max(map(self.statement.shared_loops, others), default=0)

    def _buffer(self, use: BufferUse, touching: list[Nest]) -> dict[str, columns.Cell]:
        runs = self.loops.inside[0]
        size = use.element_bytes
        stride, again = self._innermost_move(use)
        read, written = use.reads, use.writes
        features: dict[str, columns.Cell] = {
            "read": read * (1 - written),
            "write": written * (1 - read),
            "read_write": read * written,
            "bytes": use.count * runs * size,
            "unique_bytes": use.elements[0] * size,
            "unique_lines": use.lines_of(0),
            "stride": stride,
        }
        share = columns.smaller(1, columns.divided(stride * size, LINE_BYTES))
        features["lines"] = use.count * columns.larger(1, columns.divided(runs, again) * share)
        features |= self._reuse(use, touching)
        count = features["reuse_count"]
        for name in ("bytes", "unique_bytes", "lines", "unique_lines"):
            each = columns.choose(
                columns.above(count, 0),
                columns.divided(features[name], columns.larger(count, 1)),
                features[name] * 2,
            )
            features[f"{name}_per_reuse"] = each
        return features

    def _innermost_move(self, use: BufferUse) -> tuple[columns.Cell, columns.Cell]:
        """The stride of the innermost loop that moves the accesses, and the iterations inside."""
        chosen: list[tuple[columns.Cell, columns.Cell, columns.Cell]] = []
        for n in range(len(self.loops) - 1, -1, -1):
            flag = use.moves[n]
            if isinstance(flag, int) and not flag:
                continue
            chosen.append((flag, use.stride_of(n), self.loops.inside[n + 1]))
            if isinstance(flag, int):
                break
        stride: columns.Cell = 0
        inside: columns.Cell = self.loops.inside[0]
        for flag, own, within in reversed(chosen):
            stride, inside = columns.choose(flag, own, stride), columns.choose(flag, within, inside)
        return stride, inside

    def _reuse(self, use: BufferUse, touching: list[Nest]) -> dict[str, columns.Cell]:
        """Reuse by the next iteration of the innermost loop that does not move the accesses.

        The loop is in the life of the buffer; otherwise reuse by another statement, or none.
        """
        serial = self._shared_loops(touching)
        others = len(touching) - 1
        some = int(others > 0)
        is_loop: columns.Cell = 0
        distance: columns.Cell = some * self.loops.inside[serial]
        nbytes: columns.Cell = some * self.touched[serial]
        count: columns.Cell = others
        for n in range(self.statement.outside(use.buffer), len(self.loops)):  # innermost last
            again = self.kinds.present[n] * (1 - use.moves[n])
            is_loop = columns.either(is_loop, again)
            distance = columns.choose(again, self.loops.inside[n + 1], distance)
            nbytes = columns.choose(again, self.touched[n + 1], nbytes)
            count = columns.choose(again, self.loops.extents[n], count)
        return {
            "reuse_loop": is_loop,
            "reuse_serial": (1 - is_loop) * some,
            "reuse_none": (1 - is_loop) * (1 - some),
            "reuse_distance_iterations": distance,
            "reuse_distance_bytes": nbytes,
            "reuse_count": count,
        }


Touching: TypeAlias = Mapping[Buffer, list[Nest]]
"""The statements that touch each buffer."""
ScalarFormula: TypeAlias = Callable[[Nest, Touching], Mapping[str, columns.Cell]]
"""Features of a statement that are one number each, by name; those left out are zero."""
