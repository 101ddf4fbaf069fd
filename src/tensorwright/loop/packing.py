"""Fill packed constants: put a constant into the order in which a loop nest reads it.

Weights come in tens of megabytes, so this is vectorised: indices that are affine in the packed axes
are one strided view of the (zero-padded) source, all others are gathered block by block.  A source
that is derived from the constant is computed first, by the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import InternalError
from tensorwright.expr import evaluate as evaluate_tensors
from tensorwright.loop.ir import Packing

Maker: TypeAlias = Callable[[tuple[int, ...], np.dtype[Any]], NDArray[Any]]
"""Gives an array of a shape and a type, of any content."""
_BLOCK_ELEMENTS = 1 << 21  # 16 MB of offsets at a time
_GROWTH = 4  # the most by which padding may enlarge the source and the result together


def pack(array: NDArray[Any], packing: Packing, make: Maker = np.empty) -> NDArray[Any]:
    """The packed copy: packed[axes] = array[indices] where `valid`, else 0.

    make     gives the memory of the copy, by shape and type
    Shapes:  the array has `packing.source_shape`, or the shape of what that is derived from; the
             result has the extents of `packing.axes`.
    Raises:  InternalError for an array of another shape or unbound decisions.
    """
    if packing.derivation is not None:
        array = _derived(array, packing.derivation)
    shape = tuple(_bound(extent) for _, extent in packing.axes)
    source_shape = tuple(_bound(extent) for extent in packing.source_shape)
    if array.shape != source_shape:
        _fail(f"the constant has shape {array.shape}, not {source_shape}")
    if prod(shape) == 0:
        return np.zeros(shape, array.dtype)
    bounds = {var: expr.Range.of_extent(extent) for var, extent in packing.axes}
    valid = expr.simplify_condition(packing.valid, bounds)
    if valid is False:
        return np.zeros(shape, array.dtype)
    rows = tuple(_affine_row(index, packing.axes) for index in packing.indices)
    if all(row is not None for row in rows):
        affine = tuple(row for row in rows if row is not None)
        packed = _strided(array, packing, shape, affine, valid, make)
        if packed is not None:
            return packed
    return _gathered(array, packing, shape, valid, make)


def _derived(array: NDArray[Any], tensor: expr.Compute) -> NDArray[Any]:
    (constant,) = (
        each for each in expr.topological_order(tensor) if isinstance(each, expr.Placeholder)
    )
    if array.shape != constant.shape:
        _fail(f"the constant has shape {array.shape}, not {constant.shape}")
    (packed,) = evaluate_tensors((tensor,), {constant: array})
    return packed


def _fail(reason: str) -> NoReturn:
    raise InternalError(stage="loop", where="a packed constant", reason=reason)


def _bound(extent: expr.Index) -> int:
    if not isinstance(extent, int):
        _fail(f"the extent {extent} is not bound")
    return extent


def _sizes(packing: Packing) -> tuple[tuple[expr.Var, int], ...]:
    return tuple((var, _bound(extent)) for var, extent in packing.axes)


def _affine_row(
    index: expr.Index, axes: tuple[tuple[expr.Var, expr.Index], ...]
) -> tuple[int, ...] | None:
    """(constant, coefficient per axis) of an affine index, or None."""
    column = {var: n for n, (var, _) in enumerate(axes)}
    row = [0] * (len(axes) + 1)
    for monomial, coefficient in expr.terms_of(index):
        if not monomial:
            row[0] = coefficient
        elif len(monomial) == 1 and isinstance(monomial[0], expr.Var):
            row[1 + column[monomial[0]]] = coefficient
        else:
            return None
    return tuple(row)


def _strided(
    array: NDArray[Any],
    packing: Packing,
    shape: tuple[int, ...],
    rows: tuple[tuple[int, ...], ...],
    valid: expr.Condition,
    make: Maker,
) -> NDArray[Any] | None:
    """Copy a strided view of the source, padded with zeros so that every index is inside."""
    padding: list[tuple[int, int]] = []
    for row, extent in zip(rows, array.shape, strict=True):
        ends = [coefficient * (n - 1) for coefficient, n in zip(row[1:], shape, strict=True)]
        low = row[0] + sum(end for end in ends if end < 0)
        high = row[0] + sum(end for end in ends if end > 0)
        padding.append((max(0, -low), max(0, high + 1 - extent)))
    size = prod(n + a + b for n, (a, b) in zip(array.shape, padding, strict=True))
    if size > _GROWTH * (array.size + prod(shape)):
        return None
    padded = np.ascontiguousarray(array).reshape(array.shape)  # NumPy would make () into (1,)
    if any(sum(pair) for pair in padding):
        padded = np.pad(padded, padding)
    start = tuple(
        slice(row[0] + before, None) for row, (before, _) in zip(rows, padding, strict=True)
    )
    strides = tuple(
        sum(row[1 + n] * step for row, step in zip(rows, padded.strides, strict=True))
        for n in range(len(shape))
    )
    packed = make(shape, array.dtype)
    np.copyto(packed, as_strided(padded[start], shape, strides))
    rest = _beyond_padding(valid, packing, array.shape)
    if rest is not True:
        outside = np.broadcast_to(~_condition_on(_grid(_sizes(packing)), rest), shape)
        packed[outside] = 0
    return packed


def _beyond_padding(
    valid: expr.Condition, packing: Packing, shape: tuple[int, ...]
) -> expr.Condition:
    """The parts of `valid` that zero padding does not ensure already."""
    padded: set[expr.Index] = set()
    for index, extent in zip(packing.indices, shape, strict=True):
        padded |= {index - extent, -1 - index}
    parts = expr.conjuncts(valid)
    return expr.all_of(*(part for part in parts if _violation(part) not in padded))


def _violation(part: expr.Condition) -> expr.Index | None:
    """An index expression that is >= 0 exactly where an inequality fails."""
    match part:
        case expr.Compare(expr.Relation.LT, left, right):
            return left - right
        case expr.Compare(expr.Relation.LE, left, right):
            return left - right - 1
        case _:
            return None


def _gathered(
    array: NDArray[Any],
    packing: Packing,
    shape: tuple[int, ...],
    valid: expr.Condition,
    make: Maker,
) -> NDArray[Any]:
    """Gather by computed offsets, as many rows of the first axis at a time as fit in a block."""
    flat = np.ascontiguousarray(array).reshape(-1)
    packed = make(shape, array.dtype)
    packed[...] = 0
    if flat.size == 0:
        return packed
    rows = max(1, _BLOCK_ELEMENTS // max(1, prod(shape[1:])))
    for start in range(0, shape[0] if shape else 1, rows):
        block = range(start, min(start + rows, shape[0])) if shape else None
        grid = _grid(_sizes(packing), block)
        offset: Any = np.int64(0)
        inside: Any = _condition_on(grid, valid)
        for index, extent in zip(packing.indices, array.shape, strict=True):
            positions = expr.evaluate_index(index, grid.__getitem__)
            if not _stays_inside(index, extent, packing):
                inside = inside & (positions >= 0) & (positions < extent)
                positions = np.clip(positions, 0, extent - 1)
            offset = offset * extent + positions
        target = packed[block.start : block.stop] if block is not None else packed
        np.copyto(target, flat[offset], where=inside)
    return packed


def _grid(
    axes: Sequence[tuple[expr.Var, int]], first: range | None = None
) -> dict[expr.Var, NDArray[np.int64]]:
    """The values of each variable, along a dimension of its own; `first` are the first one's."""
    grid = {}
    for n, (var, extent) in enumerate(axes):
        values = range(extent) if n or first is None else first
        along = tuple(len(values) if m == n else 1 for m in range(len(axes)))
        grid[var] = np.arange(values.start, values.stop, dtype=np.int64).reshape(along)
    return grid


def _condition_on(grid: dict[expr.Var, NDArray[np.int64]], condition: expr.Condition) -> Any:
    return expr.evaluate_condition(
        condition, lambda index: expr.evaluate_index(index, grid.__getitem__)
    )


def _stays_inside(index: expr.Index, extent: int, packing: Packing) -> bool:
    reach = expr.interval(index, {var: expr.Range.of_extent(n) for var, n in packing.axes})
    if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
        return False
    return reach.low >= 0 and reach.high < extent
