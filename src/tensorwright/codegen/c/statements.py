"""Statements to C: loops of every kind, branches, buffers, stores, prefetches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis import (
    BUFFER_ALIGN,
    MOST_ITERATIONS,
    Facts,
    Linear,
    MemoryKind,
    Workspace,
    element_count,
    tile_width,
)
from tensorwright.codegen.c.helpers import Helpers
from tensorwright.codegen.c.indices import VariesByLane
from tensorwright.codegen.c.operations import lane_of
from tensorwright.codegen.c.text import Lines, Names, Val, element_type, held_type
from tensorwright.codegen.c.values import Piece, Tile, Values, VectorLoop
from tensorwright.expr import Condition, Fn, Index, Load, Value, maximum
from tensorwright.loop import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    GroupStatement,
    If,
    Prefetch,
    Stmt,
    Store,
    buffers_used,
    folded_operand,
)
from tensorwright.schedule import ForKind


@dataclass(slots=True)
class Kernel:
    """What the functions of one kernel share while they are written.

    slice_bytes   a C expression: how much memory each thread has to itself
    """

    name: str
    target: CpuTarget
    facts: Facts
    slice_bytes: str
    helpers: Helpers = field(default_factory=Helpers)
    workspace: Workspace = field(default_factory=Workspace)
    functions: list[str] = field(default_factory=list)


class Statements(Values):
    """Write statements into one function."""

    def __init__(self, kernel: Kernel, names: Names, *, is_parallel: bool) -> None:
        super().__init__(kernel.helpers, names)
        self.kernel = kernel
        self.facts = kernel.facts
        self.is_parallel = is_parallel
        self.frame_bytes = 0

    def statement(self, statement: Stmt) -> None:
        """Write one statement."""
        match statement:
            case Store():
                self._store(statement)
            case Block(statements):
                for part in statements:
                    self.statement(part)
            case For():
                self._loop(statement)
            case If(condition, then):
                self._if(condition, then)
            case Allocate():
                self._allocate(statement)
            case GroupStatement():
                raise AssertionError("programs with groups of threads are refused before")
            case Prefetch(buffer, indices, level):
                self._prefetch(buffer, indices, level)
            case Call(_, _, meaning):
                self.statement(meaning)

    def _store(self, store: Store) -> None:
        place = self._place_or_none(store)
        if place is None:
            self._each_lane(store)
            return
        storage, value = self.storage(store.buffer), store.value
        if self.lanes > 1 and not place.step:
            fold = folded_operand(store)
            if fold is not None:
                self._fold(store, *fold)
                return
        result = self.value(value)
        if self.lanes == 1 or not place.step:
            result = lane_of(self.bind(result), 0) if result.lanes > 1 else result
            self._assign(storage, place, result)
        elif isinstance(storage, Tile):
            vector = self.operations.spread(result, self.lanes)
            self.out.add(f"{self.tile_variable(storage, place.const)} = {vector.text};")
        elif place.step == 1 and held_type(storage.dtype) == element_type(storage.dtype):
            vector = self.operations.spread(result, self.lanes)
            self.out.add(f"{self.vector_at(storage, place)} = {vector.text};")
        else:
            result = self.bind(result)
            for lane in range(self.lanes):
                at = place._replace(const=place.const + lane * place.step, step=0)
                self._assign(storage, at, lane_of(result, lane))

    def _place_or_none(self, store: Store) -> Linear | None:
        """Where a store goes; None where that is not linear in the lanes."""
        try:
            return self.place(store.buffer, store.indices)
        except VariesByLane:
            if self.lanes == 1:
                raise
            return None

    def _assign(self, storage: Piece | Tile, place: Linear, value: Val) -> None:
        text = value.text
        if isinstance(storage, Piece):
            text = self.operations.store(text, storage.dtype)
        self.out.add(f"{self.element_at(storage, place)} = {text};")

    def _each_lane(self, statement: Stmt) -> None:
        """Write a statement once for each lane of the vector loop around."""
        for lane in range(self.lanes):
            with self.lane(lane):
                self.statement(statement)

    def _fold(self, store: Store, fn: Fn, operand: Value) -> None:
        """Fold what all lanes have into the one element that they write."""
        total = self.operations.fold(fn, self.operations.spread(self.value(operand), self.lanes))
        place = self.place(store.buffer, store.indices)
        old = self.value(Load(store.buffer, store.indices))
        self._assign(self.storage(store.buffer), place, self.operations.apply(fn, (old, total)))

    def _loop(self, loop: For) -> None:
        extent, kind = self.evaluate(loop.extent), self.facts.kind(loop)
        outer = self.env.get(loop.var.name)
        if self.facts.is_once(loop) or kind is ForKind.UNROLLED:
            for iteration in range(self.facts.extent(loop)):
                self.env[loop.var.name] = iteration
                self.statement(loop.body)
        elif not extent.terms and extent.const <= 0:
            pass
        elif kind is ForKind.VECTOR and self.vector is None:
            self._vectors(loop)
        elif kind is ForKind.PARALLEL and not self.is_parallel and self.lanes == 1:
            self._parallel(loop, extent)
        else:
            self._serial(loop, "0", self.sum(extent), extent)
        if outer is None:
            self.env.pop(loop.var.name, None)
        else:
            self.env[loop.var.name] = outer

    def _serial(self, loop: For, first: str, stop: str, extent: Linear) -> None:
        bounds = self.range_of(extent)
        name = self._counter(loop, MOST_ITERATIONS if bounds is None else bounds[1])
        self.env[loop.var.name] = Linear(0, ((name, 1),))
        with self.out.block(f"for (int64_t {name} = {first}; {name} < {stop}; {name}++)"):
            self.statement(loop.body)

    def _counter(self, loop: For, extent: int) -> str:
        name = self.names.fresh(loop.var.name)
        self.ranges[name] = (0, extent - 1)
        return name

    def _vectors(self, loop: For) -> None:
        """Full vectors, written out or in a loop, then the rests."""
        chunks = self.facts.chunks(loop)
        width = chunks.width
        if chunks.is_unrolled:
            for chunk in range(chunks.count):
                self._vector(loop, Linear(chunk * width), width)
        else:
            name = self._counter(loop, chunks.count)
            head = f"for (int64_t {name} = 0; {name} < {chunks.count}; {name}++)"
            with self.out.block(head):
                self._vector(loop, Linear(0, ((name, width),)), width)
        for start, lanes, _ in chunks.rests:
            self._vector(loop, Linear(start), lanes)

    def _vector(self, loop: For, start: Linear, lanes: int) -> None:
        if lanes == 1:
            self.env[loop.var.name] = start
            self.statement(loop.body)
            return
        self.env[loop.var.name] = start._replace(step=1)
        self.vector, self.lanes = VectorLoop(loop.var.name, start, lanes), lanes
        self.statement(loop.body)
        self.vector, self.lanes = None, 1

    def _if(self, condition: Condition, then: Stmt) -> None:
        try:
            decided = self.condition(condition)
        except VariesByLane:
            if self.lanes == 1:
                raise
            self._each_lane(If(condition, then))
            return
        if decided is True:
            self.statement(then)
        elif decided is not False:
            with self.out.block(f"if {decided}"):
                self.statement(then)

    def _prefetch(self, buffer: Buffer, indices: tuple[Index, ...], level: int) -> None:
        storage = self.storage(buffer)
        if isinstance(storage, Piece):
            place = self.sum(self.place(buffer, indices)._replace(step=0))
            self.out.add(f"__builtin_prefetch(&{storage.pointer}[{place}], 0, {4 - level});")

    def _allocate(self, allocate: Allocate) -> None:
        buffer = allocate.buffer
        outer = self.storages.get(buffer.name)
        width = tile_width(allocate, self.env, self.lanes, self.facts)
        self.out.add("{")
        self.out.depth += 1
        with self.kernel.workspace.statement():
            storage = self._piece(buffer) if width is None else self._tile(buffer, width)
            self.storages[buffer.name] = storage
            start = len(self.out.lines)
            self.statement(allocate.body)
            if isinstance(storage, Tile):
                self.out.lines[start:start] = self._declared(storage)
        self.out.depth -= 1
        self.out.add("}")
        if outer is None:
            del self.storages[buffer.name]
        else:
            self.storages[buffer.name] = outer

    def _tile(self, buffer: Buffer, width: int) -> Tile:
        return Tile(buffer.name, buffer.dtype, width, self.lanes)

    def _declared(self, tile: Tile) -> list[str]:
        """The variables of a register tile, known once its statement is written."""
        lines, self.out.lines = self.out.lines, []
        kind = held_type(tile.dtype)
        if tile.width > 1:
            kind = self.helpers.vector(tile.dtype, tile.width)
        empty = "{0}" if tile.width > 1 else "0"
        for _, name in sorted(tile.variables.items()):
            self.out.add(f"{kind} {name} __attribute__((unused)) = {empty};")
        lines, self.out.lines = self.out.lines, lines
        return lines

    def _piece(self, buffer: Buffer) -> Piece:
        """Memory for a buffer: of the call, on the stack, or of the thread."""
        size = self.lanes * element_count(buffer)
        count_bytes = size * buffer.dtype.size_bytes
        memory, offset = self.kernel.workspace.place(buffer, count_bytes, self.frame_bytes)
        name, kind = self.names.fresh(buffer.name), element_type(buffer.dtype)
        match memory:
            case MemoryKind.STACK:
                assert isinstance(count_bytes, int), "what is open is not on the stack"
                self.frame_bytes += count_bytes
                aligned = f"__attribute__((aligned({BUFFER_ALIGN}), unused))"
                self.out.add(f"{kind} {name}[{maximum(size, 1)}] {aligned};")
            case MemoryKind.SHARED | MemoryKind.OWN:
                base = "workspace" if memory is MemoryKind.SHARED else "slice"
                at = self.sum(self.evaluate(offset))
                self.out.add(f"{kind} *restrict {name} = ({kind} *)({base} + {at});")
        return Piece(name, buffer.dtype, private=self.lanes)

    def _parallel(self, loop: For, extent: Linear) -> None:
        """Write the body as a function of its own, and the call that shares out the iterations."""
        kernel = self.kernel
        captured, count = self._captured(loop.body), self.sum(extent)
        count = count if count.isalnum() else f"({count})"
        name = f"{kernel.name}_parallel_{len(kernel.functions)}"
        inner = Statements(kernel, self.names, is_parallel=True)
        inner.env, inner.ranges = dict(self.env), dict(self.ranges)
        inner.storages = {n: s for n, s in self.storages.items() if isinstance(s, Piece)}
        inner._serial(loop, "first", "stop", extent)
        parameters = "".join(f"{kind}{own}, " for own, kind in captured.items())
        kernel.functions.append(
            function_text(
                f"static void {name}({parameters}"
                "char *workspace, char *slice, int64_t first, int64_t stop)",
                (*captured, "workspace", "slice"),
                inner.out,
            )
        )
        passed = "".join(f"{own}, " for own in captured)
        add = self.out.lines.append
        add("#ifdef _OPENMP")
        with self.out.block("if (threads > 1)"):
            add(f"#pragma omp parallel num_threads(threads < {count} ? threads : {count})")
            with self.out.block(""):
                self.out.add("const int64_t id = omp_get_thread_num();")
                self.out.add("const int64_t team = omp_get_num_threads();")
                self.out.add(
                    f"{name}({passed}workspace, slice + id * {kernel.slice_bytes}, "
                    f"{count} * id / team, {count} * (id + 1) / team);"
                )
        self.out.add("else")
        add("#endif")
        self.out.add(f"{name}({passed}workspace, slice, 0, {count});")

    def _captured(self, body: Stmt) -> dict[str, str]:
        """The buffers and index values from outside that a body needs, with their types."""
        captured: dict[str, str] = {}
        for name in sorted(buffer.name for buffer in buffers_used(body)):
            storage = self.storages.get(name)
            if isinstance(storage, Piece):
                captured[storage.pointer] = pointer_type(storage)
        for _, value in sorted(self.env.items()):
            if isinstance(value, Linear):
                captured |= {name: "int64_t " for name, _ in value.terms}
        return captured


def pointer_type(piece: Piece) -> str:
    """The type of the parameter that is a buffer."""
    const = "const " if piece.is_input else ""
    return f"{const}{element_type(piece.dtype)} *restrict "


def function_text(head: str, parameters: Iterable[str], body: Lines) -> str:
    """A function without the values that nothing uses; it says which parameters it does not use."""
    lines: list[str] = []
    used: set[str] = set()
    for line in reversed(body.lines):
        defined = re.match(r"\s*const \w+ (\w+) = ", line)
        if defined is None or defined[1] in used:
            used.update(re.findall(r"[A-Za-z_]\w*", line))
            lines.append(line)
    used.discard("threads")  # without OpenMP nothing uses it
    voided = [f"    (void){name};" for name in parameters if name not in used]
    return "\n".join((f"{head} {{", *voided, *reversed(lines), "}", ""))
