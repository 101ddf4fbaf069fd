"""Widen the rows of local buffers to whole vectors, and compute these in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from math import gcd, prod

from tensorwright.expr import (
    Bounds,
    Index,
    Load,
    Range,
    Select,
    Value,
    ValueExpr,
    Var,
    all_of,
    children,
    condition_sides,
    free_vars,
    has_element,
    interval,
    loads_of,
    terms_of,
)
from tensorwright.loop.ir import (
    Buffer,
    Call,
    For,
    If,
    LoopProgram,
    Parameter,
    Prefetch,
    Stmt,
    Store,
)
from tensorwright.loop.traversal import (
    buffers_of_index,
    buffers_used,
    children_of,
    map_children,
    map_statement,
)
from tensorwright.schedule import ForKind, Scope

_TILE_BYTES = 8 << 10  # larger buffers are not kept in registers
_SHORTEST = 4  # elements of a vector that rows end with
_LONGEST = 16  # a longer row is several vectors


def widen_local_buffers(program: LoopProgram) -> LoopProgram:
    """Let the last vector of a row be as long as the others, where the row is in a local buffer.

    Rewrite:  local t: f32 (4, 26)
              for v in 0..16 @vectorize: t[j, v] = a
              for v in 0..10 @vectorize: t[j, v + 16] = b
                  ->  local t: f32 (4, 32)
                      for v in 0..16 @vectorize: t[j, v] = a
                      for v in 0..16 @vectorize: t[j, v + 16] = b
    Registers hold whole vectors: a sum of 26 channels, or of 12, would lie in memory, under a mask.
    A row of 12 becomes one of 16; the rows of the packed constants that it reads get zeros behind.
    Theorem:  every access of a row is at the same position of the longer row.  A longer loop writes
              more elements behind the old ones, and no result reads these; all that it reads is
              inside of its buffers.
    """
    accesses = _Accesses()
    accesses.collect(program.body, (), {})
    packed = {each.buffer for each in program.parameters if each.packing is not None}
    widths = dict(accesses.widths())
    alone = accesses.single_vectors(packed)
    longer = {buffer: _with_rows_of(buffer, width) for buffer, width in widths.items()} | alone
    if not longer:
        return program
    parameters = tuple(_with_longer_rows(each, alone) for each in program.parameters)
    widths |= {buffer: _row(wide) for buffer, wide in alone.items() if buffer not in packed}
    body = _with_buffers(program.body, longer)
    names = {buffer.name: width for buffer, width in widths.items()}
    return LoopProgram(program.name, parameters, _lengthened(body, names, {}))


@dataclass(slots=True)
class _Accesses:
    """How the local buffers of a program are accessed by vectors; mutable, one per run.

    longest   the longest vector along a buffer's rows     step   what divides where vectors begin
    refused   names of buffers that are accessed in another way
    filled    the vector loops that store what lies in a buffer, and the ranges of those around them
    """

    longest: dict[Buffer, int] = field(default_factory=dict)
    step: dict[Buffer, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    filled: dict[Buffer, list[tuple[For, Bounds]]] = field(default_factory=dict)

    def widths(self) -> Iterable[tuple[Buffer, int]]:
        """The buffers whose rows end with a part of a vector, and the length of a vector."""
        for buffer, width in self.longest.items():
            is_vector = width >= _SHORTEST and width & (width - 1) == 0
            row = buffer.shape[-1]
            if buffer.name in self.refused or not is_vector or not isinstance(row, int):
                continue
            if row > width and row % width and self.step[buffer] % width == 0:
                yield buffer, width

    def single_vectors(self, packed: Set[Buffer]) -> dict[Buffer, Buffer]:
        """Longer buffers for those whose rows are one short vector each.

        With them come the packed constants from whose rows they are computed. Only buffers that can
        be computed in full are taken.
        """
        longer = {
            buffer: _with_rows_of(buffer, 1 << (width - 1).bit_length())
            for buffer, width in self.longest.items()
            if buffer.name not in self.refused
            and width == buffer.shape[-1]
            and buffer in self.filled
            if 2 < width < _LONGEST and width & (width - 1)
        }
        while longer:
            constants = {
                load.source: _with_rows_of(load.source, _row(wide))
                for buffer, wide in longer.items()
                for loop, _ in self.filled[buffer]
                if isinstance(loop.body, Store)
                for load in loads_of(loop.body.value)
                if isinstance(load.source, Buffer) and load.source in packed
                if load.indices[-1] == loop.var and load.source.shape[-1] == loop.extent
            }
            short = [each for each in longer if not self._is_filled_by(each, longer | constants)]
            if not short:
                return longer | constants
            for each in short:
                del longer[each]
        return {}

    def _is_filled_by(self, buffer: Buffer, wide: Mapping[Buffer, Buffer]) -> bool:
        """Whether all loops that store into a buffer can be as long as its rows will be."""
        width = _row(wide[buffer])
        for loop, bounds in self.filled[buffer]:
            store = _with_buffers(loop.body, wide)
            if not isinstance(store, Store) or loop.extent != buffer.shape[-1]:
                return False
            if not _is_inside(store.value, loop.var, width, bounds):
                return False
        return True

    def collect(self, statement: Stmt, vectors: tuple[For, ...], bounds: Bounds) -> None:
        """Note all accesses inside a statement.

        vectors   the vector loops around it
        bounds    the ranges of the loops around it
        """
        match statement:
            case For(var, extent, kind, body):
                if kind is ForKind.VECTOR:
                    vectors = (*vectors, statement)
                    if isinstance(body, Store):
                        self.filled.setdefault(body.buffer, []).append((statement, bounds))
                bounds = {**bounds, var: Range.of_extent(extent)}
            case Store(buffer, indices, value):
                self._note(buffer, indices, vectors)
                for load in loads_of(value):
                    if isinstance(load.source, Buffer):  # else an element of a condition
                        self._note(load.source, load.indices, vectors)
                self.refused |= {*_elements_of(value), *_names(buffers_of_index(*indices))}
            case If(condition, _):
                self.refused |= {*_names(buffers_of_index(*condition_sides(condition)))}
            case Prefetch(buffer, _):
                self.refused.add(buffer.name)
            case Call():
                self.refused |= {*_names(buffers_used(statement))}
                return
        for child in children_of(statement):
            self.collect(child, vectors, bounds)

    def _note(self, buffer: Buffer, indices: tuple[Index, ...], vectors: tuple[For, ...]) -> None:
        if buffer.scope is not Scope.LOCAL or not indices or not _is_small(buffer):
            return
        along = [loop for loop in vectors if loop.var in free_vars(*indices)]
        if not along:
            return
        terms = dict(terms_of(indices[-1]))
        is_row = len(along) == 1 and terms.pop((along[0].var,), 0) == 1
        others = free_vars(*indices[:-1]) | free_vars(*(atom for each in terms for atom in each))
        extent = along[0].extent
        if not is_row or along[0].var in others or not isinstance(extent, int):
            self.refused.add(buffer.name)
            return
        self.longest[buffer] = max(self.longest.get(buffer, 0), extent)
        self.step[buffer] = gcd(self.step.get(buffer, 0), *terms.values())


def _row(buffer: Buffer) -> int:
    """The length of a buffer's rows."""
    return buffer.extents[-1]


def _with_rows_of(buffer: Buffer, width: int) -> Buffer:
    """The buffer with rows of whole vectors of a width."""
    return replace(buffer, shape=(*buffer.shape[:-1], -(-_row(buffer) // width) * width))


def _with_longer_rows(parameter: Parameter, longer: Mapping[Buffer, Buffer]) -> Parameter:
    """A packed constant whose rows end with zeros if they become longer."""
    wide, packing = longer.get(parameter.buffer), parameter.packing
    if wide is None or packing is None:
        return parameter
    *outer, (var, extent) = packing.axes
    valid = all_of(packing.valid, var < extent)
    axes = (*outer, (var, _row(wide)))
    return replace(parameter, buffer=wide, packing=replace(packing, axes=axes, valid=valid))


def _with_buffers(statement: Stmt, others: Mapping[Buffer, Buffer]) -> Stmt:
    return map_statement(
        statement, lambda index: index, lambda each: each, lambda each: others.get(each, each)
    )


def _is_small(buffer: Buffer) -> bool:
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    is_bound = len(extents) == len(buffer.shape)
    return is_bound and prod(extents) * buffer.dtype.size_bytes <= _TILE_BYTES


def _names(buffers: Iterable[Buffer]) -> Iterator[str]:
    return (buffer.name for buffer in buffers)


def _elements_of(value: Value) -> set[str]:
    """The names of the buffers whose elements are indices or conditions in a value."""
    names: set[str] = set()
    if isinstance(value, Load):
        names |= {*_names(buffers_of_index(*value.indices))}
    if isinstance(value, Select) and not isinstance(value.condition, ValueExpr):
        names |= {*_names(buffers_of_index(*condition_sides(value.condition)))}
    for child in children(value):
        names |= _elements_of(child)
    return names


def _lengthened(statement: Stmt, widths: Mapping[str, int], bounds: Bounds) -> Stmt:
    """The statement with vector loops that fill the rows of the buffers they store to."""
    match statement:
        case For(var, int() as extent, ForKind.VECTOR, Store(buffer, _, value)):
            width = widths.get(buffer.name, 0)
            if extent < width and _is_inside(value, var, width, bounds):
                return replace(statement, extent=width)
            return statement
        case For(var, extent, _, _):
            bounds = {**bounds, var: Range.of_extent(extent)}
    return map_children(lambda child: _lengthened(child, widths, bounds), statement)


def _is_inside(value: Value, var: Var, width: int, bounds: Bounds) -> bool:
    """Whether a value reads inside its buffers while `var` is below `width`, and never selects."""
    longer = {**bounds, var: Range.of_extent(width)}
    if isinstance(value, Select) and not isinstance(value.condition, ValueExpr):
        return False
    if isinstance(value, Load):
        for index, extent in zip(value.indices, value.source.shape, strict=True):
            if var not in free_vars(index):
                continue
            reach = None if has_element(index) else interval(index, longer)
            high = None if reach is None else reach.high
            if not isinstance(high, int) or not isinstance(extent, int) or high >= extent:
                return False
        return True
    return all(_is_inside(child, var, width, bounds) for child in children(value))
