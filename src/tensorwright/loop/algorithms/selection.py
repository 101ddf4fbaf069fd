"""The first k of each row, in order: insertion into a sorted list in registers and the first cache.

A row is read once. A comparison of vectors skips each block in which no element comes before the
last of the list. An element that does is inserted, and all behind it move at once. Of a row in
random order about k ln(n / k) elements are inserted, each at a cost of k / lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tensorwright.base import DType, TensorType
from tensorwright.expr import (
    Const,
    Element,
    Fn,
    FromIndex,
    Index,
    Load,
    Relation,
    Value,
    apply,
    cast,
    compare,
    constant,
    select,
)
from tensorwright.loop.algorithms.writing import (
    allocate,
    at,
    local,
    loop,
    parallel,
    program,
    vector,
)
from tensorwright.loop.ir import Buffer, If, LoopProgram, Stmt, Store, block

MOST_KEPT = 128
"""The longest list that insertion is for; beyond it sorting is faster."""

_BLOCK = 32  # elements that one test passes over
_POSITION = DType.I32
_DTYPES = frozenset((DType.F32, DType.F64, DType.I32, DType.I64))


def topk(
    types: tuple[TensorType, ...], *, axis: int, k: Index, largest: bool, **_: object
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

    def row(number: Index) -> Stmt:
        before, behind = number // inner, number % inner

        def read(position: Index) -> Load:
            return at(source, before, position, behind)

        if inner == 1:
            listed, own = _listed(lists, count, read), lists.buffers
        else:  # of a row that lies apart a copy is read
            copied = loop("c", count, lambda c: Store(line, (c,), read(c)))
            listed = block(copied, _listed(lists, count, lambda position: at(line, position)))
            own = (line, *lists.buffers)

        def stored(n: Index) -> Stmt:
            position = cast(at(lists.positions, n + 1), DType.I64)
            return block(
                Store(values, (before, n, behind), at(lists.best, n + 1)),
                Store(indices, (before, n, behind), position),
            )

        return allocate(own, block(listed, loop("n", k, stored)))

    body = parallel("r", outer * inner, row)
    return program("topk", (source,), (values, indices), body)


_Read = Callable[[Index], Load]


@dataclass(frozen=True, slots=True)
class _Order:
    """Which of two elements comes first; NaN is greater than all numbers, as in NumPy."""

    dtype: DType
    is_largest: bool

    def before(self, left: Value, right: Value) -> Value:
        """Whether the left one comes before the right one, wherever they are."""
        great, small = (left, right) if self.is_largest else (right, left)
        exceeds = apply(Fn.LT, small, great)
        if not self.dtype.is_float:
            return exceeds
        alone = apply(Fn.AND, apply(Fn.ISNAN, great), apply(Fn.NOT, apply(Fn.ISNAN, small)))
        return apply(Fn.OR, exceeds, alone)

    @property
    def first(self) -> Const:
        """A value that no element comes before."""
        if not self.is_largest:
            return constant(self.dtype.lowest, self.dtype)
        return constant(math.nan if self.dtype.is_float else self.dtype.highest, self.dtype)


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

    def is_new(self, value: Value) -> Value:
        """Whether an element belongs into the list; elements come in the order of positions."""
        return self.order.before(value, at(self.best, self.kept))

    def if_counted(self, then: Stmt) -> Stmt:
        """The statement where `number` is not 0."""
        number = cast(at(self.number, 0), _POSITION)
        return block(
            Store(self.as_index, (0,), number),
            If(compare(Relation.NE, Element(self.as_index, (0,)), 0), then),
        )


def _listed(lists: _Lists, count: int, read: _Read) -> Stmt:
    """The list of a row of `count` elements: it begins with the first k of them, sorted by rank."""
    kept = lists.kept
    body = [
        Store(lists.best, (0,), lists.order.first),
        Store(lists.positions, (0,), constant(0, _POSITION)),
        loop("j", kept, lambda j: _ranked(read, lists, j)),
    ]
    blocks, rest = divmod(count - kept, _BLOCK)
    if blocks:
        body.append(loop("b", blocks, lambda b: _block(read, lists, kept + b * _BLOCK)))
    if rest:
        body.append(loop("e", rest, lambda e: _tried(read, lists, count - rest + e)))
    return block(*body)


def _ranked(read: _Read, lists: _Lists, position: Index) -> Stmt:
    """Put one of the first elements at its rank: the number of those that come before it."""
    order, number = lists.order, lists.number
    own = read(position)

    def counted(t: Index) -> Stmt:
        other = read(t)
        is_equal = apply(Fn.NOT, order.before(own, other))
        is_earlier = apply(Fn.LT, FromIndex(t, _POSITION), FromIndex(position, _POSITION))
        is_before = apply(Fn.OR, order.before(other, own), apply(Fn.AND, is_equal, is_earlier))
        return Store(number, (0,), at(number, 0) + cast(is_before, DType.F32))

    rank = 1 + Element(lists.as_index, (0,))
    return block(
        Store(number, (0,), constant(0, DType.F32)),
        vector("t", lists.kept, counted),
        Store(lists.as_index, (0,), cast(at(number, 0), _POSITION)),
        Store(lists.best, (rank,), own),
        Store(lists.positions, (rank,), FromIndex(position, _POSITION)),
    )


def _block(read: _Read, lists: _Lists, start: Index) -> Stmt:
    """Skip a block, or try each of its elements."""
    number = lists.number

    def tested(lane: Index) -> Stmt:
        is_new = cast(lists.is_new(read(start + lane)), DType.F32)
        return Store(number, (0,), apply(Fn.MAX, at(number, 0), is_new))

    return block(
        Store(number, (0,), constant(0, DType.F32)),
        vector("l", _BLOCK, tested),
        lists.if_counted(loop("t", _BLOCK, lambda t: _tried(read, lists, start + t))),
    )


def _tried(read: _Read, lists: _Lists, position: Index) -> Stmt:
    """Insert an element if it belongs into the list."""
    own = read(position)
    order = lists.order

    def moved(m: Index) -> Stmt:
        ahead, here = at(lists.best, m), at(lists.best, m + 1)
        is_before, was_before = order.before(own, here), order.before(own, ahead)

        def chosen(old: Buffer, new: Value) -> Value:
            inserted = select(was_before, at(old, m), new)
            return select(is_before, inserted, at(old, m + 1))

        return block(
            Store(lists.next_best, (m,), chosen(lists.best, own)),
            Store(
                lists.next_positions, (m,), chosen(lists.positions, FromIndex(position, _POSITION))
            ),
        )

    def kept(w: Index) -> Stmt:
        return block(
            Store(lists.best, (w + 1,), at(lists.next_best, w)),
            Store(lists.positions, (w + 1,), at(lists.next_positions, w)),
        )

    return block(
        Store(lists.number, (0,), cast(lists.is_new(own), DType.F32)),
        lists.if_counted(block(vector("m", lists.kept, moved), vector("w", lists.kept, kept))),
    )
