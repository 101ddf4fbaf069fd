"""The features of a loop program as formulas over its decisions: one set for each statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul

from tensorwright.expr import free_vars
from tensorwright.loop import Buffer, LoopProgram
from tensorwright.schedule import ForKind
from tensorwright.tuning.features.access import LINE_BYTES, BufferUse, LoopBox, buffer_uses
from tensorwright.tuning.features.columns import (
    Cell,
    ColumnGraph,
    above,
    choose,
    divided,
    either,
    larger,
    product_of,
    smaller,
    total_of,
)
from tensorwright.tuning.features.loop_annotations import (
    LoopKinds,
    annotation_features,
    gpu_features,
)
from tensorwright.tuning.features.loop_dependence import Variables
from tensorwright.tuning.features.operations import Operations, operations_of
from tensorwright.tuning.features.statements import Statement, statements_of


@dataclass(frozen=True, slots=True)
class StatementFormulas:
    """The features of one statement, before the logarithm.

    scalars    of features that are not of a buffer, by name; the others are zero
    buffers    for each buffer: its fields by name, the stored one first
    curve      (operations, bytes) that the innermost loops run and touch, for each number of loops
    """

    scalars: Mapping[str, Cell]
    buffers: tuple[Mapping[str, Cell], ...]
    curve: tuple[tuple[Cell, Cell], ...]


def formulas_of(program: LoopProgram, graph: ColumnGraph) -> tuple[StatementFormulas, ...]:
    """The formulas of all statements of a program, in order."""
    touching: dict[Buffer, list[Statement]] = {}
    nests = nests_of(program, graph)
    for nest in nests:
        for use in nest.uses:
            touching.setdefault(use.buffer, []).append(nest.statement)
    return tuple(nest.formulas(touching) for nest in nests)


def nests_of(program: LoopProgram, graph: ColumnGraph) -> tuple[Nest, ...]:
    """All statements of a program, in order, with their loops and what they touch."""
    shapes: dict[Buffer, tuple[Cell, ...]] = {}
    nests = [Nest(statement, graph) for statement in statements_of(program)]
    for nest in nests:
        nest.find_shape(shapes)
    for nest in nests:
        nest.use_buffers(shapes)
    return tuple(nests)


class Nest:
    """One statement, its loops and what it touches; mutable while it is built."""

    uses: tuple[BufferUse, ...]
    kinds: LoopKinds
    touched: tuple[Cell, ...]

    def __init__(self, statement: Statement, graph: ColumnGraph) -> None:
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

    def find_shape(self, shapes: dict[Buffer, tuple[Cell, ...]]) -> None:
        """Note how much of a buffer of its own the first statement that stores to it stores.

        A buffer whose size depends on decisions may be a little larger than what is ever used.
        """
        store = self.statement.store
        is_own = store.buffer in dict(self.statement.lives)
        if not is_own or store.buffer in shapes:
            return
        inside = self.loops.variables[self.depth :]
        extents: list[Cell] = []
        for extent, index in zip(store.buffer.shape, store.indices, strict=True):
            width: Cell = 1
            for var in inside:
                if var in free_vars(index):
                    width = width + self.variables.dependence(index, var).span
            used = smaller(self.variables.first(extent), width)
            for guard in self.statement.guards:
                limit = self.variables.limit(index, guard, inside)
                used = used if limit is None else smaller(used, limit)
            extents.append(used)
        shapes[store.buffer] = tuple(extents)

    def use_buffers(self, shapes: Mapping[Buffer, tuple[Cell, ...]]) -> None:
        """Work out the footprints; afterwards the formulas can be written."""
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

    def _bytes_touched(self) -> tuple[Cell, ...]:
        """For each number of loops n: bytes touched inside the first n loops."""
        sizes = [use.element_bytes for use in self.uses]
        found: dict[tuple[Cell, ...], Cell] = {}
        touched: list[Cell] = []
        for elements in zip(*(use.elements for use in self.uses), strict=True):
            if elements not in found:
                found[elements] = total_of(list(map(mul, elements, sizes)))
            touched.append(found[elements])
        return tuple(touched)

    @property
    def counts(self) -> Mapping[str, Cell]:
        """The operations of one execution by class, without those that find places."""
        return self.operations.counts

    @property
    def depth(self) -> int:
        """So many loops are outside of the life of the stored buffer."""
        return self.statement.outside(self.statement.store.buffer)

    def shape_of(self, buffer: Buffer) -> tuple[Cell, ...]:
        """The extents of a buffer."""
        if buffer in self.shapes:
            return self.shapes[buffer]
        return tuple(self.variables.first(extent) for extent in buffer.shape)

    def formulas(self, touching: Mapping[Buffer, list[Statement]]) -> StatementFormulas:
        """All features of the statement."""
        runs = self.loops.inside[0]
        scalars = {name: count * runs for name, count in self._counts().items()}
        scalars |= self._annotations()
        scalars |= gpu_features(self.kinds)
        scalars |= self._allocation()
        scalars["outer_prod"] = runs
        scalars["num_loops"] = total_of(self.kinds.present)
        scalars["auto_unroll_max_step"] = self._straight_line()
        buffers = tuple(self._buffer(use, touching[use.buffer]) for use in self.uses)
        return StatementFormulas(scalars, buffers, self._curve())

    def _annotations(self) -> Mapping[str, Cell]:
        """How the loops run; the graph remembers it for statements in like loops."""
        remembered = self.variables.graph.uses
        key = self.kinds.kinds, self.kinds.extents, self.kinds.spatial, self.kinds.folds
        if key not in remembered:
            remembered[key] = annotation_features(self.kinds)
        found: Mapping[str, Cell] = remembered[key]
        return found

    def _counts(self) -> dict[str, Cell]:
        """Operations of one execution, with those that find the places of the accesses.

        Every loop that moves an access adds a multiple to its place; a loop that moves several
        dimensions has been fused and takes a division for each beyond the first, once for all
        iterations of the loops inside it.
        """
        counts = dict(self.operations.counts)
        steps = [flag for use in self.uses for flag in use.moves]
        digits = [
            divided(larger(moved - 1, 0), inside)
            for use in self.uses
            for moved, inside in zip(use.dimensions_moved, self.loops.inside[1:], strict=True)
            if not isinstance(moved, int) or moved > 1
        ]
        counts["int_mad"] = counts.get("int_mad", 0) + total_of(steps)
        counts["int_divmod"] = counts.get("int_divmod", 0) + total_of(digits)
        return counts

    def _allocation(self) -> dict[str, Cell]:
        buffer, depth = self.statement.store.buffer, self.depth
        size = buffer.dtype.size_bytes * product_of(self.shape_of(buffer))
        outside = product_of(self.loops.extents[:depth])
        return {
            "alloc_size": size,
            "alloc_prod": size * outside,
            "alloc_outer_prod": outside,
            "alloc_inner_prod": self.loops.inside[depth],
        }

    def _straight_line(self) -> Cell:
        """How often the statement stands in the body of the innermost loop that stays a loop."""
        length: Cell = 1
        for kind, extent, present in zip(
            self.kinds.kinds, self.loops.extents, self.kinds.present, strict=True
        ):
            if kind is ForKind.UNROLLED:
                length = length * extent
            elif kind is not ForKind.VECTOR:
                length = choose(present, 1, length)
        return length

    def _curve(self) -> tuple[tuple[Cell, Cell], ...]:
        operations = total_of(list(self.operations.counts.values()))
        each = larger(operations, 1)
        return tuple(
            (each * inside, larger(touched, 1))
            for inside, touched in zip(self.loops.inside, self.touched, strict=True)
        )

    def _buffer(self, use: BufferUse, touching: list[Statement]) -> dict[str, Cell]:
        runs = self.loops.inside[0]
        size = use.element_bytes
        stride, again = self._innermost_move(use)
        read, written = use.reads, use.writes
        found: dict[str, Cell] = {
            "read": read * (1 - written),
            "write": written * (1 - read),
            "read_write": read * written,
            "bytes": use.count * runs * size,
            "unique_bytes": use.elements[0] * size,
            "unique_lines": use.unique_lines,
            "stride": stride,
        }
        share = smaller(1, divided(stride * size, LINE_BYTES))
        found["lines"] = use.count * larger(1, divided(runs, again) * share)
        found |= self._reuse(use, touching)
        count = found["reuse_count"]
        for name in ("bytes", "unique_bytes", "lines", "unique_lines"):
            each = choose(above(count, 0), divided(found[name], larger(count, 1)), found[name] * 2)
            found[f"{name}_per_reuse"] = each
        return found

    def _innermost_move(self, use: BufferUse) -> tuple[Cell, Cell]:
        """The stride of the innermost loop that moves the accesses, and the iterations inside."""
        chosen: list[tuple[Cell, Cell, Cell]] = []
        for n in range(len(self.loops) - 1, -1, -1):
            flag = use.moves[n]
            if isinstance(flag, int) and not flag:
                continue
            chosen.append((flag, use.stride_of(n), self.loops.inside[n + 1]))
            if isinstance(flag, int):
                break
        stride: Cell = 0
        inside: Cell = self.loops.inside[0]
        for flag, own, within in reversed(chosen):
            stride, inside = choose(flag, own, stride), choose(flag, within, inside)
        return stride, inside

    def _reuse(self, use: BufferUse, touching: list[Statement]) -> dict[str, Cell]:
        """When an element is touched again: by the next iteration of the innermost loop, in the
        life of the buffer, that does not move the accesses; or by another statement; or never.
        """
        depths = [
            self.statement.shared_loops(other) for other in touching if other is not self.statement
        ]
        serial = max(depths, default=0)
        some = int(bool(depths))
        is_loop: Cell = 0
        distance: Cell = some * self.loops.inside[serial]
        nbytes: Cell = some * self.touched[serial]
        count: Cell = len(depths)
        for n in range(self.statement.outside(use.buffer), len(self.loops)):  # innermost last
            again = self.kinds.present[n] * (1 - use.moves[n])
            is_loop = either(is_loop, again)
            distance = choose(again, self.loops.inside[n + 1], distance)
            nbytes = choose(again, self.touched[n + 1], nbytes)
            count = choose(again, self.loops.extents[n], count)
        return {
            "reuse_loop": is_loop,
            "reuse_serial": (1 - is_loop) * some,
            "reuse_none": (1 - is_loop) * (1 - some),
            "reuse_distance_iterations": distance,
            "reuse_distance_bytes": nbytes,
            "reuse_count": count,
        }
