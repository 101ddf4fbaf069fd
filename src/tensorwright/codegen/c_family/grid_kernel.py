"""A bound loop program to the text of kernels that are launched on grids.

Each statement at the root of the program is one launch: blocks cannot wait for each other. All
functions have the parameters of the program, then its named sizes, then the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tensorwright.base import GpuTarget, Grid, Launch
from tensorwright.codegen.analysis import MOST_ITERATIONS, Facts, Linear, size_name
from tensorwright.codegen.analysis.facts import Arena, element_count
from tensorwright.codegen.backend import Signature, Source
from tensorwright.codegen.c_family.dialect import Dialect, GridWords, Names
from tensorwright.codegen.c_family.grid_statements import (
    GridStatements,
    check_extents,
    grid_facts,
    refuse_processors,
)
from tensorwright.codegen.c_family.helpers import Helpers
from tensorwright.codegen.c_family.statements import function_text
from tensorwright.codegen.c_family.values import Piece
from tensorwright.expr import Fn, Index, NamedSize
from tensorwright.loop import (
    Buffer,
    LaunchNest,
    LoopProgram,
    Role,
    block,
    launches_of,
    size_arguments,
    sizes_of_program,
)
from tensorwright.schedule import ForKind

_BLOCK_KINDS = (ForKind.BLOCK_X, ForKind.BLOCK_Y, ForKind.BLOCK_Z)
_THREAD_KINDS = (ForKind.THREAD_X, ForKind.THREAD_Y, ForKind.THREAD_Z)
_MOST_SHORT = (1 << 31) - 1


def emit_grid(
    program: LoopProgram,
    target: GpuTarget,
    dialect: Dialect,
    *,
    fast_math: bool = False,
    has_copies: bool = False,
) -> Source:
    """Write a program whose extents are ints, or expressions of named sizes.

    Indices have 32 bits where all of them fit.
    has_copies   the target has copies that go on while threads compute
    Raises:  UnsupportedError for loops of processors, open numbers of threads, and functions of
             types that have none; InternalError for a program that is not well formed.
    """
    assert dialect.grid is not None, f"{dialect.name} has no grids"
    refuse_processors(program.body)
    fast = dialect.grid.fast_functions if fast_math else {}
    writer = _Writer(program, target, dialect, dialect.grid, fast, has_copies, dialect.short_index)
    source = writer.source()
    if not writer.is_wide or dialect.short_index == dialect.index:
        return source
    return replace(writer, index=dialect.index).source()


@dataclass(slots=True)
class _Writer:
    """Writes one program; mutable, used once."""

    program: LoopProgram
    target: GpuTarget
    dialect: Dialect
    words: GridWords
    fast: Mapping[Fn, str]
    has_copies: bool
    index: str
    is_wide: bool = False

    def source(self) -> Source:
        """The text of all launches, and how they are called."""
        dialect, program = self.dialect, self.program
        name = dialect.identifier(program.name)
        helpers = Helpers(dialect)
        helpers.index = self.index
        helpers.fast = self.fast
        facts, arena = grid_facts(dialect), Arena()
        launched = launches_of(program)
        offsets = {
            buffer: arena.take(element_count(buffer) * buffer.dtype.size_bytes)
            for buffer in launched.whole
        }
        self._note_buffers((*(each.buffer for each in program.parameters), *launched.whole))
        functions: list[str] = []
        launches: list[Launch] = []
        nothing = LaunchNest((), (), (), block())
        for number, nest in enumerate(launched.nests or (nothing,)):
            symbol = f"{name}_{number}" if number else name
            text, launch = self._launch(symbol, nest, helpers, facts, offsets)
            functions.append(text)
            launches.append(launch)
        text = f"{dialect.head}{helpers.text()}\n" + "\n".join(functions)
        sizes = size_arguments(program)
        return Source(
            text,
            Signature(name, program.parameters, arena.size, 0, tuple(launches), sizes),
        )

    def _note_buffers(self, buffers: tuple[Buffer, ...]) -> None:
        """Choose wide indices if a buffer may have more elements than 32 bits count."""
        for buffer in buffers:
            count = element_count(buffer)
            if not isinstance(count, int) or count > _MOST_SHORT:
                self.is_wide = True

    def _launch(
        self,
        symbol: str,
        nest: LaunchNest,
        helpers: Helpers,
        facts: Facts,
        offsets: Mapping[Buffer, Index],
    ) -> tuple[str, Grid]:
        check_extents(symbol, nest)
        names = Names(self.dialect.identifier)
        statements = GridStatements(helpers, names, facts, self.words, has_copies=self.has_copies)
        sizes = {size: names.fresh(size.name) for size in sizes_of_program(self.program)}
        for size, own in sizes.items():
            statements.env[size_name(size)] = Linear(0, ((own, 1),))
            statements.ranges[own] = (size.least, size.most or MOST_ITERATIONS)
        lines = self._open(statements, sizes, offsets)
        for loop in (*nest.blocks, *nest.threads):
            statements.open_index(loop)
        for buffer in nest.shared:
            statements.share(buffer)
        statements.statement(nest.body)
        self.is_wide |= statements.is_wide
        threads = tuple(max(1, self._number(nest.extent(kind))) for kind in _THREAD_KINDS)
        is_empty = any(loop.extent == 0 for loop in (*nest.blocks, *nest.threads))
        blocks = (0, 1, 1) if is_empty else tuple(map(nest.extent, _BLOCK_KINDS))
        shared = statements.shared
        is_static = self.words.dynamic_shared == "" or (
            shared.size_bytes <= self.target.static_shared_bytes
        )
        declared = self._shared(statements, is_static=is_static)
        statements.out.lines[:0] = [*_used(lines, statements.out.lines), *declared]
        groups = f", {statements.groups}" if statements.groups else ""
        head = self.words.kernel.format(
            x=threads[0], y=threads[1], z=threads[2], threads=prod(threads), groups=groups
        )
        head = f"{head} {symbol}(\n{self._parameters(statements, sizes)})\n"
        launch = Grid(
            (blocks[0], blocks[1], blocks[2]),
            (threads[0], threads[1], threads[2]),
            0 if is_static else shared.size_bytes,
        )
        return function_text(head.rstrip("\n"), (), statements.out), launch

    def _number(self, extent: Index) -> int:
        assert isinstance(extent, int), "checked before"
        return extent

    def _open(
        self,
        statements: GridStatements,
        sizes: Mapping[NamedSize, str],
        offsets: Mapping[Buffer, Index],
    ) -> list[str]:
        """The first lines: named sizes, pointers to the arguments and to buffers of the call."""
        words, names = self.words, statements.names
        lines: list[str] = []
        for size, own in sizes.items():
            divided = f" / {size.divisor}" if size.divisor > 1 else ""
            lines.append(f"    const {self.index} {own} = ({self.index})({own}_given{divided});")
        for parameter in self.program.parameters:
            buffer = parameter.buffer
            is_input = parameter.role is not Role.OUTPUT
            piece = Piece(names.fresh(buffer.name), buffer.dtype, is_input, 1, words.global_space)
            statements.storages[buffer.name] = piece
            if words.has_offsets:
                kind = self._pointer(piece)
                first = f"{piece.pointer}_buffer + {piece.pointer}_first"
                lines.append(f"    {kind}{piece.pointer} = ({kind.split('*')[0]}*)({first});")
        for buffer, offset in offsets.items():
            piece = Piece(names.fresh(buffer.name), buffer.dtype, space=words.global_space)
            statements.storages[buffer.name] = piece
            at = statements.sum(statements.evaluate(offset))
            base = "workspace_buffer + workspace_first" if words.has_offsets else "workspace"
            plain = f"{words.global_space}{self.dialect.element(buffer.dtype)} *"
            lines.append(f"    {self._pointer(piece)}{piece.pointer} = ({plain})({base} + {at});")
        return lines

    def _pointer(self, piece: Piece) -> str:
        const = "const " if piece.is_input else ""
        kind = self.dialect.element(piece.dtype)
        return f"{piece.space}{const}{kind} *{self.dialect.restrict} "

    def _parameters(self, statements: GridStatements, sizes: Mapping[NamedSize, str]) -> str:
        """The list of parameters, one in a line, with their types as comments."""
        words, rows = self.words, []
        for parameter in self.program.parameters:
            piece = statements.storages[parameter.buffer.name]
            assert isinstance(piece, Piece)
            if words.has_offsets:
                const = "const " if piece.is_input else ""
                row = (
                    f"{piece.space}{const}char *{piece.pointer}_buffer, "
                    f"const {self.dialect.index} {piece.pointer}_first"
                )
            else:
                row = f"{self._pointer(piece)}{piece.pointer}"
            shape = ", ".join(map(str, parameter.buffer.shape))
            rows.append((row, f"{parameter.buffer.dtype} ({shape})"))
        rows += [(f"const {self.dialect.index} {own}_given", str(s)) for s, own in sizes.items()]
        if words.has_offsets:
            last = f"{words.global_space}char *workspace_buffer, "
            last += f"const {self.dialect.index} workspace_first"
        else:
            last = f"char *{self.dialect.restrict} workspace"
        lines = [f"    {row},  // {note}" for row, note in rows]
        return "\n".join((*lines, f"    {last}"))

    def _shared(self, statements: GridStatements, *, is_static: bool) -> list[str]:
        """The declarations of what a block shares."""
        words, shared = self.words, statements.shared
        lines: list[str] = []
        offset = 0
        if not is_static:
            lines.append(f"    {words.dynamic_shared};")
        for kind, name, count, shape, size_bytes in shared.arrays:
            if is_static:
                array = f"{words.shared_declared}{kind} {name}[{count}]"
                lines.append(f"    {array} {words.align};  // ({shape})")
            else:
                lines.append(f"    {kind} *const {name} = ({kind} *)(shared + {offset});")
            offset += size_bytes
        return lines


def _used(definitions: list[str], body: list[str]) -> list[str]:
    """The lines of these that define a name which the others, or later ones of them, mention."""
    kept: list[str] = []
    words = set(re.findall(r"\w+", "\n".join(body)))
    for line in reversed(definitions):
        name = line.partition(" = ")[0].split()[-1].lstrip("*")
        if name in words:
            kept.append(line)
            words.update(re.findall(r"\w+", line))
    return kept[::-1]
