"""Statements to code: loops of every kind, branches, buffers, stores, prefetches, intrinsics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import permutations, zip_longest

from tensorwright import loop
from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis.facts import (
    BUFFER_ALIGN,
    Facts,
    MemoryKind,
    Workspace,
    element_count,
)
from tensorwright.codegen.analysis.indices import (
    Linear,
    Transposition,
    find_transposition,
    flat_index,
)
from tensorwright.codegen.analysis.tiles import (
    ends_at_guard,
    keeps_steps_apart,
    reads_by_lane,
    tile_width,
)
from tensorwright.codegen.llvm import tiles
from tensorwright.codegen.llvm.access import Piece
from tensorwright.codegen.llvm.buffers import Slots
from tensorwright.codegen.llvm.parallel import Region, capture, intrinsics_of, write_region
from tensorwright.codegen.llvm.text import Function, Val, memory_type
from tensorwright.codegen.llvm.values import Values
from tensorwright.codegen.statements import StatementWalk, scoped
from tensorwright.expr import Condition, Fn, Index, Value, free_vars, substitute
from tensorwright.machine_code import Module, shuffle_text
from tensorwright.schedule import ForKind


@dataclass(slots=True)
class Kernel:
    """What the functions of one kernel share while they are written."""

    name: str
    target: CpuTarget
    module: Module
    facts: Facts
    workspace: Workspace
    regions: list[Region]


class Statements(Values, StatementWalk[Val]):
    """Write statements into one function."""

    def __init__(self, function: Function, kernel: Kernel, *, is_parallel: bool) -> None:
        super().__init__(function, kernel.target)
        self.kernel = kernel
        self.facts = kernel.facts
        self.is_parallel = is_parallel
        self.frame_bytes = 0
        self.tiles = tiles.Tiles(function)

    def _prefetch(self, prefetch: loop.Prefetch) -> None:
        self.function.module.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        address = self.address(prefetch.buffer, prefetch.indices)
        level = 4 - prefetch.level
        self.function.effect(
            f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 {level}, i32 1)"
        )

    def _store(self, store: loop.Store) -> None:
        fold = loop.folded_operand(store) if self.lanes > 1 else None
        if fold is not None and self.is_one_element(store.buffer, store.indices):
            self._fold(store, *fold)
        else:
            self.store(store.buffer, store.indices, self.value(store.value), store.value)

    def _fold(self, store: loop.Store, fn: Fn, operand: Value) -> None:
        """Fold what all lanes have into the one element that they write."""
        parts = self.function.splat(self.value(operand), self.lanes)
        total = self.operations.fold_lanes(fn, parts, self.lane_mask())
        kept = self.lanes, self.active, self.guard
        self.lanes, self.active, self.guard = 1, 1, None
        old = self.load(store.buffer, store.indices)
        self.store(
            store.buffer, store.indices, self.operations.apply(fn, (old, total)), store.value
        )
        self.lanes, self.active, self.guard = kept

    def _where_some(
        self, nest: loop.For, extent: Linear, write: Callable[[loop.For, Linear], None]
    ) -> None:
        """Write a loop, under a condition if its number of iterations may be 0."""
        bounds = self.range_of(extent)
        if bounds is not None and bounds[1] <= 0:
            return
        if bounds is not None and bounds[0] >= 1:
            write(nest, extent)
            return
        stop = self.scalar(extent)
        some = self.function.pure(f"icmp sgt i64 {stop}, 0", stop)
        with self.function.branch(some, self.facts.written(nest.body)):
            write(nest, extent)

    def _unrolled(self, nest: loop.For, extent: Linear) -> None:
        if self.lanes == 1 and ends_at_guard(nest):
            self._partial_tile(nest, extent.const)
            return
        is_apart = keeps_steps_apart(nest, self.facts)
        if self.lanes == 1 and not is_apart and reads_by_lane(nest, self.facts):
            self.read_by_lane[nest.var.name] = extent.const
        is_tiled = self.tiles.is_configured and not self.tiles.sums
        with self._in_tiles(nest) if is_tiled else nullcontext():
            for iteration in range(extent.const):
                if is_apart and iteration:
                    self.function.separate_loads()
                self._copy(nest, iteration)
        self.read_by_lane.pop(nest.var.name, None)

    def _partial_tile(self, nest: loop.For, extent: int) -> None:
        """Put each iteration inside the guard of the one before.

        The first guard that fails ends the loop; registers keep the loads of earlier iterations.
        """
        assert isinstance(nest.body, loop.If), "the loop ends at a guard"
        written = self.facts.written(nest.body)
        with ExitStack() as guards:
            for iteration in range(extent):
                self.env[nest.var.name] = iteration
                mask = self.condition(nest.body.condition)
                if mask is False:
                    return
                if mask is not True:
                    guards.enter_context(self.function.branch(mask.name, written))
                self.statement(nest.body.then)

    def _plain(self, nest: loop.For, extent: Linear) -> None:
        copy = self._transposition_of(nest)
        if copy is not None:
            self._transpose(copy, extent.const)
        else:
            with self._in_tiles(nest):
                self._where_some(nest, extent, self._serial_to)

    def _serial_to(self, nest: loop.For, extent: Linear) -> None:
        self.serial(nest, "0", self.scalar(extent), extent)

    def _counted(
        self, nest: loop.For, first: str, stop: str, last: int
    ) -> AbstractContextManager[str]:
        return self.function.loop(first, stop, (0, last), self.facts.written(nest.body))

    def _transposition_of(self, nest: loop.For) -> Transposition | None:
        """The transposed copy that a loop is, between buffers in memory; None for other loops."""
        if self.lanes > 1 or self.guard is not None or self.facts.kind(nest) is not ForKind.SERIAL:
            return None
        copy = find_transposition(nest, self.facts, self.target)
        if copy is None:
            return None
        storages = (self.storages.get(b.name) for b in (copy.load.source, copy.store.buffer))
        return copy if all(isinstance(each, Piece) for each in storages) else None

    def _transpose(self, copy: Transposition, extent: int) -> None:
        """Copy squares: load their rows, turn them in registers, store their columns."""
        function, width = self.function, copy.width
        load, store = copy.load, copy.store
        kind = memory_type(load.dtype, width)
        align = load.dtype.size_bytes
        written = self.facts.written(copy.along)
        with function.loop("0", str(extent // width), (0, extent // width - 1), written) as index:
            self.env[copy.along.var.name] = Linear(0, ((index, width),))
            rows = []
            for lane in range(width):
                self.env[copy.across.var.name] = lane
                address = self.address(load.source, load.indices)
                rows.append(function.emit(f"load {kind}, ptr {address}, align {align}"))
            self.env[copy.across.var.name] = 0
            for number, column in enumerate(_transposed_square(function, rows, kind)):
                self.env[copy.along.var.name] = Linear(number, ((index, width),))
                address = self.address(store.buffer, store.indices)
                function.effect(f"store {kind} {column}, ptr {address}, align {align}")
            function.forget(store.buffer.name)
        del self.env[copy.across.var.name]

    def _vector(self, nest: loop.For, start: Linear, lanes: int, active: int) -> None:
        self.lanes, self.active = lanes, active
        self._copy(nest, start._replace(step=1) if lanes > 1 else start)
        self.lanes = self.active = 1

    def _if(self, condition: Condition, then: loop.Stmt) -> None:
        mask = self.condition(condition)
        if mask is False:
            return
        if mask is True:
            self.statement(then)
        elif mask.lanes == 1:
            with self.function.branch(mask.name, self.facts.written(then)):
                self.statement(then)
        else:
            kept = self.guard
            self.guard = self.guarded(mask)
            self.statement(then)
            self.guard = kept

    def _allocate(self, allocate: loop.Allocate) -> None:
        buffer = allocate.buffer
        width = tile_width(allocate, self.env, self.lanes, self.facts)
        with self.kernel.workspace.statement():
            if width is not None:
                self.storages[buffer.name] = Slots(buffer.dtype, width, self.lanes)
            else:
                self.storages[buffer.name] = self._piece(buffer)
            self.function.forget(buffer.name)
            self.statement(allocate.body)
            self.function.forget(buffer.name)

    def _piece(self, buffer: loop.Buffer) -> Piece:
        """Memory for a buffer: of the call, on the stack, or of the thread."""
        size = self.lanes * element_count(buffer)
        count_bytes = size * buffer.dtype.size_bytes
        known_size = size if isinstance(size, int) else 0
        memory, offset = self.kernel.workspace.reserve(buffer, count_bytes, self.frame_bytes)
        match memory:
            case MemoryKind.SHARED:
                pointer = self._at("%workspace", offset)
            case MemoryKind.OWN:
                pointer = self._at("%slice", offset)
            case MemoryKind.STACK:
                assert isinstance(count_bytes, int), "what is open is not on the stack"
                self.frame_bytes += count_bytes
                pointer = self.function.alloca(f"[{count_bytes} x i8]", BUFFER_ALIGN)
        return Piece(pointer, buffer.dtype, known_size, BUFFER_ALIGN, self.lanes)

    def _at(self, base: str, offset: Index) -> str:
        byte = self.scalar(self.evaluate(offset))
        return self.function.pure(f"getelementptr i8, ptr {base}, i64 {byte}", byte)

    @contextmanager
    def _in_tiles(self, nest: loop.For) -> Iterator[None]:
        """Configure tiles around a loop that multiplies matrices, and keep its sums in them."""
        matrices = frozenset() if self.lanes > 1 else tiles.all_matrices(nest, self.target)
        if len(matrices) != 1:  # one configuration is for one shape
            yield
            return
        (product,) = matrices
        parallel = (each for each in loop.walk(nest.body) if isinstance(each, loop.For))
        is_shared = any(self.facts.kind(each) is ForKind.PARALLEL for each in parallel)
        with ExitStack() as around:
            if self.is_parallel or not is_shared:  # else each thread does so
                around.enter_context(self.tiles.configured(product))
            sums = self._held_sums(nest)
            if sums and self.tiles.is_configured:
                around.enter_context(self.tiles.holding(tuple(sums.values())))
            self.tiles.forget()
            yield
            self.tiles.forget()

    def _block(self, statements: tuple[loop.Stmt, ...]) -> None:
        """Write statements; sums that a loop keeps in tiles begin there, and not in memory."""
        for part, following in zip_longest(statements, statements[1:]):
            if self._begin_at_zero(part, following):
                self.tiles.begin_zero = True
            else:
                self.statement(part)

    def _begin_at_zero(self, part: loop.Stmt, following: loop.Stmt | None) -> bool:
        """Whether a statement clears the sums that a loop behind it keeps in tiles, and no more."""
        buffer = tiles.cleared_buffer(part)
        if buffer is None or not isinstance(following, loop.For) or not self.tiles.is_configured:
            return False
        is_kept = self.facts.kind(following) in (ForKind.SERIAL, ForKind.UNROLLED)
        products = tiles.all_matrices(following, self.target)
        if not is_kept or self.facts.is_once(following) or len(products) != 1:
            return False
        (product,) = products
        sums = self._held_sums(following)
        elements = len(sums) * product.rows * product.columns
        is_own = all(name == buffer.name for name, _ in sums)
        return is_own and elements == element_count(buffer)

    def _held_sums(self, nest: loop.For) -> dict[tuple[str, Index], tiles.Matrix]:
        """The sums that tiles hold for all of a loop; none if there are too many, or others."""
        sums = None if self.tiles.sums else self._sums_of(nest, frozenset())
        return sums if sums and len(sums) <= tiles.MOST_SUMS else {}

    def _sums_of(
        self, statement: loop.Stmt, moving: frozenset[str]
    ) -> dict[tuple[str, Index], tiles.Matrix] | None:
        """The sums to which a loop over products of matrices adds, each time the same ones; None
        if they move with one of the loops, or if it does something else, too.
        """
        parts: list[dict[tuple[str, Index], tiles.Matrix] | None] = []
        match statement:
            case loop.Call() if product := tiles.matrices_of(statement, self.target):
                sums = self._matrix(statement.windows[0], tiles.row_step(product))
                is_same = moving.isdisjoint(var.name for var in free_vars(sums.position[1]))
                parts.append({sums.position: sums} if is_same else None)
            case loop.Block(statements):
                parts += [self._sums_of(each, moving) for each in statements]
            case loop.For(var, _, _, body) if self._is_written_out(statement):
                for iteration in range(self.facts.extent(statement)):
                    with scoped(self.env, var.name):
                        self.env[var.name] = iteration
                        parts.append(self._sums_of(body, moving))
            case loop.For(var, _, _, body):
                parts.append(self._sums_of(body, moving | {var.name}))
            case _:
                parts.append(None)
        merged: dict[tuple[str, Index], tiles.Matrix] = {}
        for part in parts:
            if part is None:
                return None
            merged |= part
        return merged

    def _is_written_out(self, nest: loop.For) -> bool:
        return self.facts.is_once(nest) or self.facts.kind(nest) is ForKind.UNROLLED

    def _position_of(self, window: loop.Window) -> tuple[str, Index]:
        """Where a window begins, with numbers for the variables of loops that are written out."""
        index = flat_index(window.buffer, window.indices)
        given = {var: self.env.get(var.name) for var in free_vars(index)}
        numbers = {var: value for var, value in given.items() if isinstance(value, int)}
        return window.buffer.name, substitute(index, numbers)

    def _matrix(self, first: loop.Window, step: str) -> tiles.Matrix:
        return tiles.Matrix(
            self._position_of(first), self.address(first.buffer, first.indices), step
        )

    def _row_step(self, first: loop.Window, second: loop.Window) -> str:
        """The bytes from the first row of data to the second one."""
        step = flat_index(second.buffer, second.indices) - flat_index(first.buffer, first.indices)
        return self.scalar(self.evaluate(step * first.buffer.dtype.size_bytes))

    def _call(self, call: loop.Call) -> None:
        product = None if self.lanes > 1 else tiles.matrices_of(call, self.target)
        if product is not None:
            sums, row, next_row, *_, weights = call.windows
            own = tiles.row_step(product)
            steps = own, self._row_step(row, next_row), own
            operands = (
                self._matrix(*each) for each in zip((sums, row, weights), steps, strict=True)
            )
            with self.tiles.configured(product):
                self.tiles.multiply(tiles.instruction_of(product), *operands)
            for name in self.facts.written(call.meaning):
                self.function.forget(name)
            return
        intrinsic = intrinsics_of(self.target).get(call.intrinsic)
        if intrinsic is None or self.lanes > 1:
            self.statement(call.meaning)
            return
        addresses = tuple(self.address(w.buffer, w.indices) for w in call.windows)
        intrinsic.emit(self.function, addresses, _joined(call.windows, intrinsic.window_lanes))
        for name in self.facts.written(call.meaning):
            self.function.forget(name)

    def _parallel(self, nest: loop.For, extent: Linear) -> None:
        self._where_some(nest, extent, self._on_threads)

    def _on_threads(self, nest: loop.For, extent: Linear) -> None:
        """Write the body as a function of its own, and the call that shares out the iterations."""
        kernel = self.kernel
        captured = capture(nest.body, self.env, self.storages)
        name = f"{kernel.name}.par{len(kernel.regions)}"
        region = Region(name, captured)
        kernel.regions.append(region)
        inner = Statements(self.function.sibling(region.body_head()), kernel, is_parallel=True)
        inner.env = dict(self.env)
        inner.storages = {n: s for n, s in self.storages.items() if isinstance(s, Piece)}
        with inner._in_tiles(nest):
            inner.serial(nest, "%first", "%stop", extent)
        inner.function.finish()
        write_region(self.function, region, self.scalar(extent))
        for buffer in self.facts.written(nest.body):
            self.function.forget(buffer)


def _joined(windows: tuple[loop.Window, ...], lanes: tuple[int, ...]) -> set[tuple[int, int]]:
    """The pairs of windows of which the second begins where the first ends."""
    starts = [flat_index(window.buffer, window.indices) for window in windows]

    def is_equal(gap: Index, width: int) -> bool:
        return isinstance(gap, int) and gap == width

    return {
        (n, m)
        for (n, one), (m, other) in permutations(enumerate(windows), 2)
        if one.buffer == other.buffer and is_equal(starts[m] - starts[n], lanes[n])
    }


def _transposed_square(function: Function, rows: list[str], kind: str) -> list[str]:
    """The columns of a square: vector n has lane n of every row, in their order.

    Blocks of the square change places with those across from them, blocks of half its side first.
    """
    rows = list(rows)
    side = len(rows)
    step = side // 2
    while step:
        lanes = range(side)
        low = [lane if not lane & step else lane - step + side for lane in lanes]
        high = [lane + step if not lane & step else lane + side for lane in lanes]
        for n in (n for n in lanes if not n & step):
            a, b = rows[n], rows[n + step]
            rows[n], rows[n + step] = (
                function.pure(shuffle_text(kind, a, b, part), a, b) for part in (low, high)
            )
        step //= 2
    return rows
