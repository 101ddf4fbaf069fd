"""Statements on a graphics processor: blocks and threads are indices, not loops.

A loop over blocks or threads becomes a constant: the number of this block or thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright import expr, loop
from tensorwright.base import UnsupportedError
from tensorwright.codegen.analysis import MOST_ITERATIONS, Facts, Linear, element_count
from tensorwright.codegen.c_family.dialect import Dialect, GridWords, Names, Val
from tensorwright.codegen.c_family.helpers import Helpers, VariesByLane
from tensorwright.codegen.c_family.statements import Statements
from tensorwright.codegen.c_family.values import Piece
from tensorwright.schedule import ForKind

_SHARED_ALIGN = 16
_PRIVATE_BYTES = 1024  # of a local buffer whose loops are unrolled, so that it is in registers
_MOST_UNROLLED = 512  # iterations that unrolling writes for that
_COPY_BYTES = (4, 8, 16)  # that one instruction copies from global to shared memory
_MOST_SHORT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _ThreadUnit:
    """The vectors of one thread of a graphics processor: it moves 16 bytes at once."""

    vector_bytes: int = 16
    vector_registers: int = 64
    has_masks: bool = False
    masks_loads: bool = False
    multiplies_by_lane: bool = False
    computes_halves: bool = False


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

    groups   how many blocks should fit on a multiprocessor; 0 without a wish
    copies   helpers of copies that go on while threads compute; None if stores do the same
    """

    def __init__(
        self,
        helpers: Helpers,
        names: Names,
        facts: Facts,
        words: GridWords,
        *,
        has_copies: bool,
    ) -> None:
        super().__init__(helpers, names, facts)
        self.words = words
        self.shared = SharedMemory()
        self.is_wide = False
        self.groups = 0
        self.copies = words.copies if has_copies else None
        self._short_loops: set[str] = set()

    def sum(self, value: Linear) -> str:
        """As for all; whether some index needs more than 32 bits is noted."""
        bounds = self.range_of(value, 1)
        if bounds is not None and max(-bounds[0], bounds[1]) > _MOST_SHORT:
            self.is_wide = True
        return super().sum(value)

    def open_index(self, nest: loop.For) -> None:
        """Let the variable of a loop over blocks or threads be the number of this one."""
        if nest.extent == 1:
            self.env[nest.var.name] = 0
            return
        extent = self.evaluate(nest.extent)
        bounds = self.range_of(extent)
        name = self.counter(nest, MOST_ITERATIONS if bounds is None else bounds[1] - 1)
        self.env[nest.var.name] = Linear(0, ((name, 1),))
        number = self.words.indices[nest.kind]
        self.out.add(f"const {self.helpers.index} {name} = {number};  // 0..{self.sum(extent)}")

    def _plain(self, nest: loop.For, extent: Linear) -> None:
        is_named = nest.var.name in self._short_loops
        if not self.facts.is_open(nest) and (is_named or self.facts.kind(nest) is ForKind.UNROLLED):
            self.out.add(self.words.unroll)
        super()._plain(nest, extent)

    def _unrolled(self, nest: loop.For, extent: Linear) -> None:
        self._plain(nest, extent)

    def _of_group(self, statement: loop.GroupStatement) -> None:
        """Barriers, copies that go on while threads compute, exchanges between threads."""
        match statement:
            case loop.Barrier():
                self.out.add(self.words.barrier)
            case loop.LaneFold(buffer, indices, fn, lanes):
                self._lane_fold(buffer, indices, fn, lanes)
            case loop.StartCopy(store):
                if not self._started(store):
                    super().statement(store)
            case loop.CommitCopies():
                if self.copies is not None:
                    self.out.add(f"{self.helpers.named('commit_copies', self.copies)}();")
            case loop.WaitCopies(batches):
                if self.copies is not None:
                    name = self.helpers.named("wait_copies", self.copies)
                    self.out.add(f"{name}<{batches}>();")
            case loop.LaunchBounds(groups):
                self.groups = groups

    def _started(self, store: loop.Store) -> bool:
        """Write the beginning of a copy; False if it must be written as a store."""
        value, storage = store.value, self.storage(store.buffer)
        if (
            self.copies is None
            or not isinstance(value, expr.Load)
            or not isinstance(storage, Piece)
        ):
            return False
        source = self.storage(value.source)
        if not isinstance(source, Piece) or source.dtype is not storage.dtype:
            return False
        try:
            accesses = (store.buffer, store.indices), (value.source, value.indices)
            offsets = [self.element_offset(buffer, indices) for buffer, indices in accesses]
            steps = {offset.step for offset in offsets}
            size_bytes = self.lanes * storage.dtype.size_bytes
            is_vector = self.lanes == 1 or steps == {1}
            if not is_vector or size_bytes not in _COPY_BYTES:
                return False
            to, start = (
                self.address_of(piece, offset)
                for piece, offset in zip((storage, source), offsets, strict=True)
            )
        except VariesByLane:
            return False
        if to is None or start is None:
            return False
        name = self.helpers.named("start_copy", self.copies or {})
        self.out.add(f"{name}<{size_bytes}>({to}, {start});")
        return True

    def _lane_fold(
        self, buffer: loop.Buffer, indices: tuple[expr.Index, ...], fn: expr.Fn, lanes: int
    ) -> None:
        """Fold an element over adjacent threads, in steps that halve their distance."""
        exchange = self.words.exchange
        if exchange is None:
            raise _refusal(
                f"lane fold of {buffer.name}",
                f"{self.dialect.name} has no exchange between the threads of a warp",
                "fold through shared memory",
            )
        storage, offset = self.storage(buffer), self.element_offset(buffer, indices)
        element = expr.Load(buffer, indices)
        distance = lanes // 2
        while distance:
            own = self.bind(self.value(element))
            name = self.helpers.named(exchange[0], dict([exchange]))
            other = Val(f"{name}({own.text}, {distance}, {lanes})", own.dtype)
            folded = self.operations.apply(fn, (own, self.bind(other)))
            self.assign(storage, offset, folded)
            distance //= 2

    def _prefetch(self, prefetch: loop.Prefetch) -> None:
        """Nothing: other threads run while one waits for memory."""

    def _allocate(self, allocate: loop.Allocate) -> None:
        """An array of the thread."""
        buffer = allocate.buffer
        count = _fixed_count(buffer)
        self.storages[buffer.name] = self._private(buffer, count * self.lanes)
        self._short_loops |= _loops_to_unroll(allocate, self.facts)
        self.statement(allocate.body)

    def _private(self, buffer: loop.Buffer, count: int) -> Piece:
        name, kind = self.names.fresh(buffer.name), self.dialect.element(buffer.dtype)
        if count == 1:
            self.out.add(f"{kind} {name};")
            return Piece(name, buffer.dtype, is_single=True)
        shape = f"  // ({', '.join(map(str, buffer.shape))})" if len(buffer.shape) > 1 else ""
        self.out.add(f"{kind} {name}[{max(1, count)}] {self.words.align};{shape}")
        swizzle = buffer.layout.swizzle(buffer.dtype.size_bytes)
        return Piece(name, buffer.dtype, private=self.lanes, swizzle=swizzle)

    def share(self, buffer: loop.Buffer) -> None:
        """Give the block an array."""
        count = _fixed_count(buffer)
        name, kind = self.names.fresh(buffer.name), self.dialect.element(buffer.dtype)
        shape = ", ".join(map(str, buffer.shape))
        size_bytes = max(1, count) * buffer.dtype.size_bytes
        size_bytes = -(-size_bytes // _SHARED_ALIGN) * _SHARED_ALIGN
        self.shared.arrays.append((kind, name, max(1, count), shape, size_bytes))
        self.shared.size_bytes += size_bytes
        swizzle = buffer.layout.swizzle(buffer.dtype.size_bytes)
        space = self.words.shared_space
        self.storages[buffer.name] = Piece(name, buffer.dtype, space=space, swizzle=swizzle)


def _loops_to_unroll(allocate: loop.Allocate, facts: Facts) -> set[str]:
    """The variables of short loops that index a small buffer: unrolled, it is in registers."""
    buffer, names = allocate.buffer, set[str]()
    if buffer.dtype.size_bytes * element_count(buffer) > _PRIVATE_BYTES:
        return names
    for part in loop.walk(allocate.body):
        if isinstance(part, loop.Store):
            indices = [*part.indices] if part.buffer == buffer else []
            for load in expr.loads_of(part.value):
                if load.source == buffer:
                    indices += load.indices
            names.update(var.name for var in expr.free_vars(*indices))
    return {name for name in names if _is_short(allocate.body, name, facts)}


def _is_short(body: loop.Stmt, name: str, facts: Facts) -> bool:
    loops = [
        part for part in loop.walk(body) if isinstance(part, loop.For) and part.var.name == name
    ]
    return all(not facts.is_open(each) and facts.extent(each) <= _MOST_UNROLLED for each in loops)


def _fixed_count(buffer: loop.Buffer) -> int:
    """The number of elements that a buffer takes.  Raises: UnsupportedError if that is open."""
    count = element_count(buffer)
    if isinstance(count, int):
        return count
    raise _refusal(
        f"buffer {buffer}",
        "its size is not a number when the kernel is compiled",
        "compute it at the root, or tile it by numbers",
    )


def refuse_processors(body: loop.Stmt) -> None:
    """Refuse loops that only processors have.  Raises: UnsupportedError."""
    for part in loop.walk(body):
        if isinstance(part, loop.For) and part.kind is ForKind.PARALLEL:
            raise _refusal(
                f"loop {part.var}",
                "@parallel is for processors",
                "schedule the program for this target: bind its loops to blocks and threads",
            )


def check_extents(name: str, launch: loop.LaunchNest) -> None:
    """Refuse open numbers of threads, and numbers of blocks that depend on loops.

    Raises:  UnsupportedError.
    """
    if any(not isinstance(nest.extent, int) for nest in launch.threads):
        raise _refusal(
            f"kernel {name}", "the number of its threads is open", "bind loops of numbers"
        )
    for nest in launch.blocks:
        if expr.free_vars(nest.extent):
            raise _refusal(
                f"loop {nest.var} in 0..{nest.extent}",
                "the number of its blocks depends on a loop",
                "bind a loop whose extent is a number or a size",
            )


def _refusal(where: str, reason: str, remedy: str) -> UnsupportedError:
    return UnsupportedError(
        stage="codegen", where=where, reason=reason, remedy=remedy, operator=where
    )
