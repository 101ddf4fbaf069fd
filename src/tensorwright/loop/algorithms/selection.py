"""The first k of each row, in order: insertion into a sorted list in registers and the first cache.

A row is read once. A comparison of vectors skips each block in which no element comes before the
last of the list. An element that does is inserted, and all behind it move at once. Of a row in
random order about k ln(n / k) elements are inserted, each at a cost of k / lanes.

Loop algorithms for graphics processors: a launch per statement, a thread per iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from tensorwright import expr
from tensorwright.base import DType, TensorType
from tensorwright.loop.algorithms.scattering import (
    allocate,
    at,
    local,
    loop,
    parallel,
    program,
    vector,
)
from tensorwright.loop.ir import Allocate, Block, Buffer, For, If, LoopProgram, Stmt, Store, block
from tensorwright.loop.passes import verify
from tensorwright.loop.traversal import substitute_statement
from tensorwright.schedule import ForKind, Scope

MOST_KEPT = 128
"""The longest list that insertion is for; beyond it sorting is faster."""

_BLOCK = 32  # elements that one test passes over
_POSITION = DType.I32
_DTYPES = frozenset((DType.F32, DType.F64, DType.I32, DType.I64))


def topk(
    types: tuple[TensorType, ...], *, axis: int, k: expr.Index, largest: bool, **_: object
) -> LoopProgram | None:
    """The program of `topk`: x (outer, n, inner) -> values, indices (outer, k, inner).

    The values are in order, whether that is asked for or not.  None for lists longer than
    MOST_KEPT, without elements or of an open length, and for types of other sizes.
    """
    (x,) = types
    axis %= max(len(x.shape), 1)
    if not isinstance(k, int) or x.dtype not in _DTYPES or not 0 < k <= MOST_KEPT or 0 in x.shape:
        return None
    outer, count = math.prod(x.extents[:axis]), x.extents[axis]
    inner = math.prod(x.extents[axis + 1 :])
    source = Buffer("x", (outer, count, inner), x.dtype)
    values = Buffer("values", (outer, k, inner), x.dtype)
    indices = Buffer("indices", (outer, k, inner), DType.I64)
    lists = _Lists.of(_Order(x.dtype, is_largest=largest), k)
    line = local("line", x.dtype, count)

    def row(number: expr.Index) -> Stmt:
        before, behind = number // inner, number % inner

        def read(position: expr.Index) -> expr.Load:
            return at(source, before, position, behind)

        if inner == 1:
            listed, own = _listed(lists, count, read), lists.buffers
        else:  # of a row that lies apart a copy is read
            copied = loop("c", count, lambda c: Store(line, (c,), read(c)))
            listed = block(copied, _listed(lists, count, lambda position: at(line, position)))
            own = (line, *lists.buffers)

        def stored(n: expr.Index) -> Stmt:
            position = expr.cast(at(lists.positions, n + 1), DType.I64)
            return block(
                Store(values, (before, n, behind), at(lists.best, n + 1)),
                Store(indices, (before, n, behind), position),
            )

        return allocate(own, block(listed, loop("n", k, stored)))

    body = parallel("r", outer * inner, row)
    return program("topk", (source,), (values, indices), body)


_Read = Callable[[expr.Index], expr.Load]


@dataclass(frozen=True, slots=True)
class _Order:
    """Which of two elements comes first; NaN is greater than all numbers, as in NumPy."""

    dtype: DType
    is_largest: bool

    def before(self, left: expr.Value, right: expr.Value) -> expr.Value:
        """Whether the left one comes before the right one, wherever they are."""
        great, small = (left, right) if self.is_largest else (right, left)
        exceeds = expr.apply(expr.Fn.LT, small, great)
        if not self.dtype.is_float:
            return exceeds
        alone = expr.apply(
            expr.Fn.AND,
            expr.apply(expr.Fn.ISNAN, great),
            expr.apply(expr.Fn.NOT, expr.apply(expr.Fn.ISNAN, small)),
        )
        return expr.apply(expr.Fn.OR, exceeds, alone)

    @property
    def first(self) -> expr.Const:
        """A value that no element comes before."""
        if not self.is_largest:
            return expr.constant(self.dtype.lowest, self.dtype)
        return expr.constant(math.nan if self.dtype.is_float else self.dtype.highest, self.dtype)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The sorted list with a sentinel in front of it, and room for one more element."""

    best: Buffer
    positions: Buffer
    next_best: Buffer
    next_positions: Buffer
    number: Buffer
    as_index: Buffer
    order: _Order
    kept: int

    @classmethod
    def of(cls, order: _Order, kept: int) -> _Lists:
        """Lists of a number of elements."""
        return cls(
            local("best", order.dtype, kept + 1),
            local("place", _POSITION, kept + 1),
            local("next_best", order.dtype, kept),
            local("next_place", _POSITION, kept),
            local("number", DType.F32, 1),
            local("found", _POSITION, 1),
            order,
            kept,
        )

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (
            *(self.best, self.positions, self.next_best, self.next_positions),
            *(self.number, self.as_index),
        )

    def is_new(self, value: expr.Value) -> expr.Value:
        """Whether an element belongs into the list; elements come in the order of positions."""
        return self.order.before(value, at(self.best, self.kept))

    def if_counted(self, then: Stmt) -> Stmt:
        """The statement where `number` is not 0."""
        number = expr.cast(at(self.number, 0), _POSITION)
        return block(
            Store(self.as_index, (0,), number),
            If(expr.compare(expr.Relation.NE, expr.Element(self.as_index, (0,)), 0), then),
        )


def _listed(lists: _Lists, count: int, read: _Read) -> Stmt:
    """The list of a row of `count` elements: it begins with the first k of them, sorted by rank."""
    kept = lists.kept
    body = [
        Store(lists.best, (0,), lists.order.first),
        Store(lists.positions, (0,), expr.constant(0, _POSITION)),
        loop("j", kept, lambda j: _ranked(read, lists, j)),
    ]
    blocks, rest = divmod(count - kept, _BLOCK)
    if blocks:
        body.append(loop("b", blocks, lambda b: _block(read, lists, kept + b * _BLOCK)))
    if rest:
        body.append(loop("e", rest, lambda e: _tried(read, lists, count - rest + e)))
    return block(*body)


def _ranked(read: _Read, lists: _Lists, position: expr.Index) -> Stmt:
    """Put one of the first elements at its rank: the number of those that come before it."""
    order, number = lists.order, lists.number
    own = read(position)

    def counted(t: expr.Index) -> Stmt:
        other = read(t)
        is_equal = expr.apply(expr.Fn.NOT, order.before(own, other))
        is_earlier = expr.apply(
            expr.Fn.LT, expr.FromIndex(t, _POSITION), expr.FromIndex(position, _POSITION)
        )
        is_before = expr.apply(
            expr.Fn.OR, order.before(other, own), expr.apply(expr.Fn.AND, is_equal, is_earlier)
        )
        return Store(number, (0,), at(number, 0) + expr.cast(is_before, DType.F32))

    rank = 1 + expr.Element(lists.as_index, (0,))
    return block(
        Store(number, (0,), expr.constant(0, DType.F32)),
        vector("t", lists.kept, counted),
        Store(lists.as_index, (0,), expr.cast(at(number, 0), _POSITION)),
        Store(lists.best, (rank,), own),
        Store(lists.positions, (rank,), expr.FromIndex(position, _POSITION)),
    )


def _block(read: _Read, lists: _Lists, start: expr.Index) -> Stmt:
    """Skip a block, or try each of its elements."""
    number = lists.number

    def tested(lane: expr.Index) -> Stmt:
        is_new = expr.cast(lists.is_new(read(start + lane)), DType.F32)
        return Store(number, (0,), expr.apply(expr.Fn.MAX, at(number, 0), is_new))

    return block(
        Store(number, (0,), expr.constant(0, DType.F32)),
        vector("l", _BLOCK, tested),
        lists.if_counted(loop("t", _BLOCK, lambda t: _tried(read, lists, start + t))),
    )


def _tried(read: _Read, lists: _Lists, position: expr.Index) -> Stmt:
    """Insert an element if it belongs into the list."""
    own = read(position)
    order = lists.order

    def moved(m: expr.Index) -> Stmt:
        ahead, here = at(lists.best, m), at(lists.best, m + 1)
        is_before, was_before = order.before(own, here), order.before(own, ahead)

        def chosen(old: Buffer, new: expr.Value) -> expr.Value:
            inserted = expr.select(was_before, at(old, m), new)
            return expr.select(is_before, inserted, at(old, m + 1))

        return block(
            Store(lists.next_best, (m,), chosen(lists.best, own)),
            Store(
                lists.next_positions,
                (m,),
                chosen(lists.positions, expr.FromIndex(position, _POSITION)),
            ),
        )

    def kept(w: expr.Index) -> Stmt:
        return block(
            Store(lists.best, (w + 1,), at(lists.next_best, w)),
            Store(lists.positions, (w + 1,), at(lists.next_positions, w)),
        )

    return block(
        Store(lists.number, (0,), expr.cast(lists.is_new(own), DType.F32)),
        lists.if_counted(block(vector("m", lists.kept, moved), vector("w", lists.kept, kept))),
    )


_THREADS = 64
_MOST_OWN_BYTES = 16 << 10  # of a thread; what is larger lies in the memory of the device


def on_groups(program: LoopProgram) -> LoopProgram | None:
    """The program with its parallel loops dealt out to blocks and threads.

    None if the local buffers of a thread need more memory than a card has for each.
    """
    if sum(_own_bytes(program.body)) > _MOST_OWN_BYTES:
        return None
    body = program.body
    statements = body.statements if isinstance(body, Block) else (body,)
    return verify(replace(program, body=block(*map(_launch, statements))))


def _launch(statement: Stmt) -> Stmt:
    """A launch of a statement at the root: one thread for each iteration of independent loops."""
    if not isinstance(statement, For) or statement.kind not in (ForKind.PARALLEL, ForKind.VECTOR):
        return _serial(statement)
    if isinstance(statement.body, For) and statement.body.kind is ForKind.VECTOR:
        inner = statement.body
        pieces = _dealt(inner, _serial(inner.body))
        if isinstance(pieces, For):  # a block for each iteration of the outer loop, too
            return For(statement.var, statement.extent, ForKind.BLOCK_Y, pieces)
    return _dealt(statement, _serial(statement.body))


def _dealt(loop: For, body: Stmt) -> Stmt:
    """A loop over blocks of threads; the last block may have more threads than iterations."""
    extent = loop.extent
    threads = min(extent, _THREADS) if isinstance(extent, int) else _THREADS
    blocks, own = expr.Var(f"{loop.var.name}_b"), expr.Var(f"{loop.var.name}_t")
    number = blocks * threads + own
    body = substitute_statement(body, {loop.var: number})
    if not isinstance(extent, int) or extent % threads:
        body = If(expr.compare(expr.Relation.LT, number, extent), body)
    group = For(own, threads, ForKind.THREAD_X, body)
    return For(blocks, expr.ceil_div(extent, threads), ForKind.BLOCK_X, group)


def _serial(statement: Stmt) -> Stmt:
    """The work of one thread: loops in lock step become serial loops."""
    match statement:
        case For(var, extent, kind, body):
            plain = ForKind.SERIAL if kind in (ForKind.VECTOR, ForKind.PARALLEL) else kind
            return For(var, extent, plain, _serial(body))
        case If(condition, then):
            return If(condition, _serial(then))
        case Allocate(buffer, body):
            return Allocate(buffer, _serial(body))
        case Block(statements):
            return block(*map(_serial, statements))
        case _:
            return statement


def _own_bytes(statement: Stmt) -> Iterator[int]:
    """The bytes of each buffer that a thread has of its own."""
    match statement:
        case For(_, _, _, body) | If(_, body):
            yield from _own_bytes(body)
        case Allocate(buffer, body):
            if buffer.scope is Scope.LOCAL:
                yield prod(buffer.extents) * buffer.dtype.size_bytes
            yield from _own_bytes(body)
        case Block(statements):
            for each in statements:
                yield from _own_bytes(each)
        case _:
            pass
