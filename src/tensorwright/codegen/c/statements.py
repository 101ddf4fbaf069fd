"""Statements on a processor: threads of OpenMP, register tiles, the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis import (
    BUFFER_ALIGN,
    Facts,
    Linear,
    MemoryKind,
    Workspace,
    element_count,
    tile_width,
)
from tensorwright.codegen.c.dialect import FLOAT_STATE, C
from tensorwright.codegen.c_family import (
    Helpers,
    Names,
    Piece,
    Statements,
    Tile,
    function_text,
)
from tensorwright.expr import maximum
from tensorwright.loop import (
    Allocate,
    Buffer,
    For,
    GroupStatement,
    Prefetch,
    Stmt,
    buffers_used,
)
from tensorwright.schedule import ForKind

_FLOAT_STATE = f"#ifdef _OPENMP\n{FLOAT_STATE}#endif\n"  # for the threads of parallel loops


@dataclass(slots=True)
class Kernel:
    """What the functions of one kernel share while they are written.

    slice_bytes   a C expression: how much memory each thread has to itself
    """

    name: str
    target: CpuTarget
    facts: Facts
    slice_bytes: str
    helpers: Helpers = field(default_factory=lambda: Helpers(C))
    workspace: Workspace = field(default_factory=Workspace)
    functions: list[str] = field(default_factory=list)


class ThreadStatements(Statements):
    """Write statements into one function that a thread runs."""

    def __init__(self, kernel: Kernel, names: Names, *, is_parallel: bool) -> None:
        super().__init__(kernel.helpers, names, kernel.facts)
        self.kernel = kernel
        self.is_parallel = is_parallel
        self.frame_bytes = 0

    def loop(self, loop: For) -> None:
        """A loop: unrolled, as vectors, on threads, or one iteration after the other."""
        extent, kind = self.evaluate(loop.extent), self.facts.kind(loop)
        with self.variable_of(loop):
            if self.facts.is_once(loop) or kind is ForKind.UNROLLED:
                self.written_out(loop)
            elif not extent.terms and extent.const <= 0:
                pass
            elif kind is ForKind.VECTOR and self.vector is None:
                self.vectors(loop)
            elif kind is ForKind.PARALLEL and not self.is_parallel and self.lanes == 1:
                self._parallel(loop, extent)
            else:
                self.serial(loop, "0", self.sum(extent), extent)

    def of_group(self, statement: GroupStatement) -> None:
        """Never called: programs with groups of threads are refused before."""
        raise AssertionError("programs with groups of threads are refused before")

    def prefetch(self, prefetch: Prefetch) -> None:
        """The builtin of gcc and clang, if the buffer lies in memory."""
        storage = self.storage(prefetch.buffer)
        if isinstance(storage, Piece):
            offset = self.element_offset(prefetch.buffer, prefetch.indices)
            at, level = self.sum(offset._replace(step=0)), 4 - prefetch.level
            self.out.add(f"__builtin_prefetch(&{storage.pointer}[{at}], 0, {level});")

    def allocate(self, allocate: Allocate) -> None:
        """Registers if the buffer may live there, else memory of the call or the thread."""
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
        kind = self.dialect.value(tile.dtype)
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
        memory, offset = self.kernel.workspace.reserve(buffer, count_bytes, self.frame_bytes)
        name, kind = self.names.fresh(buffer.name), self.dialect.element(buffer.dtype)
        match memory:
            case MemoryKind.STACK:
                assert isinstance(count_bytes, int), "open sizes are not on the stack"
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
        inner = ThreadStatements(kernel, self.names, is_parallel=True)
        inner.env, inner.ranges = dict(self.env), dict(self.ranges)
        inner.storages = {n: s for n, s in self.storages.items() if isinstance(s, Piece)}
        inner.serial(loop, "first", "stop", extent)
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
            self.helpers.named("float_state", {"float_state": _FLOAT_STATE})
            self.out.add("const uint64_t floats = float_state();")
            add(f"#pragma omp parallel num_threads(threads < {count} ? threads : {count})")
            with self.out.block(""):
                self.out.add("const int64_t id = omp_get_thread_num();")
                self.out.add("const int64_t team = omp_get_num_threads();")
                self.out.add("const uint64_t own = float_state();")
                self.out.add("set_float_state(floats);")
                self.out.add(
                    f"{name}({passed}workspace, slice + id * {kernel.slice_bytes}, "
                    f"{count} * id / team, {count} * (id + 1) / team);"
                )
                self.out.add("set_float_state(own);")
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
    return f"{const}{C.element(piece.dtype)} *restrict "
