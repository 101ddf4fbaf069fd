"""Widen the rows of local buffers to whole vectors, and compute these in full.

The order of the loops in a register tile: which operand stays in registers for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from math import gcd, prod

from tensorwright import expr
from tensorwright.base import CpuTarget
from tensorwright.loop import ir, traversal
from tensorwright.loop.scalars import folded_operand
from tensorwright.schedule import ForKind, Scope

_TILE_BYTES = 8 << 10  # larger buffers are not kept in registers
_SHORTEST = 4  # elements of a vector that rows end with
_LONGEST = 16  # a longer row is several vectors


def widen_local_buffers(program: ir.LoopProgram) -> ir.LoopProgram:
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
    return ir.LoopProgram(program.name, parameters, _lengthened(body, names, {}))


@dataclass(slots=True)
class _Accesses:
    """How the local buffers of a program are accessed by vectors; mutable, one per run.

    longest   the longest vector along a buffer's rows     step   what divides where vectors begin
    refused   names of buffers that are accessed in another way
    filled    the vector loops that store what lies in a buffer, and the ranges of those around them
    """

    longest: dict[ir.Buffer, int] = field(default_factory=dict)
    step: dict[ir.Buffer, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    filled: dict[ir.Buffer, list[tuple[ir.For, expr.Bounds]]] = field(default_factory=dict)

    def widths(self) -> Iterable[tuple[ir.Buffer, int]]:
        """The buffers whose rows end with a part of a vector, and the length of a vector."""
        for buffer, width in self.longest.items():
            is_vector = width >= _SHORTEST and width & (width - 1) == 0
            row = buffer.shape[-1]
            if buffer.name in self.refused or not is_vector or not isinstance(row, int):
                continue
            if row > width and row % width and self.step[buffer] % width == 0:
                yield buffer, width

    def single_vectors(self, packed: Set[ir.Buffer]) -> dict[ir.Buffer, ir.Buffer]:
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
                if isinstance(loop.body, ir.Store)
                for load in expr.loads_of(loop.body.value)
                if isinstance(load.source, ir.Buffer) and load.source in packed
                if load.indices[-1] == loop.var and load.source.shape[-1] == loop.extent
            }
            short = [each for each in longer if not self._is_filled_by(each, longer | constants)]
            if not short:
                return longer | constants
            for each in short:
                del longer[each]
        return {}

    def _is_filled_by(self, buffer: ir.Buffer, wide: Mapping[ir.Buffer, ir.Buffer]) -> bool:
        """Whether all loops that store into a buffer can be as long as its rows will be."""
        width = _row(wide[buffer])
        for loop, bounds in self.filled[buffer]:
            store = _with_buffers(loop.body, wide)
            if not isinstance(store, ir.Store) or loop.extent != buffer.shape[-1]:
                return False
            if not _is_inside(store.value, loop.var, width, bounds):
                return False
        return True

    def collect(self, statement: ir.Stmt, vectors: tuple[ir.For, ...], bounds: expr.Bounds) -> None:
        """Note all accesses inside a statement.

        vectors   the vector loops around it
        bounds    the ranges of the loops around it
        """
        match statement:
            case ir.For(var, extent, kind, body):
                if kind is ForKind.VECTOR:
                    vectors = (*vectors, statement)
                    if isinstance(body, ir.Store):
                        self.filled.setdefault(body.buffer, []).append((statement, bounds))
                bounds = {**bounds, var: expr.Range.of_extent(extent)}
            case ir.Store(buffer, indices, value):
                self._note(buffer, indices, vectors)
                for load in expr.loads_of(value):
                    if isinstance(load.source, ir.Buffer):  # else an element of a condition
                        self._note(load.source, load.indices, vectors)
                self.refused |= {
                    *_elements_of(value),
                    *_names(traversal.buffers_of_index(*indices)),
                }
            case ir.If(condition, _):
                self.refused |= {
                    *_names(traversal.buffers_of_index(*expr.condition_sides(condition)))
                }
            case ir.Prefetch(buffer, _):
                self.refused.add(buffer.name)
            case ir.Call():
                self.refused |= {*_names(traversal.buffers_used(statement))}
                return
        for child in traversal.children_of(statement):
            self.collect(child, vectors, bounds)

    def _note(
        self, buffer: ir.Buffer, indices: tuple[expr.Index, ...], vectors: tuple[ir.For, ...]
    ) -> None:
        if buffer.scope is not Scope.LOCAL or not indices or not _is_small(buffer):
            return
        along = [loop for loop in vectors if loop.var in expr.free_vars(*indices)]
        if not along:
            return
        terms = dict(expr.terms_of(indices[-1]))
        is_row = len(along) == 1 and terms.pop((along[0].var,), 0) == 1
        others = expr.free_vars(*indices[:-1]) | expr.free_vars(
            *(atom for each in terms for atom in each)
        )
        extent = along[0].extent
        if not is_row or along[0].var in others or not isinstance(extent, int):
            self.refused.add(buffer.name)
            return
        self.longest[buffer] = max(self.longest.get(buffer, 0), extent)
        self.step[buffer] = gcd(self.step.get(buffer, 0), *terms.values())


def _row(buffer: ir.Buffer) -> int:
    """The length of a buffer's rows."""
    return buffer.extents[-1]


def _with_rows_of(buffer: ir.Buffer, width: int) -> ir.Buffer:
    """The buffer with rows of whole vectors of a width."""
    return replace(buffer, shape=(*buffer.shape[:-1], -(-_row(buffer) // width) * width))


def _with_longer_rows(
    parameter: ir.Parameter, longer: Mapping[ir.Buffer, ir.Buffer]
) -> ir.Parameter:
    """A packed constant whose rows end with zeros if they become longer."""
    wide, packing = longer.get(parameter.buffer), parameter.packing
    if wide is None or packing is None:
        return parameter
    *outer, (var, extent) = packing.axes
    valid = expr.all_of(packing.valid, var < extent)
    axes = (*outer, (var, _row(wide)))
    return replace(parameter, buffer=wide, packing=replace(packing, axes=axes, valid=valid))


def _with_buffers(statement: ir.Stmt, others: Mapping[ir.Buffer, ir.Buffer]) -> ir.Stmt:
    return traversal.map_statement(
        statement,
        lambda index: index,
        lambda buffer: others.get(buffer, buffer),
        condition=lambda condition: condition,
    )


def _is_small(buffer: ir.Buffer) -> bool:
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    is_bound = len(extents) == len(buffer.shape)
    return is_bound and prod(extents) * buffer.dtype.size_bytes <= _TILE_BYTES


def _names(buffers: Iterable[ir.Buffer]) -> Iterator[str]:
    return (buffer.name for buffer in buffers)


def _elements_of(value: expr.Value) -> set[str]:
    """The names of the buffers whose elements are indices or conditions in a value."""
    names: set[str] = set()
    if isinstance(value, expr.Load):
        names |= {*_names(traversal.buffers_of_index(*value.indices))}
    if isinstance(value, expr.Select) and not isinstance(value.condition, expr.ValueExpr):
        names |= {*_names(traversal.buffers_of_index(*expr.condition_sides(value.condition)))}
    for child in expr.children(value):
        names |= _elements_of(child)
    return names


def _lengthened(statement: ir.Stmt, widths: Mapping[str, int], bounds: expr.Bounds) -> ir.Stmt:
    """The statement with vector loops that fill the rows of the buffers they store to."""
    match statement:
        case ir.For(var, int() as extent, ForKind.VECTOR, ir.Store(buffer, _, value)):
            width = widths.get(buffer.name, 0)
            if extent < width and _is_inside(value, var, width, bounds):
                return replace(statement, extent=width)
            return statement
        case ir.For(var, extent, _, _):
            bounds = {**bounds, var: expr.Range.of_extent(extent)}
    return traversal.map_children(lambda child: _lengthened(child, widths, bounds), statement)


def _is_inside(value: expr.Value, var: expr.Var, width: int, bounds: expr.Bounds) -> bool:
    """Whether a value reads inside its buffers while `var` is below `width`, and never selects."""
    longer = {**bounds, var: expr.Range.of_extent(width)}
    if isinstance(value, expr.Select) and not isinstance(value.condition, expr.ValueExpr):
        return False
    if isinstance(value, expr.Load):
        for index, extent in zip(value.indices, value.source.shape, strict=True):
            if var not in expr.free_vars(index):
                continue
            reach = None if expr.has_element(index) else expr.interval(index, longer)
            high = None if reach is None else reach.high
            if not isinstance(high, int) or not isinstance(extent, int) or high >= extent:
                return False
        return True
    return all(_is_inside(child, var, width, bounds) for child in expr.children(value))


def order_tiles(program: ir.LoopProgram, target: CpuTarget) -> ir.LoopProgram:
    """Keep the operand with fewer vectors in registers if a tile and the other one do not fit.

    A tile multiplies vectors by single elements, each spread over a vector. What the outer loops
    move is loaded once, what the inner ones move is kept for all of them: with three channels and
    four vectors of pixels, twelve sums, three channels and one of the vectors fill sixteen
    registers, the four vectors and one channel do not fit.

    Rewrite:  for c: for r: for v @vectorize: t[c, r, v] += x[r, v] * w[c]    (all written out)
              ->  for r: for c: for v @vectorize: t[c, r, v] += x[r, v] * w[c]
    Theorem:  every iteration of the loops folds into elements of its own, so their order is free.
    Targets whose instructions spread an element themselves need no register for it: unchanged.
    """
    if target.spreads_operands:
        return program
    body = _ordered(program.body, target)
    return program if body is program.body else replace(program, body=body)


def _ordered(statement: ir.Stmt, target: CpuTarget) -> ir.Stmt:
    if isinstance(statement, ir.For) and statement.kind is ForKind.UNROLLED:
        loops = _tile_of(statement)
        if loops is not None:
            order = _by_registers(loops, target)
            return statement if order is loops else traversal.nest_in(order, order[-1].body)
    return traversal.map_children(lambda child: _ordered(child, target), statement)


def _tile_of(outer: ir.For) -> list[ir.For] | None:
    """Unrolled loops and the vector loop in them, if they fold into a tile, each into elements of
    its own.
    """
    loops = [outer]
    while isinstance(loops[-1].body, ir.For):
        loops.append(loops[-1].body)
    *unrolled, vector = loops
    store = vector.body
    if not isinstance(store, ir.Store) or vector.kind is not ForKind.VECTOR:
        return None
    if store.buffer.scope is not Scope.LOCAL or folded_operand(store) is None:
        return None
    own = _is_one_to_one(store.indices, loops)
    plain = all(loop.kind is ForKind.UNROLLED for loop in unrolled)
    return loops if own and plain else None


def _is_one_to_one(indices: tuple[expr.Index, ...], loops: list[ir.For]) -> bool:
    """Whether every iteration of the loops has an element of its own.

    Theorem: sums of c*v differ for different v if each c is more than all the terms with smaller
    coefficients reach together.
    """
    extents = {loop.var: loop.extent for loop in loops}
    seen: set[expr.Var] = set()
    for index in indices:
        reach = 0
        terms = [(monomial, step) for monomial, step in expr.terms_of(index) if monomial]
        for (*others, last), step in sorted(terms, key=lambda term: term[1]):
            extent = extents.get(last) if isinstance(last, expr.Var) else None
            if others or not isinstance(last, expr.Var) or not isinstance(extent, int):
                if extents.keys() & expr.free_vars(last, *others):
                    return False
                continue
            if last in seen or step <= reach:
                return False
            seen.add(last)
            reach += step * (extent - 1)
    return seen == extents.keys()


def _by_registers(loops: list[ir.For], target: CpuTarget) -> list[ir.For]:
    """The loops in the order that needs fewer registers, if those are not enough."""
    *unrolled, vector = loops
    store = vector.body
    assert isinstance(store, ir.Store)
    lanes = target.vector_bytes // store.buffer.dtype.size_bytes
    folded = folded_operand(store)
    if folded is None or not isinstance(vector.extent, int) or vector.extent > lanes:
        return loops
    loads = tuple(expr.loads_of(folded[1]))
    wide = [loop for loop in unrolled if _moves(loads, loop.var, vector.var, is_wide=True)]
    narrow = [loop for loop in unrolled if _moves(loads, loop.var, vector.var, is_wide=False)]
    is_product = len(loads) == 2 and len(wide) + len(narrow) == len(unrolled)
    if not is_product or any(loop in narrow for loop in wide):
        return loops
    vectors, elements = _count(wide), _count(narrow)
    fits = vectors * elements + vectors + 1 <= target.vector_registers
    return loops if fits or vectors <= elements else [*wide, *narrow, vector]


def _moves(loads: tuple[expr.Load, ...], var: expr.Var, lanes: expr.Var, *, is_wide: bool) -> bool:
    """Whether a load moves along a loop; one that has lanes, or one that has none."""
    used = [expr.free_vars(*load.indices) for load in loads]
    return any(var in each and (lanes in each) is is_wide for each in used)


def _count(loops: list[ir.For]) -> int:
    return prod(loop.extent for loop in loops if isinstance(loop.extent, int))
