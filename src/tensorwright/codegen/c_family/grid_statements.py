"""What statements are on a graphics processor: blocks and threads are indices, not loops.

A loop over blocks or threads becomes a constant: the number of this block or thread. What a block
does outside of loops over threads, its first thread does. A loop over fewer threads than the block
has is under a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tensorwright.base import GpuTarget, UnsupportedError
from tensorwright.codegen.analysis import MOST_ITERATIONS, Facts, Linear, element_count
from tensorwright.codegen.c_family.dialect import Dialect, GridWords
from tensorwright.codegen.c_family.helpers import Helpers
from tensorwright.codegen.c_family.indices import VariesByLane
from tensorwright.codegen.c_family.statements import Statements
from tensorwright.codegen.c_family.text import Names, Val
from tensorwright.codegen.c_family.values import Piece
from tensorwright.expr import Fn, Index, Load, free_vars, loads_of
from tensorwright.loop import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    CommitCopies,
    For,
    GroupStatement,
    LaneFold,
    LaunchBounds,
    Prefetch,
    StartCopy,
    Stmt,
    Store,
    WaitCopies,
    children_of,
    walk,
)
from tensorwright.schedule import BLOCKS, THREADS, ForKind, Scope

_SHARED_ALIGN = 16
_PRIVATE_BYTES = 1024  # of a local buffer whose loops are unrolled, so that it is in registers
_MOST_UNROLLED = 512  # iterations that unrolling writes for that
_COPY_BYTES = (4, 8, 16)  # that one instruction copies from global to shared memory
_MOST_SHORT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _ThreadUnit:
    """What one thread of a graphics processor has for vectors: 16 bytes are moved at once."""

    vector_bytes: int = 16
    vector_registers: int = 64
    has_masks: bool = False
    masks_loads: bool = False


def grid_facts(dialect: Dialect) -> Facts:
    """The facts about programs whose threads have short vectors."""
    most = dialect.vectors.most_lanes
    return Facts(_ThreadUnit(), masked_rests=False, most_lanes=most)


@dataclass(slots=True)
class SharedMemory:
    """What the functions of one launch declare for a block; mutable.

    arrays       (type, name, count, shape, bytes) of each, one after the other
    size_bytes   of all of them
    """

    arrays: list[tuple[str, str, int, str, int]] = field(default_factory=list)
    size_bytes: int = 0


class GridStatements(Statements):
    """Write the statements that one launch runs.

    dims     the threads of a block, by their kind; what has one thread is not in it
    groups   how many blocks should fit on a multiprocessor; 0 where nobody asks
    copies   helpers of copies that go on while threads compute; None where stores do the same
    """

    def __init__(
        self,
        helpers: Helpers,
        names: Names,
        facts: Facts,
        words: GridWords,
        extents: Mapping[ForKind, Index],
        *,
        has_copies: bool,
    ) -> None:
        super().__init__(helpers, names, facts)
        self.words = words
        self.extents = extents
        self.dims = {k: e for k, e in extents.items() if k in THREADS and e != 1}
        self.shared = SharedMemory()
        self.is_wide = False
        self.groups = 0
        self.copies = words.copies if has_copies else None
        self._missing: frozenset[ForKind] | None = None  # loops over threads that are not around
        self._unrolled: set[str] = set()

    def sum(self, value: Linear) -> str:
        """As for all; whether some index needs more than 32 bits is noted."""
        bounds = self.range_of(value, 1)
        if bounds is not None and max(-bounds[0], bounds[1]) > _MOST_SHORT:
            self.is_wide = True
        return super().sum(value)

    def statement(self, statement: Stmt) -> None:
        """As for all; what no loop over threads is around runs on one thread."""
        if self._missing is None and self.lanes == 1:
            self._at_block(statement)
        else:
            super().statement(statement)

    def _at_block(self, statement: Stmt) -> None:
        """Write what a block does, and between two of its statements, a barrier."""
        match statement:
            case Block(statements):
                for number, part in enumerate(statements):
                    if number:
                        self.barrier()
                    self._at_block(part)
            case For(kind=kind) if kind in THREADS:
                with self._threads(frozenset(self.dims)):
                    self._in_threads(statement)
            case Store():
                with self._threads(frozenset(self.dims)):
                    self._in_threads(statement)
            case _:
                super().statement(statement)

    @contextmanager
    def _threads(self, missing: frozenset[ForKind] | None) -> Iterator[None]:
        outer, self._missing = self._missing, missing
        yield
        self._missing = outer

    def _in_threads(self, statement: Stmt) -> None:
        """Write a statement once, on the threads whose loops are around it or in it."""
        missing = self._missing or frozenset()
        idle = missing - {part.kind for part in walk(statement) if isinstance(part, For)}
        if not idle:
            super().statement(statement)
            return
        if any(isinstance(part, Barrier) for part in walk(statement)):
            raise _refusal(
                "barrier", "not all threads of the block reach it", "bind loops of equal extents"
            )
        first = " && ".join(f"{self.words.indices[kind]} == 0" for kind in sorted_kinds(idle))
        with self.out.block(f"if ({first})"), self._threads(missing - idle):
            super().statement(statement)

    def loop(self, loop: For) -> None:
        """An index of the grid, a loop, or vectors."""
        extent, kind = self.evaluate(loop.extent), self.facts.kind(loop)
        with self.variable_of(loop):
            if kind in self.words.indices:
                self._index(loop, extent)
            elif self.facts.is_once(loop):
                self.written_out(loop)
            elif not extent.terms and extent.const <= 0:
                pass
            elif kind is ForKind.VECTOR and self.vector is None:
                self.vectors(loop)
            else:
                if self._is_unrolled(loop, kind):
                    self.out.add(self.words.unroll)
                self.serial(loop, "0", self.sum(extent), extent)

    def _is_unrolled(self, loop: For, kind: ForKind) -> bool:
        if self.facts.is_open(loop):
            return False
        return kind is ForKind.UNROLLED or loop.var.name in self._unrolled

    def _index(self, loop: For, extent: Linear) -> None:
        """Let a loop's variable be the number of this block or thread."""
        kind = loop.kind
        is_all = self.extents[kind] == loop.extent
        missing = self._missing
        inside = missing if missing is None else missing - {kind}
        if self.facts.is_once(loop) and is_all:
            with self._threads(inside):
                self.env[loop.var.name] = 0
                self.inside_index(loop.body)
            return
        bounds = self.range_of(extent)
        name = self.counter(loop, MOST_ITERATIONS if bounds is None else bounds[1])
        self.env[loop.var.name] = Linear(0, ((name, 1),))
        stop = self.sum(extent)
        number = self.words.indices[kind]
        self.out.add(f"const {self.helpers.index} {name} = {number};  // 0..{stop}")
        if is_all:
            with self._threads(inside):
                self.inside_index(loop.body)
            return
        if any(isinstance(part, Barrier) for part in walk(loop.body)):
            raise _refusal(
                f"loop {loop.var}",
                f"it has a barrier, and only {stop} of the block's threads reach it",
                "let all loops over the same index have one extent",
            )
        with self.out.block(f"if ({name} < {stop})"), self._threads(inside):
            self.inside_index(loop.body)

    def inside_index(self, body: Stmt) -> None:
        """Write the body of a loop over blocks or threads."""
        if self._missing:
            for part in body.statements if isinstance(body, Block) else (body,):
                self._in_threads(part)
        else:
            self.statement(body)

    def of_group(self, statement: GroupStatement) -> None:
        """Barriers, copies that go on while threads compute, exchanges between threads."""
        match statement:
            case Barrier():
                self.barrier()
            case LaneFold(buffer, indices, fn, lanes):
                self._lane_fold(buffer, indices, fn, lanes)
            case StartCopy(store):
                if not self._started(store):
                    super().statement(store)
            case CommitCopies():
                if self.copies is not None:
                    self.out.add(f"{self.helpers.named('commit_copies', self.copies)}();")
            case WaitCopies(batches):
                if self.copies is not None:
                    name = self.helpers.named("wait_copies", self.copies)
                    self.out.add(f"{name}<{batches}>();")
            case LaunchBounds(groups):
                self.groups = groups

    def barrier(self) -> None:
        """All threads of the block wait for each other."""
        if self.dims:
            self.out.add(self.words.barrier)

    def _started(self, store: Store) -> bool:
        """Write the beginning of a copy; False where it is none, and is written as a store."""
        value, storage = store.value, self.storage(store.buffer)
        if self.copies is None or not isinstance(value, Load) or not isinstance(storage, Piece):
            return False
        source = self.storage(value.source)
        if not isinstance(source, Piece) or source.dtype is not storage.dtype:
            return False
        try:
            accesses = (store.buffer, store.indices), (value.source, value.indices)
            places = [self.place(buffer, indices) for buffer, indices in accesses]
            steps = {place.step for place in places}
            size_bytes = self.lanes * storage.dtype.size_bytes
            is_vector = self.lanes == 1 or steps == {1}
            if not is_vector or size_bytes not in _COPY_BYTES:
                return False
            to, start = (
                self.address_of(piece, place)
                for piece, place in zip((storage, source), places, strict=True)
            )
        except VariesByLane:
            return False
        if to is None or start is None:
            return False
        name = self.helpers.named("start_copy", self.copies or {})
        self.out.add(f"{name}<{size_bytes}>({to}, {start});")
        return True

    def _lane_fold(self, buffer: Buffer, indices: tuple[Index, ...], fn: Fn, lanes: int) -> None:
        """Fold an element over threads beside each other, in steps that halve their distance."""
        exchange = self.words.exchange
        if exchange is None:
            raise _refusal(
                f"lane fold of {buffer.name}",
                f"{self.dialect.name} has no exchange between the threads of a warp",
                "fold through shared memory",
            )
        storage, place = self.storage(buffer), self.place(buffer, indices)
        element = Load(buffer, indices)
        distance = lanes // 2
        while distance:
            own = self.bind(self.value(element))
            name = self.helpers.named(exchange[0], dict([exchange]))
            other = Val(f"{name}({own.text}, {distance}, {lanes})", own.dtype)
            folded = self.operations.apply(fn, (own, self.bind(other)))
            self.assign(storage, place, folded)
            distance //= 2

    def prefetch(self, prefetch: Prefetch) -> None:
        """Nothing: other threads run while one waits for memory."""

    def allocate(self, allocate: Allocate) -> None:
        """An array of the thread, or of the block."""
        buffer = allocate.buffer
        outer = self.storages.get(buffer.name)
        count = element_count(buffer)
        if not isinstance(count, int):
            raise _refusal(
                f"buffer {buffer}",
                "its size is not known when the kernel is compiled",
                "compute it at the root, or tile it by numbers",
            )
        if buffer.scope is Scope.LOCAL and (self._missing is not None or not self.dims):
            self.storages[buffer.name] = self._private(buffer, count * self.lanes)
            self._unrolled |= _loops_to_unroll(allocate, self.facts)
        else:
            self.storages[buffer.name] = self._shared_array(buffer, count)
        self.statement(allocate.body)
        if outer is None:
            del self.storages[buffer.name]
        else:
            self.storages[buffer.name] = outer

    def _private(self, buffer: Buffer, count: int) -> Piece:
        name, kind = self.names.fresh(buffer.name), self.dialect.element(buffer.dtype)
        if count == 1:
            self.out.add(f"{kind} {name};")
            return Piece(name, buffer.dtype, is_single=True)
        shape = f"  // ({', '.join(map(str, buffer.shape))})" if len(buffer.shape) > 1 else ""
        self.out.add(f"{kind} {name}[{max(1, count)}] {self.words.align};{shape}")
        swizzle = buffer.layout.swizzle(buffer.dtype.size_bytes)
        return Piece(name, buffer.dtype, private=self.lanes, swizzle=swizzle)

    def _shared_array(self, buffer: Buffer, count: int) -> Piece:
        name, kind = self.names.fresh(buffer.name), self.dialect.element(buffer.dtype)
        shape = ", ".join(map(str, buffer.shape))
        size_bytes = max(1, count) * buffer.dtype.size_bytes
        size_bytes = -(-size_bytes // _SHARED_ALIGN) * _SHARED_ALIGN
        self.shared.arrays.append((kind, name, max(1, count), shape, size_bytes))
        self.shared.size_bytes += size_bytes
        swizzle = buffer.layout.swizzle(buffer.dtype.size_bytes)
        return Piece(name, buffer.dtype, space=self.words.shared_space, swizzle=swizzle)


def _loops_to_unroll(allocate: Allocate, facts: Facts) -> set[str]:
    """The variables of short loops that index a small buffer: unrolled, it lives in registers."""
    buffer, names = allocate.buffer, set[str]()
    if buffer.dtype.size_bytes * element_count(buffer) > _PRIVATE_BYTES:
        return names
    for part in walk(allocate.body):
        if isinstance(part, Store):
            indices = [*part.indices] if part.buffer == buffer else []
            for load in loads_of(part.value):
                if load.source == buffer:
                    indices += load.indices
            names.update(var.name for var in free_vars(*indices))
    return {name for name in names if _is_short(allocate.body, name, facts)}


def _is_short(body: Stmt, name: str, facts: Facts) -> bool:
    loops = [part for part in walk(body) if isinstance(part, For) and part.var.name == name]
    return all(not facts.is_open(each) and facts.extent(each) <= _MOST_UNROLLED for each in loops)


def sorted_kinds(kinds: Sequence[ForKind] | frozenset[ForKind]) -> list[ForKind]:
    """Indices in the order x, y, z."""
    return sorted(kinds, key=lambda kind: kind.value)


def grid_extents(body: Stmt) -> dict[ForKind, Index]:
    """How many blocks and threads a launch has, by the kinds of its loops: the most of each.

    Raises:  UnsupportedError for extents that depend on loops, and open ones that differ.
    """
    extents: dict[ForKind, Index] = {}
    for part in walk(body):
        if not (isinstance(part, For) and part.kind in BLOCKS | THREADS):
            continue
        extent, known = part.extent, extents.get(part.kind)
        if free_vars(extent):
            raise _refusal(
                f"loop {part.var} in 0..{extent}",
                "how many blocks or threads there are depends on a loop",
                "bind a loop whose extent is a number or a size",
            )
        if known is None or known == extent:
            extents[part.kind] = extent
        elif isinstance(known, int) and isinstance(extent, int):
            extents[part.kind] = max(known, extent)
        else:
            raise _refusal(
                f"loop {part.var} in 0..{extent}",
                f"another loop over the same index has {known} iterations",
                "let all loops over one index have one extent",
            )
    return extents


def launches_of(body: Stmt) -> tuple[tuple[Buffer, ...], list[Stmt]]:
    """The buffers of a call, and the statements that are launched one after the other."""
    buffers: list[Buffer] = []
    launches: list[Stmt] = []

    def visit(statement: Stmt) -> None:
        match statement:
            case Block():
                for part in children_of(statement):
                    visit(part)
            case Allocate(buffer, inner) if buffer.scope is not Scope.SHARED:
                buffers.append(buffer)
                visit(inner)
            case _:
                launches.append(statement)

    visit(body)
    return tuple(buffers), launches


def refuse_processors(body: Stmt) -> None:
    """Refuse loops that only processors have.  Raises: UnsupportedError."""
    for part in walk(body):
        if isinstance(part, For) and part.kind is ForKind.PARALLEL:
            raise _refusal(
                f"loop {part.var}",
                "@parallel is for processors",
                "schedule the program for this target: bind its loops to blocks and threads",
            )


def check_limits(name: str, extents: Mapping[ForKind, Index], target: GpuTarget) -> None:
    """Refuse blocks with more threads than the target has.  Raises: UnsupportedError."""
    threads = 1
    for kind in THREADS:
        extent = extents.get(kind, 1)
        if not isinstance(extent, int):
            raise _refusal(
                f"kernel {name}", "the number of its threads is open", "bind loops of numbers"
            )
        threads *= extent
    if threads > target.threads_per_block:
        raise _refusal(
            f"kernel {name}",
            f"a block has {threads} threads, and {target} allows {target.threads_per_block}",
            "bind shorter loops to threads",
        )


def _refusal(where: str, reason: str, remedy: str) -> UnsupportedError:
    return UnsupportedError(
        stage="codegen", where=where, reason=reason, remedy=remedy, operator=where
    )
