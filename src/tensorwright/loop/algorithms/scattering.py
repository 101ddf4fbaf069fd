"""Updates at positions from the data: a copy of x, then the updates in row-major order.

Each thread has slices along a dimension that the positions do not index, so no two threads reach
one element. The updates of an element keep their order, whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tensorwright.base import DType, TensorType
from tensorwright.expr import Element, Fn, Index, Value, apply, mod
from tensorwright.loop.algorithms.writing import at, loop, parallel, program, vector
from tensorwright.loop.ir import Buffer, If, LoopProgram, Stmt, Store, block

_FOLDS = {"add": Fn.ADD, "mul": Fn.MUL, "max": Fn.MAX, "min": Fn.MIN}
_DTYPES = frozenset((DType.F32, DType.F64, DType.I8, DType.U8, DType.I32, DType.I64))
_LINE = 16  # elements of a row that a thread takes at least
_MOST_SLICES = 16  # that a dimension is shared out in
_PIECE = 4096  # elements that a thread copies at a time


def scatter_elements(
    types: tuple[TensorType, ...], *, axis: int, reduction: str
) -> LoopProgram | None:
    """The program of `scatter_elements`, each tensor as one dimension.

    None without elements, and for types that are not here.
    """
    if not _is_here(types):
        return None
    x, asked, _ = types
    axis %= len(x.shape)
    dims = range(len(x.shape))
    shared = next((d for d in dims if d != axis and asked.extents[d] > 1), axis)
    least = _LINE if shared > axis else 1
    slices, width = (1, 1) if shared == axis else _slices(asked.extents[shared], least)
    source, indices, updates, result = _flat(types)

    def update(position: Mapping[int, Index]) -> Stmt:
        read = _dot(position, asked.extents)
        row = mod(Element(indices, (read,)), x.extents[axis])
        into = _dot({**position, axis: row}, x.extents)
        return _joined(reduction, result, into, at(updates, read))

    def nest(position: Mapping[int, Index], rest: Sequence[int], slice_: Index) -> Stmt:
        if not rest:
            return update(position)
        dim, *inner = rest
        if dim != shared or dim == axis:
            extent = asked.extents[dim]
            return loop(f"i{dim}", extent, lambda i: nest({**position, dim: i}, inner, slice_))
        whole = asked.extents[dim]

        def part(i: Index) -> Stmt:
            here = slice_ * width + i
            body = nest({**position, dim: here}, inner, slice_)
            return body if whole % width == 0 else If(here < whole, body)

        return loop(f"i{dim}", width, part)

    updated = parallel("s", slices, lambda s: nest({}, dims, s))
    body = block(_copied(source, result), updated)
    return program("scatter_elements", (source, indices, updates), (result,), body)


def scatter_nd(types: tuple[TensorType, ...], *, reduction: str) -> LoopProgram | None:
    """The program of `scatter_nd`, each tensor as one dimension.

    None without elements, and for types that are not here.
    """
    if not _is_here(types):
        return None
    x, asked, _ = types
    count = asked.extents[-1]
    rows, row = math.prod(asked.extents[:-1]), math.prod(x.extents[count:])
    _, width = _slices(row, _LINE)
    source, indices, updates, result = _flat(types)

    def update(number: Index, start: Index, extent: int) -> Stmt:
        position = {
            d: mod(Element(indices, (number * count + d,)), x.extents[d]) for d in range(count)
        }
        into = _dot(position, x.extents[:count]) * row + start
        read = number * row + start
        return vector(
            "e", extent, lambda e: _joined(reduction, result, into + e, at(updates, read + e))
        )

    whole, rest = divmod(row, width)
    parts = [_copied(source, result)]
    if whole:
        parts.append(
            parallel("s", whole, lambda s: loop("r", rows, lambda r: update(r, s * width, width)))
        )
    if rest:
        parts.append(loop("r", rows, lambda r: update(r, whole * width, rest)))
    return program("scatter_nd", (source, indices, updates), (result,), block(*parts))


def _is_here(types: tuple[TensorType, ...]) -> bool:
    x, asked, _ = types
    return x.dtype in _DTYPES and 0 not in (*x.shape, *asked.shape)


def _flat(types: tuple[TensorType, ...]) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """x, indices, updates and the result."""
    names = ("x", "indices", "updates", "result")
    kinds = (*types, types[0])
    x, indices, updates, result = (
        Buffer(name, (math.prod(kind.extents),), kind.dtype)
        for name, kind in zip(names, kinds, strict=True)
    )
    return x, indices, updates, result


def _slices(extent: int, least: int) -> tuple[int, int]:
    """The number of slices into which a dimension is divided, and their width."""
    width = min(extent, max(least, -(-extent // _MOST_SLICES)))
    return -(-extent // width), width


def _dot(position: Mapping[int, Index], shape: tuple[int, ...]) -> Index:
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
    (size,) = source.extents
    whole, rest = divmod(size, _PIECE)

    def piece(start: Index, extent: int) -> Stmt:
        return vector("c", extent, lambda c: Store(result, (start + c,), at(source, start + c)))

    pieces = [parallel("p", whole, lambda p: piece(p * _PIECE, _PIECE))] if whole else []
    return block(*pieces, *([piece(whole * _PIECE, rest)] if rest else []))
