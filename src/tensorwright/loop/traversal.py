"""Walk over loop nests and copy them with other names, indices or values.

Where the elements of a buffer lie in memory: what a back end writes for an access.

    address = moved(offset), where moved is the swizzle of the layout, or nothing

`offset_of` is an index expression. A swizzle needs `xor`, which index expressions do not have, so
the back end writes it, as `MemoryLayout.swizzle` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tensorwright import expr
from tensorwright.expr import condition_sides as sides_of
from tensorwright.loop import ir


def children_of(statement: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """The statements directly inside; the meaning of an intrinsic call is inside it."""
    match statement:
        case ir.Block(statements):
            return statements
        case ir.For(_, _, _, body) | ir.If(_, body) | ir.Allocate(_, body) | ir.Call(_, _, body):
            return (body,)
        case ir.StartCopy(store):
            return (store,)
        case ir.Store() | ir.Prefetch() | ir.GroupStatement():
            return ()


def with_children(statement: ir.Stmt, inner: tuple[ir.Stmt, ...]) -> ir.Stmt:
    """The same statement with other statements inside; blocks are flattened."""
    match statement:
        case ir.Block():
            return ir.block(*inner)
        case ir.For() | ir.Allocate():
            return replace(statement, body=inner[0])
        case ir.If():
            return replace(statement, then=inner[0])
        case ir.Call():
            return replace(statement, meaning=inner[0])
        case ir.StartCopy():
            return _copy_of(inner[0])
        case ir.Store() | ir.Prefetch() | ir.GroupStatement():
            return statement


def _copy_of(store: ir.Stmt) -> ir.StartCopy:
    assert isinstance(store, ir.Store), "a copy is a store, and a pass changes its parts only"
    return ir.StartCopy(store)


def map_children(change: Callable[[ir.Stmt], ir.Stmt], statement: ir.Stmt) -> ir.Stmt:
    """A statement with its children changed; the same object if no child changes."""
    inner = children_of(statement)
    changed = tuple(change(child) for child in inner)
    if all(new is old for new, old in zip(changed, inner, strict=True)):
        return statement
    return with_children(statement, changed)


def nest_in(heads: Iterable[ir.For | ir.If], body: ir.Stmt) -> ir.Stmt:
    """A statement inside loops and branches, outermost first; their own bodies are dropped."""
    for head in reversed(tuple(heads)):
        body = with_children(head, (body,))
    return body


def walk(statement: ir.Stmt) -> Iterator[ir.Stmt]:
    """The statement and every statement inside, outer before inner."""
    pending = [statement]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(reversed(children_of(part)))


def has_barrier(statement: ir.Stmt) -> bool:
    """Whether threads wait for each other somewhere inside, all or those of a warp."""
    return any(isinstance(part, ir.Barrier | ir.LaneFold) for part in walk(statement))


def is_empty(statement: ir.Stmt) -> bool:
    """Whether it is a block without statements."""
    return isinstance(statement, ir.Block) and not statement.statements


def buffers_of_index(*expressions: expr.Index) -> Iterator[ir.Buffer]:
    """The buffers whose elements occur as numbers in index expressions."""
    for expression in expressions:
        for atom in expr.atoms_of(expression):
            if isinstance(atom, expr.Element):
                yield atom.source


def reads_memory(*expressions: expr.Index) -> bool:
    """Whether index expressions have elements of buffers: they may change when a buffer does."""
    return any(True for _ in buffers_of_index(*expressions))


def buffers_read(statement: ir.Stmt) -> frozenset[ir.Buffer]:
    """Every buffer that is loaded from somewhere inside, also as an index or by an intrinsic."""
    return frozenset(buffer for part in walk(statement) for buffer in _read_by(part))


def buffers_used(statement: ir.Stmt) -> frozenset[ir.Buffer]:
    """Every buffer that occurs inside: loaded, stored, prefetched or passed to an intrinsic."""
    return frozenset(_uses(statement))


def is_used(buffer: ir.Buffer, statement: ir.Stmt) -> bool:
    """Whether a buffer occurs inside."""
    return buffer in _uses(statement)


def _uses(statement: ir.Stmt) -> Iterator[ir.Buffer]:
    for part in walk(statement):
        match part:
            case ir.Store() | ir.Prefetch() | ir.LaneFold():
                yield part.buffer
            case ir.Call():
                yield from (window.buffer for window in part.windows)
            case _:
                pass
        yield from _read_by(part)


def _read_by(part: ir.Stmt) -> Iterator[ir.Buffer]:
    """The buffers that a statement reads, apart from those that statements inside it read."""
    match part:
        case ir.Store(_, indices, value):
            yield from (load.source for load in expr.loads_of(value))
            yield from buffers_of_index(*indices)
        case ir.For(_, extent, _, _):
            yield from buffers_of_index(extent)
        case ir.If(condition, _):
            yield from buffers_of_index(*sides_of(condition))
        case ir.Prefetch(_, indices):
            yield from buffers_of_index(*indices)
        case ir.LaneFold(buffer, indices):
            yield buffer
            yield from buffers_of_index(*indices)
        case ir.Call(_, windows, _):
            for window in windows:
                yield from buffers_of_index(*window.indices)
        case ir.Block() | ir.Allocate() | ir.GroupStatement():
            pass


@dataclass(frozen=True, slots=True)
class _Maps:
    """What `map_statement` applies to the parts of a statement."""

    index: Callable[[expr.Index], expr.Index]
    condition: Callable[[expr.Condition], expr.Condition]
    buffer: Callable[[ir.Buffer], ir.Buffer]
    var: Callable[[expr.Var], expr.Var]

    def value(self, value: expr.Value) -> expr.Value:
        return expr.rebuild(value, self.load, self.index, self.condition)

    def load(self, load: expr.Load) -> expr.Value:
        return expr.Load(self.buffer(load.source), load.indices)

    def indices(self, indices: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
        return tuple(self.index(index) for index in indices)


def map_statement(
    statement: ir.Stmt,
    index: Callable[[expr.Index], expr.Index],
    buffer: Callable[[ir.Buffer], ir.Buffer] = lambda buffer: buffer,
    var: Callable[[expr.Var], expr.Var] = lambda var: var,
    condition: Callable[[expr.Condition], expr.Condition] | None = None,
) -> ir.Stmt:
    """Copy a statement with every index expression, condition, buffer and bound variable mapped.

    `index` and `condition` also see the elements inside index expressions: map their sources there.
    Without `condition`, `index` maps the sides of conditions.
    """
    own = condition or (lambda each: expr.map_condition(each, index))
    return _map(statement, _Maps(index, own, buffer, var))


def _map(statement: ir.Stmt, maps: _Maps) -> ir.Stmt:
    match statement:
        case ir.Block(statements):
            return ir.block(*(_map(part, maps) for part in statements))
        case ir.For(var, extent, kind, body):
            return ir.For(maps.var(var), maps.index(extent), kind, _map(body, maps))
        case ir.If(condition, then):
            return ir.If(maps.condition(condition), _map(then, maps))
        case ir.Allocate(buffer, body):
            return ir.Allocate(maps.buffer(buffer), _map(body, maps))
        case ir.Store(buffer, indices, value):
            return ir.Store(maps.buffer(buffer), maps.indices(indices), maps.value(value))
        case ir.Prefetch(buffer, indices, level):
            return ir.Prefetch(maps.buffer(buffer), maps.indices(indices), level)
        case ir.LaneFold(buffer, indices, fn, lanes):
            return ir.LaneFold(maps.buffer(buffer), maps.indices(indices), fn, lanes)
        case ir.StartCopy(store):
            return _copy_of(_map(store, maps))
        case ir.GroupStatement():
            return statement
        case ir.Call(intrinsic, windows, meaning):
            moved = tuple(
                ir.Window(maps.buffer(w.buffer), maps.indices(w.indices)) for w in windows
            )
            return ir.Call(intrinsic, moved, _map(meaning, maps))


def substitute_statement(
    statement: ir.Stmt,
    mapping: Mapping[Any, expr.Index],
    buffers: Mapping[ir.Buffer, ir.Buffer] | None = None,
) -> ir.Stmt:
    """Replace variables and decisions by index expressions, and buffers by buffers, everywhere.

    Bound variables stay bound under the name that `mapping` gives them, where that is a variable.
    """
    renamed = buffers or {}

    def on_element(element: expr.Element) -> expr.Element:
        return expr.Element(renamed.get(element.source, element.source), element.indices)

    def on_index(index: expr.Index) -> expr.Index:
        replaced = expr.substitute(index, mapping)
        return expr.map_elements(replaced, on_element) if renamed else replaced

    def on_var(var: expr.Var) -> expr.Var:
        mapped = mapping.get(var, var)
        return mapped if isinstance(mapped, expr.Var) else var

    return map_statement(statement, on_index, lambda buffer: renamed.get(buffer, buffer), on_var)


def with_symbols(program: ir.LoopProgram, mapping: Mapping[Any, expr.Index]) -> ir.LoopProgram:
    """The program with index expressions for symbols everywhere, in the shapes of buffers, too."""

    def on_buffer(buffer: ir.Buffer) -> ir.Buffer:
        shape = tuple(expr.substitute(extent, mapping) for extent in buffer.shape)
        return buffer if shape == buffer.shape else replace(buffer, shape=shape)

    def on_index(index: expr.Index) -> expr.Index:
        moved = expr.substitute(index, mapping)
        return expr.map_elements(
            moved, lambda each: expr.Element(on_buffer(each.source), each.indices)
        )

    parameters = tuple(replace(p, buffer=on_buffer(p.buffer)) for p in program.parameters)
    body = map_statement(program.body, on_index, on_buffer)
    return ir.LoopProgram(program.name, parameters, body)


class Namer:
    """Gives names that a program does not use yet; mutable, used inside one pass."""

    def __init__(self, program: ir.LoopProgram) -> None:
        self._used = {p.buffer.name for p in program.parameters}
        for part in walk(program.body):
            if isinstance(part, ir.For):
                self._used.add(part.var.name)
            elif isinstance(part, ir.Allocate):
                self._used.add(part.buffer.name)

    def free(self, wish: str) -> str:
        """The wish itself if the name is not taken, otherwise a name made of it."""
        if wish in self._used:
            return self.fresh(wish)
        self._used.add(wish)
        return wish

    def fresh(self, base: str) -> str:
        """`base`, without its number, followed by the first number that makes it new."""
        base = re.sub(r"_\d+$", "", base)
        number = 1
        while f"{base}_{number}" in self._used:
            number += 1
        name = f"{base}_{number}"
        self._used.add(name)
        return name


def freshen(statement: ir.Stmt, namer: Namer) -> ir.Stmt:
    """Copy a statement with new names for all variables and buffers that it binds."""
    variables: dict[Any, expr.Index] = {}
    buffers: dict[ir.Buffer, ir.Buffer] = {}
    for part in walk(statement):
        if isinstance(part, ir.For):
            variables[part.var] = expr.Var(namer.fresh(part.var.name))
        elif isinstance(part, ir.Allocate):
            buffers[part.buffer] = replace(part.buffer, name=namer.fresh(part.buffer.name))
    return substitute_statement(statement, variables, buffers)


def size_arguments(program: ir.LoopProgram) -> tuple[expr.Index, ...]:
    """What a call gives for the sizes of a program: whole numbers, not their quotients."""
    return tuple(size * size.divisor for size in sizes_of_program(program))


def sizes_of_program(program: ir.LoopProgram) -> tuple[expr.NamedSize, ...]:
    """The named sizes that occur in a program, sorted by name."""
    by_name: dict[str, expr.NamedSize] = {}

    def note(index: expr.Index) -> expr.Index:
        by_name.update((size.name, size) for size in expr.named_sizes_of(index))
        return index

    def note_buffer(buffer: ir.Buffer) -> ir.Buffer:
        for extent in buffer.shape:
            note(extent)
        return buffer

    for parameter in program.parameters:
        note_buffer(parameter.buffer)
    map_statement(program.body, note, note_buffer)
    return tuple(by_name[name] for name in sorted(by_name))


def total_size(statements: Iterable[ir.Stmt]) -> int:
    """The number of statements, at all depths."""
    return sum(1 for statement in statements for _ in walk(statement))


def offset_of(buffer: ir.Buffer, indices: Sequence[expr.Index]) -> expr.Index:
    """The row-major number of an element, with the padding of its rows; before the swizzle."""
    offset: expr.Index = 0
    extents = padded_extents(buffer)
    for index, extent in zip(indices, extents, strict=True):
        offset = offset * extent + index
    return offset


def padded_extents(buffer: ir.Buffer) -> tuple[expr.Index, ...]:
    """The shape with the padding of its rows."""
    padding = buffer.layout.padding
    if not buffer.shape or not padding:
        return buffer.shape
    return (*buffer.shape[:-1], buffer.shape[-1] + padding)


def room_of(buffer: ir.Buffer) -> expr.Index:
    """The number of elements of memory that a buffer takes."""
    count: expr.Index = prod(padded_extents(buffer), start=1)
    return buffer.layout.room(count, buffer.dtype.size_bytes)
