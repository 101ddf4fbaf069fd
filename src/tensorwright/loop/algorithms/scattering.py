"""Updates at positions from the data: a copy of x, then the updates in row-major order.

Each thread has slices along a dimension that the positions do not index, so no two threads reach
one element. The updates of an element keep their order, whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tensorwright.base import TensorType
from tensorwright.expr import Element, Fn, Index, Value, apply, ceil_div, floor_div, mod
from tensorwright.loop.algorithms.writing import at, loop, parallel, program, shape_of, vector
from tensorwright.loop.ir import Buffer, If, LoopProgram, Stmt, Store, block

_FOLDS = {"add": Fn.ADD, "mul": Fn.MUL, "max": Fn.MAX, "min": Fn.MIN}
_LINE = 64  # elements of a row that a thread takes at least: more passes over rows take longer
_MOST_SLICES = 16  # that a dimension of a known extent is shared out in
_PIECE = 512  # elements that a thread copies at a time
_LANES = 8  # of the last piece of a row, where its extent is open


def scatter_elements(
    types: tuple[TensorType, ...], *, axis: int, reduction: str, line: int = _LINE
) -> LoopProgram | None:
    """The program of `scatter_elements`, each tensor as one dimension; all extents may be open.

    line   how many elements of a row a thread takes at least
    None without elements, and for a type that does not have the reduction.
    """
    if not _is_here(types, reduction):
        return None
    shape, asked = shape_of(types[0]), shape_of(types[1])
    axis %= len(shape)
    dims = range(len(shape))
    shared = next((d for d in dims if d != axis and asked[d] != 1), axis)
    whole = 1 if shared == axis else asked[shared]
    width = _width(whole, line if shared > axis else 1)
    source, indices, updates, result = _flat(types)

    def update(position: Mapping[int, Index]) -> Stmt:
        read = _dot(position, asked)
        row = mod(Element(indices, (read,)), shape[axis])
        into = _dot({**position, axis: row}, shape)
        return _joined(reduction, result, into, at(updates, read))

    def nest(position: Mapping[int, Index], rest: Sequence[int], slice_: Index) -> Stmt:
        if not rest:
            return update(position)
        dim, *inner = rest
        if dim != shared or dim == axis:
            extent = asked[dim]
            return loop(f"i{dim}", extent, lambda i: nest({**position, dim: i}, inner, slice_))

        def part(i: Index) -> Stmt:
            here = slice_ * width + i
            body = nest({**position, dim: here}, inner, slice_)
            return body if isinstance(whole, int) else If(here < whole, body)

        return loop(f"i{dim}", width, part)

    updated = parallel("s", ceil_div(whole, width), lambda s: nest({}, dims, s))
    body = block(_copied(source, result), _if_any(shape[axis : axis + 1], updated))
    return program("scatter_elements", (source, indices, updates), (result,), body)


def scatter_nd(
    types: tuple[TensorType, ...], *, reduction: str, line: int = _LINE
) -> LoopProgram | None:
    """The program of `scatter_nd`, each tensor as one dimension; all extents may be open.

    line   how many elements of a row a thread takes at least
    None without elements, and for a type that does not have the reduction.
    """
    if not _is_here(types, reduction):
        return None
    shape, asked = shape_of(types[0]), shape_of(types[1])
    count = types[1].shape[-1]
    assert isinstance(count, int)
    rows, row = math.prod(asked[:-1]), math.prod(shape[count:])
    source, indices, updates, result = _flat(types)

    def update(number: Index) -> _Body:
        position = {d: mod(Element(indices, (number * count + d,)), shape[d]) for d in range(count)}
        into, read = _dot(position, shape[:count]) * row, number * row
        return lambda e: _joined(reduction, result, into + e, at(updates, read + e))

    updated = _shared_out(
        row, _width(row, line), lambda part: loop("r", rows, lambda r: part(update(r)))
    )
    body = block(_copied(source, result), _if_any(shape[:count], updated))
    return program("scatter_nd", (source, indices, updates), (result,), body)


_Body: TypeAlias = Callable[[Index], Stmt]


def _is_here(types: tuple[TensorType, ...], reduction: str) -> bool:
    x, asked, _ = types
    fold = _FOLDS.get(reduction)
    return (fold is None or fold.takes(x.dtype)) and 0 not in (*x.shape, *asked.shape)


def _flat(types: tuple[TensorType, ...]) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """x, indices, updates and the result."""
    names = ("x", "indices", "updates", "result")
    kinds = (*types, types[0])
    x, indices, updates, result = (
        Buffer(name, (math.prod(shape_of(kind)),), kind.dtype)
        for name, kind in zip(names, kinds, strict=True)
    )
    return x, indices, updates, result


def _width(extent: Index, least: int) -> int:
    """The width of the slices into which a dimension is divided; a number has equal ones."""
    if not isinstance(extent, int):
        return least
    most = min(max(extent // least, 1), _MOST_SLICES)
    return extent // next(slices for slices in range(most, 0, -1) if extent % slices == 0)


def _shared_out(extent: Index, width: int, run: Callable[[Callable[[_Body], Stmt]], Stmt]) -> Stmt:
    """A loop over elements in pieces, which run at the same time, and one for the rest of them.

    run   what is done with a piece, from a function that makes the loop over its elements
    """
    whole, rest = floor_div(extent, width), mod(extent, width)

    def piece(start: Index, lanes: int, body: _Body) -> Stmt:
        return vector("e", lanes, lambda e: body(start + e))

    def last(body: _Body) -> Stmt:
        if isinstance(rest, int):
            return piece(extent - rest, rest, body)
        vectors, start = floor_div(rest, _LANES), whole * width
        return block(
            loop("v", vectors, lambda v: piece(start + v * _LANES, _LANES, body)),
            loop("n", mod(rest, _LANES), lambda n: body(start + vectors * _LANES + n)),
        )

    parts = []
    if whole != 0:
        parts.append(
            parallel("p", whole, lambda p: run(lambda body: piece(p * width, width, body)))
        )
    if rest != 0:
        parts.append(run(last))
    return block(*parts)


def _if_any(extents: Sequence[Index], updated: Stmt) -> Stmt:
    """No update where an open extent, by which positions are divided, is 0."""
    for extent in extents:
        if not isinstance(extent, int):
            updated = If(extent >= 1, updated)
    return updated


def _dot(position: Mapping[int, Index], shape: Sequence[Index]) -> Index:
    """The row-major number of an element."""
    number: Index = 0
    for dim, extent in enumerate(shape):
        number = number * extent + position[dim]
    return number


def _joined(reduction: str, result: Buffer, position: Index, update: Value) -> Stmt:
    """Store an update, or fold it into its element."""
    fold = _FOLDS.get(reduction)
    value = update if fold is None else apply(fold, at(result, position), update)
    return Store(result, (position,), value)


def _copied(source: Buffer, result: Buffer) -> Stmt:
    """All of x, in pieces."""
    (size,) = source.shape
    return _shared_out(
        size, _PIECE, lambda part: part(lambda c: Store(result, (c,), at(source, c)))
    )
